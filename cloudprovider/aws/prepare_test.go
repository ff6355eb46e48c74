package aws_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// fitted are shapes of which each type keeps something else for the kubelet, so that each needs a launch template of its own.
type fitted struct {
	aws.Shapes
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

func (w *wishes) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, opts ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
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
	_, p := start(t, setup{families: []string{"t3", "t3a", "m5", "m5a", "m5d", "c5", "c5a", "c5d", "r5", "r5a"}}, func(o *aws.Options) {
		o.Shapes = fitted{Shapes: o.Shapes}
		seen.EC2API, o.EC2 = o.EC2, seen
	})
	_, err := p.Create(t.Context(), claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand), in(corev1.LabelArchStable, v1.ArchitectureAmd64)))
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

// groupless answers so many questions about placement groups, and no more.
type groupless struct {
	aws.Network
	left int
}

func (g *groupless) PlacementGroup(context.Context, *awsv1.EC2NodeClass) (*network.PlacementGroup, error) {
	if g.left--; g.left < 0 {
		return nil, errors.New("no answer about placement groups")
	}
	return nil, nil
}

// What a claim needs to know for its launch and can't find out is told, and nothing is launched without it.
func TestWhatCannotBeWorkedOutIsTold(t *testing.T) {
	for want, change := range map[string]func(*aws.Options){
		"no answer about placement groups": func(o *aws.Options) { o.Network = &groupless{o.Network, 0} },
		"answer about placement groups":    func(o *aws.Options) { o.Network = &groupless{o.Network, 1} }, // the first is for the list of types
		"types are not understood": func(o *aws.Options) {
			o.Shapes = fitted{Shapes: o.Shapes, shape: errors.New("types are not understood")}
		},
		"nobody knows what is kept": func(o *aws.Options) {
			o.Shapes = fitted{Shapes: o.Shapes, kept: errors.New("nobody knows what is kept")}
		},
		"no cluster far and wide": func(o *aws.Options) {
			o.Cluster = func(context.Context) (aws.Cluster, error) {
				return aws.Cluster{}, errors.New("no cluster far and wide")
			}
		},
	} {
		w, p := start(t, setup{families: []string{"m5"}}, change)
		got, err := p.Create(t.Context(), claim())
		if err == nil || !strings.Contains(err.Error(), want) || got != nil || len(w.alive()) > 0 {
			t.Errorf("%s: %v, and %d instances run", want, err, len(w.alive()))
		}
	}
}
