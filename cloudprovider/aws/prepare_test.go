package aws_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// fitted are shapes of which each type keeps something else for the kubelet, so that each needs a launch template of
// its own.
type fitted struct {
	offer.Shapes
	shape, kept error
}

func (f fitted) Shape(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (*cloudprovider.InstanceType, error) {
	if f.shape != nil {
		return nil, f.shape
	}
	return f.Shapes.Shape(info, class)
}

func (f fitted) Kept(info *ec2types.InstanceTypeInfo, _ *awsv1.EC2NodeClass) (machine.Kept, error) {
	own := crc32.ChecksumIEEE([]byte(info.InstanceType))
	return machine.Kept{KubeReserved: map[string]string{"memory": fmt.Sprintf("%d", own)}}, f.kept
}

// wishes notes what launches ask for.
type wishes struct {
	aws.EC2API
	templates int
	lines     map[string]int // by type
}

func (w *wishes) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput,
	opts ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	w.templates, w.lines = len(in.LaunchTemplateConfigs), map[string]int{}
	for _, c := range in.LaunchTemplateConfigs {
		for _, o := range c.Overrides {
			w.lines[string(o.InstanceType)]++
		}
	}
	return w.EC2API.CreateFleet(ctx, in, opts...)
}

// A launch names no more launch templates than EC2 takes, and of the types that it names every zone.
func TestALaunchNamesFiftyTemplatesAtMost(t *testing.T) {
	seen := &wishes{}
	_, p := start(t, setup{families: []string{"t3", "t3a", "m5", "m5a", "m5d", "c5", "c5a", "c5d", "r5", "r5a"}},
		func(o *aws.Options) {
			o.Shapes = fitted{Shapes: o.Shapes}
			seen.EC2API, o.EC2 = o.EC2, seen
		})
	_, err := p.Create(t.Context(), claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand),
		in(corev1.LabelArchStable, v1.ArchitectureAmd64)))
	if err != nil {
		t.Fatal(err)
	}
	if seen.templates != 50 || len(seen.lines) != 50 {
		t.Errorf("it names %d launch templates for %d types, want 50 for 50", seen.templates, len(seen.lines))
	}
	for kind, zones := range seen.lines {
		if zones != 3 {
			t.Errorf("it asks for %s in %d zones, want 3", kind, zones)
		}
	}
}

// groupless answers one question about placement groups, which is for the list of types, and no more.
type groupless struct {
	aws.Network
	asked bool
	then  error
}

func (g *groupless) PlacementGroup(context.Context, *awsv1.EC2NodeClass) (*network.PlacementGroup, error) {
	if g.asked {
		return nil, g.then
	}
	g.asked = true
	return nil, nil
}
