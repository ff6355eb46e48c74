package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// rehearsalPool stands for a pool's name where a class has none: permissions are often bound to the tag.
const rehearsalPool = "rehearsal"

var _ nodeclass.Rehearser = (*Provider)(nil)

// Rehearse implements nodeclass.Rehearser: the calls with which an instance of the class is launched, as dry runs. The
// class need not be ready; what it has found so far is used. There are no calls if nothing that the class could use is
// sold: that may be otherwise tomorrow, and says nothing about the class.
func (p *Provider) Rehearse(ctx context.Context, class *awsv1.EC2NodeClass) ([]nodeclass.Call, error) {
	if _, err := p.cluster(ctx); err != nil {
		return nil, &nodeclass.PassingError{Cause: err}
	}
	claim, candidate, err := p.rehearsalClaim(ctx, class)
	if unsold, ok := errors.AsType[*offer.UnsoldError](err); ok {
		log.FromContext(ctx).Info("no launch can be rehearsed", "EC2NodeClass", class.Name, "why", unsold.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tags := p.tags(class, claim.Labels[v1.NodePoolLabelKey])
	q := &launchRequest{claim: claim, isAbandoned: func() bool { return false }}
	made, err := p.templatesFor(ctx, class, []choose.Candidate{candidate}, tags, q)
	if err != nil {
		return nil, err
	}
	if q.spec, err = newLaunchSpec(class, claim, q.candidates, made, tags); err != nil {
		return nil, err
	}
	return p.dryRuns(class, q, made[0])
}

// rehearsalClaim is a claim as one of the class's pools would make it, and what it would be launched on. Policies often
// deny what no pool uses, so types are taken from the pools; from all that the class can use only if there is no pool,
// or none that could launch anything.
func (p *Provider) rehearsalClaim(ctx context.Context, class *awsv1.EC2NodeClass) (*v1.NodeClaim,
	choose.Candidate, error) {
	list, err := p.typesOf(ctx, class)
	if err != nil {
		return nil, choose.Candidate{}, err
	}
	pools, err := p.poolsOf(ctx, class.Name)
	if err != nil {
		return nil, choose.Candidate{}, err
	}
	anything := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: rehearsalPool}}
	for _, some := range [][]*v1.NodePool{pools, {anything}} {
		// A launch on demand is rehearsed, whichever way the pool buys, if anything is sold like that.
		for _, terms := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeReserved, v1.CapacityTypeSpot} {
			for _, pool := range some {
				claim := rehearsalOf(class, pool)
				// Whether it can be had now is not asked: it would be too late to learn that a launch fails when it
				// can.
				if fit := dropExotic(onlyCapacityType(choose.Ranked(list, claim), terms)); len(fit) > 0 {
					return claim, fit[0], nil
				}
			}
		}
	}
	return nil, choose.Candidate{}, p.catalog.NoneFits(ctx, class)
}

// rehearsalOf is a claim of the pool that may be launched on any terms.
func rehearsalOf(class *awsv1.EC2NodeClass, pool *v1.NodePool) *v1.NodeClaim {
	claim := &v1.NodeClaim{}
	claim.Name, claim.UID = "rehearsal", class.UID
	claim.Labels = map[string]string{v1.NodePoolLabelKey: pool.Name}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: class.Name}
	claim.Spec.Requirements = slices.DeleteFunc(slices.Clone(pool.Spec.Template.Spec.Requirements),
		func(r v1.NodeSelectorRequirementWithMinValues) bool {
			return r.Key == v1.CapacityTypeLabelKey
		})
	return claim
}

