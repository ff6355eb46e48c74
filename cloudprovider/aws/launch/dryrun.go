package launch

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// DryRuns are the calls with which an instance would be launched for the claim, as dry runs.
func (p *Launcher) DryRuns(ctx context.Context, class *awsv1.EC2NodeClass, claim *v1.NodeClaim,
	candidate choose.Candidate) ([]nodeclass.Call, error) {
	q, made, err := p.request(ctx, class, claim, []choose.Candidate{candidate})
	if err != nil {
		return nil, err
	}
	t := made[0]
	zone := q.spec.Lines[0].Zone
	at := slices.IndexFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.Zone == zone })
	subnet := class.Status.Subnets[at].ID
	create := t.Input()
	create.DryRun = new(true)
	r := &fleetRequest{Launch: ownership.NewLaunch(p.o.ClusterName, []ownership.Claim{q.owner()}, func(types.UID) int {
		return 0
	}),
		spec: q.spec, requests: []*Request{q}}
	fleet := &ec2.CreateFleetInput{
		DryRun: new(true), Type: ec2types.FleetTypeInstant,
		LaunchTemplateConfigs:       q.spec.configs(map[string]subnetChoice{zone: {subnet: subnet}}),
		TargetCapacitySpecification: q.spec.target(1), TagSpecifications: r.tagSpecs(p.o.Identity),
	}
	q.spec.strategy(fleet)
	run := runInput(t, q.spec.Lines[0].Type, subnet, r.tagSpecs(p.o.Identity))
	q.spec.applyTerms(run, t.Data)
	return []nodeclass.Call{
		{Action: "ec2:CreateLaunchTemplate", Run: func(ctx context.Context) error {
			_, err := p.o.EC2.CreateLaunchTemplate(ctx, create)
			return err
		}},
		{Action: "ec2:CreateFleet", Run: func(ctx context.Context) error {
			_, err := p.o.EC2.CreateFleet(ctx, fleet)
			return err
		}},
		{Action: "ec2:RunInstances", Run: func(ctx context.Context) error {
			_, err := p.o.EC2.RunInstances(ctx, run)
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
			MarketType: ec2types.MarketTypeInterruptibleCapacityReservation}
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
