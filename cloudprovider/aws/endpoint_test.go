package aws_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/conformance"
)

// lackError says that an endpoint lacks something that the suite needs.
type lackError struct{ what string }

func (e *lackError) Error() string { return "the endpoint lacks " + e.what }

// TestEndpoint runs the conformance suite against whatever AWS_ENDPOINT_URL names, with the credentials and the region
// of the environment: another emulator, or an account that may be charged. It uses what is there of networks and
// images, and a cluster name of its own for each check, so that it leaves others alone. It needs nothing but EC2.
func TestEndpoint(t *testing.T) {
	url := os.Getenv("AWS_ENDPOINT_URL")
	if url == "" {
		t.Skip("AWS_ENDPOINT_URL is not set; TestConformance runs the same suite against the simulator")
	}
	log.SetLogger(logr.Discard()) // what the provider logs is not what is judged
	site, err := newSite(t.Context())
	if err == nil {
		err = site.probe(t.Context())
	}
	if lack, ok := errors.AsType[*lackError](err); ok {
		t.Fatalf("no check was made: %s can't be judged: %v", url, lack)
	}
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.Env{Patience: 5 * time.Minute,
		New: func(context.Context) (*conformance.Cloud, error) {
			name := "tenon-" + string(uuid.NewUUID())[:8]
			p, err := site.provider(name)
			if err != nil {
				return nil, err
			}
			return &conformance.Cloud{
				Provider: p, Pool: pool(), NodeClass: classRef(),
				// A controller takes longer to come back, and a person to find an instance, than EC2 to show it.
				Restart: func(ctx context.Context) (cloudprovider.Provider, error) {
					if err := site.shown(ctx, ec2types.Filter{Name: new("tag-key"),
						Values: []string{awsv1.ClusterTagPrefix + name}}); err != nil {
						return nil, err
					}
					return site.provider(name)
				},
				Kill: func(ctx context.Context, id string) error {
					id = id[strings.LastIndex(id, "/")+1:]
					this := ec2types.Filter{Name: new("instance-id"), Values: []string{id}}
					if err := site.shown(ctx, this); err != nil {
						return err
					}
					if _, err := site.ec2.TerminateInstances(ctx,
						&ec2.TerminateInstancesInput{InstanceIds: []string{id}}); err != nil {
						return err
					}
					return site.shown(ctx, this, ec2types.Filter{Name: new("instance-state-name"),
						Values: []string{"terminated"}})
				},
			}, nil
		}})
}

// site is an endpoint with what it has of networks and images.
type site struct {
	region string
	ec2    *ec2.Client
	class  *awsv1.EC2NodeClass
	prices *price.Book
}

func newSite(ctx context.Context) (*site, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRetryMaxAttempts(5))
	if err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	s := &site{region: c.Region, ec2: ec2.NewFromConfig(c)}
	if s.prices, err = price.NewBook(s.region, time.Now); err != nil {
		return nil, err
	}
	if err := s.prices.RefreshSpot(ctx, s.ec2); err != nil {
		return nil, lacking("DescribeSpotPriceHistory", err)
	}
	s.class = &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: uuid.NewUUID(), Generation: 1}}
	s.class.Spec.AMIFamily = new(awsv1.AMIFamilyCustom)
	s.class.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeReady, Status: metav1.ConditionTrue,
		Reason: "Ready", ObservedGeneration: s.class.Generation, LastTransitionTime: metav1.Now()}}
	s.class.Status.InstanceProfile = os.Getenv("TENON_TEST_INSTANCE_PROFILE")
	return s, errors.Join(s.findNetwork(ctx), s.findImage(ctx))
}