// poolsOf lists the pools that refer to the class, by name. They are read as plain trees from the API server, seldom: a
// watch of their own would keep them twice, and one that can't be read must not hide the others.
func (p *Provider) poolsOf(ctx context.Context, class string) ([]*v1.NodePool, error) {
	if p.liveClaims == nil {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePoolList"))
	if err := p.liveClaims.List(ctx, list); err != nil {
		return nil, &nodeclass.PassingError{Cause: fmt.Errorf("listing the NodePools of EC2NodeClass %s: %w",
			class, err)}
	}
	var out []*v1.NodePool
	for i := range list.Items {
		pool := &v1.NodePool{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, pool); err != nil {
			continue
		}
		if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Group == awsv1.Group &&
			ref.Kind == awsv1.Kind && ref.Name == class {
			out = append(out, pool)
		}
	}
	slices.SortFunc(out, func(a, b *v1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (p *Provider) dryRuns(class *awsv1.EC2NodeClass, q *launchRequest, t *template.Template) ([]nodeclass.Call,
	error) {
	zone := q.spec.Lines[0].Zone
	at := slices.IndexFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.Zone == zone })
	subnet := class.Status.Subnets[at].ID
	create := t.Input()
	create.DryRun = new(true)
	r := &fleetRequest{Launch: ownership.NewLaunch(p.clusterName, []ownership.Claim{q.owner()}, func(types.UID) int {
		return 0
	}),
		spec: q.spec, requests: []*launchRequest{q}}
	fleet := &ec2.CreateFleetInput{
		DryRun: new(true), Type: ec2types.FleetTypeInstant,
		LaunchTemplateConfigs:       q.spec.configs(map[string]subnetChoice{zone: {subnet: subnet}}),
		TargetCapacitySpecification: q.spec.target(1), TagSpecifications: r.tagSpecs(p.identity),
	}
	q.spec.strategy(fleet)
	run := runInput(t, q.spec.Lines[0].Type, subnet, r.tagSpecs(p.identity))
	q.spec.applyTerms(run, t.Data)
	return []nodeclass.Call{
		{Action: "ec2:CreateLaunchTemplate", Run: func(ctx context.Context) error {
			_, err := p.ec2.CreateLaunchTemplate(ctx, create)
			return err
		}},
		{Action: "ec2:CreateFleet", Run: func(ctx context.Context) error {
			_, err := p.ec2.CreateFleet(ctx, fleet)
			return err
		}},
		{Action: "ec2:RunInstances", Run: func(ctx context.Context) error {
			_, err := p.ec2.RunInstances(ctx, run)
			return err
		}},
	}, nil
}

// runInput is the call that EC2 makes for a fleet, without the launch template, which may not exist.
func runInput(t *template.Template, kind, subnet string, tags []ec2types.TagSpecification) *ec2.RunInstancesInput {
	d := t.Data
	out := &ec2.RunInstancesInput{
		DryRun: new(true), MinCount: new(int32(1)), MaxCount: new(int32(1)), InstanceType: ec2types.InstanceType(kind),
		ImageId: d.ImageId, UserData: d.UserData,
		MetadataOptions: &ec2types.InstanceMetadataOptionsRequest{
			HttpEndpoint:            ec2types.InstanceMetadataEndpointState(d.MetadataOptions.HttpEndpoint),
			HttpTokens:              ec2types.HttpTokensState(d.MetadataOptions.HttpTokens),
			HttpProtocolIpv6:        ec2types.InstanceMetadataProtocolState(d.MetadataOptions.HttpProtocolIpv6),
			HttpPutResponseHopLimit: d.MetadataOptions.HttpPutResponseHopLimit,
			InstanceMetadataTags:    ec2types.InstanceMetadataTagsState(d.MetadataOptions.InstanceMetadataTags),
		},
	}
	if d.IamInstanceProfile != nil {
		out.IamInstanceProfile = &ec2types.IamInstanceProfileSpecification{Name: d.IamInstanceProfile.Name}
	}
	for _, spec := range tags {
		if spec.ResourceType != ec2types.ResourceTypeFleet {
			out.TagSpecifications = append(out.TagSpecifications, spec)
		}
	}
	for _, spec := range d.TagSpecifications {
		out.TagSpecifications = append(out.TagSpecifications, ec2types.TagSpecification{ResourceType: spec.ResourceType,
			Tags: spec.Tags})
	}
	for _, m := range d.BlockDeviceMappings {
		out.BlockDeviceMappings = append(out.BlockDeviceMappings, runDevice(m))
	}
	if len(d.NetworkInterfaces) == 0 {
		out.SubnetId, out.SecurityGroupIds = new(subnet), d.SecurityGroupIds
	}
	for _, n := range d.NetworkInterfaces {
		out.NetworkInterfaces = append(out.NetworkInterfaces, ec2types.InstanceNetworkInterfaceSpecification{
			SubnetId: new(subnet), Groups: n.Groups, DeviceIndex: n.DeviceIndex, NetworkCardIndex: n.NetworkCardIndex,
			InterfaceType:            n.InterfaceType,
			AssociatePublicIpAddress: n.AssociatePublicIpAddress, DeleteOnTermination: n.DeleteOnTermination,
			Ipv4PrefixCount: n.Ipv4PrefixCount, Ipv6PrefixCount: n.Ipv6PrefixCount,
			Ipv6AddressCount: n.Ipv6AddressCount, PrimaryIpv6: n.PrimaryIpv6,
			ConnectionTrackingSpecification: n.ConnectionTrackingSpecification,
		})
	}
	return out
}

// applyTerms has the call buy as the fleet would, which says so by itself or by its launch template.
func (s *launchSpec) applyTerms(in *ec2.RunInstancesInput, d *ec2types.RequestLaunchTemplateData) {
	switch {
	case s.Block:
		in.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeCapacityBlock}
	case s.Interruptible:
		in.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{
			MarketType: ec2types.MarketTypeInterruptibleCapacityReservation,
		}
	case s.CapacityType == v1.CapacityTypeSpot:
		in.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot}
	}
	if s.CapacityType != v1.CapacityTypeReserved {
		return
	}
	r := d.CapacityReservationSpecification
	in.CapacityReservationSpecification = &ec2types.CapacityReservationSpecification{
		CapacityReservationPreference: r.CapacityReservationPreference,
		CapacityReservationTarget:     r.CapacityReservationTarget}
	if at := d.Placement; at != nil { // a reservation is for one tenancy, and may be for one placement group
		in.Placement = &ec2types.Placement{Tenancy: at.Tenancy, GroupId: at.GroupId,
			PartitionNumber: at.PartitionNumber}
	}
}

func runDevice(m ec2types.LaunchTemplateBlockDeviceMappingRequest) ec2types.BlockDeviceMapping {
	out := ec2types.BlockDeviceMapping{DeviceName: m.DeviceName}
	if e := m.Ebs; e != nil {
		out.Ebs = &ec2types.EbsBlockDevice{
			DeleteOnTermination: e.DeleteOnTermination, Encrypted: e.Encrypted, Iops: e.Iops, KmsKeyId: e.KmsKeyId,
			SnapshotId: e.SnapshotId,
			Throughput: e.Throughput, VolumeSize: e.VolumeSize, VolumeType: e.VolumeType,
			VolumeInitializationRate: e.VolumeInitializationRate,
		}
	}
	return out
}
