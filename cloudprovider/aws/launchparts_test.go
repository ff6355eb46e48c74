package aws

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// wisher is a claim that can be launched on types that cost as much as their index, all from one template.
func wisher(uid string, kinds ...string) *launchRequest {
	c := &v1.NodeClaim{}
	c.UID = types.UID(uid)
	s := &launchSpec{templates: map[string]*template.Template{"lt": {Name: "lt"}}}
	for i, kind := range kinds {
		s.Lines = append(s.Lines, launchOption{Template: "lt", Type: kind, Zone: "a", Price: float64(i + 1)})
	}
	return &launchRequest{claim: c, spec: s, isAbandoned: func() bool { return false }}
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
			var list []*launchRequest
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

// TestGivenOnce deals out the instances of a launch twice, once by a look that saw a part of it.
func TestGivenOnce(t *testing.T) {
	o := newOwnership()
	r := &fleetRequest{}
	list := []*launchRequest{wisher("a", "x"), wisher("b", "x"), wisher("c", "x")}
	if elsewhere := o.addToLaunch(r, "lab", list); len(elsewhere) != 0 {
		t.Fatalf("%d claims are elsewhere", len(elsewhere))
	}
	if elsewhere := o.addToLaunch(&fleetRequest{}, "lab", list[:1]); len(elsewhere) != 1 {
		t.Error("a claim is part of two launches")
	}
	o.noteLost(r, errors.New("lost"), time.Unix(0, 0), time.Unix(0, 0))
	o.mu.Lock()
	o.assign(&assignment{claimIdentity: claimIdentity{uid: "c"}, id: "i-1"})
	o.assign(&assignment{claimIdentity: claimIdentity{uid: "a"}, id: "i-1"}) // too late
	o.mu.Unlock()
	if _, mine, err := o.mayAskAgain(r, time.Unix(1, 0)); !mine || err != nil {
		t.Fatalf("the launch is not ours to ask for: %v", err)
	}
	given := o.assignLaunched(r, []fleetInstance{{id: "i-1"}, {id: "i-2"}, {id: "i-3"}},
		func(q *launchRequest, l fleetInstance) *assignment {
			return &assignment{claimIdentity: claimIdentity{uid: q.claim.UID}, id: l.id,
				createAnswer: &cloudprovider.Instance{ProviderID: l.id}}
		}, time.Unix(1, 0))
	if len(given) != 2 {
		t.Errorf("%d instances were given away, want 2", len(given))
	}
	seen := map[string]types.UID{}
	for uid, a := range o.byClaim {
		if other, twice := seen[a.id]; twice || o.byInstance[a.id].uid != uid || a.createAnswer == nil {
			t.Errorf("%s is that of %s and %s", a.id, uid, other)
		}
		seen[a.id] = uid
	}
	if len(seen) != 3 || o.byClaim["c"].id != "i-1" || len(o.launching)+len(o.callsUnderWay) != 0 {
		t.Errorf("given away are %v; %d are being launched", seen, len(o.launching))
	}
}

// TestGoneForGood forgets an instance: the next launch for its claim must be another to EC2.
func TestGoneForGood(t *testing.T) {
	for name, end := range map[string]func(*ownership){
		"EC2 says so":      func(o *ownership) { o.forget("i-1", time.Unix(9000, 0)) },
		"it is not listed": func(o *ownership) { o.prune(nil, time.Unix(9000, 0)) },
		"it shuts down":    func(o *ownership) { o.leaveClaim("i-1", time.Unix(9000, 0)) },
	} {
		o := newOwnership()
		o.assign(&assignment{claimIdentity: claimIdentity{uid: "a"}, id: "i-1", launchedAt: time.Unix(1000, 0)})
		end(o)
		if o.byClaim["a"] != nil || o.tries["a"].times != 1 {
			t.Errorf("%s: the claim has %v and was tried %d times", name, o.byClaim["a"], o.tries["a"].times)
		}
	}
}