// findNetwork takes one subnet in each zone of one VPC, and the VPC's default group.
func (s *site) findNetwork(ctx context.Context) error {
	out, err := s.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		return lacking("DescribeSubnets", err)
	}
	if len(out.Subnets) == 0 {
		return &lackError{"a subnet; create one"}
	}
	slices.SortFunc(out.Subnets, func(a, b ec2types.Subnet) int {
		return cmp.Compare(*b.AvailableIpAddressCount, *a.AvailableIpAddressCount)
	})
	vpc, zones := *out.Subnets[0].VpcId, map[string]bool{}
	for _, n := range out.Subnets {
		if *n.VpcId != vpc || zones[*n.AvailabilityZone] {
			continue
		}
		zones[*n.AvailabilityZone] = true
		s.class.Spec.SubnetSelectorTerms = append(s.class.Spec.SubnetSelectorTerms,
			awsv1.SubnetSelectorTerm{ID: *n.SubnetId})
		id := ""
		if n.AvailabilityZoneId != nil {
			id = *n.AvailabilityZoneId
		}
		s.class.Status.Subnets = append(s.class.Status.Subnets, awsv1.Subnet{ID: *n.SubnetId, Zone: *n.AvailabilityZone,
			ZoneID: id})
	}
	groups, err := s.ec2.DescribeSecurityGroups(ctx,
		&ec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{{Name: new("vpc-id"), Values: []string{vpc}}}})
	if err != nil {
		return lacking("DescribeSecurityGroups", err)
	}
	if len(groups.SecurityGroups) == 0 {
		return &lackError{"a security group in " + vpc}
	}
	s.class.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: *groups.SecurityGroups[0].GroupId}}
	return nil
}

// findImage takes the newest image for x86.
func (s *site) findImage(ctx context.Context) error {
	out, err := s.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon", "self"},
		Filters: []ec2types.Filter{
			{Name: new("architecture"), Values: []string{"x86_64"}},
			{Name: new("state"), Values: []string{"available"}}}})
	if err != nil {
		return lacking("DescribeImages", err)
	}
	if len(out.Images) == 0 {
		return &lackError{"an image for x86_64 of amazon or of the account"}
	}
	newest := slices.MaxFunc(out.Images, func(a, b ec2types.Image) int { return cmp.Compare(date(a), date(b)) })
	s.class.Status.AMIs = []awsv1.AMI{{ID: *newest.ImageId, Requirements: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{v1.ArchitectureAmd64}}}}}
	return nil
}

func date(i ec2types.Image) string {
	if i.CreationDate == nil {
		return ""
	}
	return *i.CreationDate
}

// lacking makes an error a lack if it says that the endpoint does not have the call.
func lacking(call string, err error) error {
	switch fault.Code(err) {
	case "InvalidAction", "NotImplemented", "UnknownOperationException", "UnsupportedOperation",
		"InternalFailure", "501":
		return &lackError{fmt.Sprintf("%s: %v", call, err)}
	}
	return err
}

func (s *site) provider(cluster string) (*aws.Provider, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), awsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return aws.New(aws.Options{
		EC2: s.ec2, Classes: fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.class.DeepCopy()).Build(),
		ClusterName: cluster,
		Network:     network.New(network.Options{API: s.ec2, Now: time.Now}), Prices: s.prices,
		Shapes: machine.NewShapes(machine.Settings{Region: s.region, VMMemoryOverheadPercent: 0.075},
			machine.NewMemory(time.Now)),
		Cluster: func(context.Context) (family.Cluster, error) { return family.Cluster{Name: cluster}, nil },
	})
}

// probe tries the life of one instance, so that what the endpoint lacks is told once and not by every check.
func (s *site) probe(ctx context.Context) error {
	p, err := s.provider("tenon-probe-" + string(uuid.NewUUID())[:8])
	if err != nil {
		return err
	}
	if _, err := p.InstanceTypes(ctx, pool()); err != nil {
		return lacking("DescribeInstanceTypes or DescribeInstanceTypeOfferings", err)
	}
	made, err := p.Create(ctx, claim())
	if err != nil {
		return lacking("CreateFleet or CreateLaunchTemplate", err)
	}
	list, err := p.List(ctx)
	if err != nil {
		return lacking("DescribeInstances", err)
	}
	if len(list) != 1 || list[0].ClaimUID != made.ClaimUID {
		return &lackError{"the tags of instances that CreateFleet launches, or filters by them"}
	}
	return p.Delete(ctx, made.ProviderID, made.Owner())
}

// shown waits until EC2 shows an instance that the filters find.
func (s *site) shown(ctx context.Context, filters ...ec2types.Filter) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := s.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filters})
		if err != nil || len(out.Reservations) > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until EC2 shows an instance with %s %v: %w", *filters[len(filters)-1].Name,
				filters[len(filters)-1].Values, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
