package launch

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// wisher is a claim that can be launched on types that cost as much as their index, all from one template.
func wisher(uid string, kinds ...string) *Request {
	c := &v1.NodeClaim{}
	c.UID = types.UID(uid)
	s := &launchSpec{templates: map[string]*template.Template{"lt": {Name: "lt"}}}
	for i, kind := range kinds {
		s.Lines = append(s.Lines, launchOption{Template: "lt", Type: kind, Zone: "a", Price: float64(i + 1)})
	}
	return &Request{claim: c, spec: s, isAbandoned: func() bool { return false }}
}

func TestParties(t *testing.T) {
	for _, tc := range []struct {
		name   string
		wishes [][]string
		tried  []string
		want   []int // members of each group
		lines  []int // and how much they have in common
	}{
		{"equal", [][]string{{"a", "b"}, {"a", "b"}}, nil, []int{2}, []int{2}},
		{"one wants less", [][]string{{"a", "b", "c", "d"}, {"a", "b"}}, nil, []int{2}, []int{2}},
		{"too little in common", [][]string{{"a", "b", "c", "d"}, {"a"}}, nil, []int{1, 1}, []int{4, 1}},
		{"another cheapest", [][]string{{"a", "b", "c"}, {"b", "a", "c"}}, nil, []int{1, 1}, []int{3, 3}},
		{"the cheapest is not in common", [][]string{{"a", "b", "c"}, {"b", "c"}}, nil, []int{1, 1}, []int{3, 2}},
		{"it was tried", [][]string{{"a", "b", "c"}, {"b", "c"}}, []string{"a"}, []int{2}, []int{2}},
		{"all was tried", [][]string{{"a", "b"}, {"a"}}, []string{"a"}, []int{1}, []int{1}},
		{"nobody is worn down step by step", [][]string{{"a", "b", "c", "d", "e", "f", "g", "h"}, {"a", "b", "c", "d"},
			{"a", "b"}}, nil, []int{2, 1}, []int{4, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var list []*Request
			for i, kinds := range tc.wishes {
				list = append(list, wisher(string(rune('a'+i)), kinds...))
			}
			tried := map[optionKey]bool{}
			for _, kind := range tc.tried {
				tried[optionKey{"lt", kind, "a"}] = true
			}
			all, done := groupLaunches(list, tried)
			var members, lines []int
			total := len(done)
			for _, p := range all {
				members, lines, total = append(members, len(p.requests)), append(lines, len(p.spec.Lines)), total+
					len(p.requests)
			}
			if !slices.Equal(members, tc.want) || !slices.Equal(lines, tc.lines) || total != len(list) {
				t.Errorf("parties of %v with %v lines, %d of %d claims", members, lines, total, len(list))
			}
		})
	}
}

// roomy is a network with two subnets in a zone whose counts never change.
type roomy struct {
	Network
	now *time.Time
}

func (n roomy) Subnets(context.Context, *awsv1.EC2NodeClass) ([]network.Subnet, error) {
	return []network.Subnet{{ID: "subnet-1", Zone: "a", FreeIPs: 500, ReadAt: *n.now}, {ID: "subnet-2", Zone: "a",
		FreeIPs: 100, ReadAt: *n.now}}, nil
}

func (roomy) ForgetSubnet(string) {}

// TestAvoidedSubnets has EC2 refuse a subnet that its count makes look best.
func TestAvoidedSubnets(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSubnetChooser(roomy{now: &now}, func() time.Time { return now })
	spec := &launchSpec{Lines: []launchOption{{Zone: "a", addresses: 1}}}
	chosen := func() subnetChoice {
		picks, err := s.choose(t.Context(), spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		s.done(spec, picks, 1, nil)
		return picks["a"]
	}
	if p := chosen(); p != (subnetChoice{"subnet-1", true}) {
		t.Fatalf("first %v is chosen", p)
	}
	s.avoid("subnet-1")
	now = now.Add(50 * time.Millisecond)
	if p := chosen(); p != (subnetChoice{"subnet-2", false}) {
		t.Errorf("after EC2 has refused subnet-1, %v is chosen", p)
	}
	s.avoid("subnet-2")
	now = now.Add(50 * time.Millisecond)
	if p := chosen(); p != (subnetChoice{"subnet-1", false}) {
		t.Errorf("if there is no other, %v is chosen", p)
	}
	now = now.Add(avoidedFor)
	if p := chosen(); p != (subnetChoice{"subnet-1", true}) {
		t.Errorf("after a while %v is chosen", p)
	}
}
