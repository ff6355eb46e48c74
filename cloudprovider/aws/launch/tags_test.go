package launch

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// What a class may have of tags leaves room for all that the controller adds: package nodeclass and the reference count
// on it.
func TestTagsThatAreAdded(t *testing.T) {
	p := &Launcher{o: Options{ClusterName: "lab"}}
	for _, tc := range []struct {
		own      int
		name     bool // the user's tags have a Name
		together int  // how many claims a call can be for
	}{{32, false, 110}, {33, false, 99}, {41, false, 11}, {42, false, 0}, {43, false, 0}, {44, false, 0},
		{45, true, 0}} {
		class := &awsv1.EC2NodeClass{}
		class.Spec.Tags = map[string]string{}
		for i := range tc.own {
			class.Spec.Tags[fmt.Sprint(i)] = "x"
		}
		later := 1 // Name, when the node has joined
		if tc.name {
			delete(class.Spec.Tags, "0")
			class.Spec.Tags[awsv1.NameTagKey], later = "x", 0
		}
		s := &launchSpec{}
		s.Tags = p.tags(class, "general")
		if got := s.claimRoom(); got != tc.together {
			t.Errorf("%d tags leave room for %d claims, want %d", tc.own, got, tc.together)
		}
		claim := &v1.NodeClaim{}
		claim.Name, claim.UID = "general-1", "uid-1"
		r := &fleetRequest{Launch: ownership.NewLaunch("lab", []ownership.Claim{{Name: claim.Name, UID: claim.UID}},
			func(types.UID) int {
				return 0
			}), spec: s,
			requests: []*Request{{claim: claim}}}
		for _, spec := range append(r.tagSpecs("0f0e0d0c-0b0a-4908-8706-050403020100"),
			(&template.Template{Name: "a", Tags: s.Tags}).Input().TagSpecifications...) {
			n := len(spec.Tags)
			if spec.ResourceType == ec2types.ResourceTypeInstance {
				n += later
			}
			if n > ownership.MostTags {
				t.Errorf("with %d tags of the user a %s has %d", tc.own, spec.ResourceType, n)
			}
		}
	}
}
