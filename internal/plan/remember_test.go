package plan_test

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Where pods go is taken over from the last plan if neither pods nor nodes have changed since, and found anew if they
// have or if nobody knows.
func TestPlacesAreTakenOver(t *testing.T) {
	for _, c := range []struct {
		name                     string
		demand, supply           uint64
		demandAfter, supplyAfter uint64
		want                     []string
	}{
		{"nothing has changed", 3, 4, 3, 4, []string{"w"}},
		{"the first pods and nodes", 1, 1, 1, 1, []string{"w"}},
		{"other pods", 3, 4, 5, 4, []string{"w", "w2"}},
		{"other nodes", 3, 4, 3, 5, []string{"w", "w2"}},
		{"nobody knows about pods", 0, 4, 0, 4, []string{"w", "w2"}},
		{"nobody knows about nodes", 3, 0, 3, 0, []string{"w", "w2"}},
	} {
		x := newScene()
		x.s.DemandRev, x.s.SupplyRev = c.demand, c.supply
		before := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		y := newScene()
		other := *y.w
		other.UID, other.Name = "w2", "w2"
		y.s.Pods = append(y.s.Pods, &other) // which is said to be a change or not
		y.s.DemandRev, y.s.SupplyRev = c.demandAfter, c.supplyAfter
		p := plan.Make(y.s.Seal(), defaultPolicy(), &before, nil)
		var got []string
		for _, a := range p.Placement.Assigned {
			got = append(got, a.Pod.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: places for %v, want %v", c.name, got, c.want)
		}
	}
}

// That a node has drifted is written down before it is replaced, so that a plan which does so looks again soon. Nothing
// else that is written down is a reason.
func TestDriftThatIsToldIsLookedAtSoon(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene)
		tells  bool // something about the claim
		eager  bool
	}{
		{"it has drifted", func(x *scene) { x.claim.Hash, x.claim.HashVersion = "1", "v3" }, true, true},
		{"it has not, and can be consolidated", func(x *scene) {
			x.claim.Hash, x.claim.HashVersion = "2", "v3"
		}, true, false},
		{"it is said to have drifted and has not", func(x *scene) {
			x.claim.Hash, x.claim.HashVersion = "2", "v3"
			x.claim.Conditions = append(x.claim.Conditions, cluster.Condition{Type: cluster.Drifted,
				Status: cluster.True, Reason: "NodePoolDrifted"})
		}, true, false},
	} {
		x := newScene()
		x.s.Pods = x.s.Pods[:1]
		c.change(x)
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		tells := slices.ContainsFunc(p.Commands, func(c command.Command) bool {
			_, ok := c.(command.SetClaim)
			return ok
		})
		if tells != c.tells || p.PlanSoon != c.eager {
			t.Errorf("%s: told %t and eager %t, want %t and %t", c.name, tells, p.PlanSoon, c.tells, c.eager)
		}
	}
}
