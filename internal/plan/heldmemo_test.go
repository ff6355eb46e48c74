package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// holds says for whom no node is bought because nodes are unused, and in which words that would be told.
func holds(p *plan.Plan) string {
	text := ""
	for i := range p.Placement.Unplaced {
		u := &p.Placement.Unplaced[i]
		if b := u.Held.Tries; b != nil {
			text += fmt.Sprintf("%s: %d tries, next %s, %d coming, %d unused, %s, trying %t\n", u.Pod.Name,
				b.FailedTries, b.NextTry.Format(time.TimeOnly), b.ComingClaims, b.CountUnused(), u.Held.Failure.Claim,
				u.Held.TryUnderWay)
		}
	}
	return text
}

// Neither pods nor nodes have changed, but what is known of unused nodes has: a plan that remembers the last one says
// the same as one that does not.
func TestHoldsAreTakenOverOnlyIfTheyAreTheSame(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene, b *cluster.WorkloadTries)
	}{
		{"nothing", func(*scene, *cluster.WorkloadTries) {}},
		{"another try has failed", func(_ *scene, b *cluster.WorkloadTries) { b.FailedTries = 3 }},
		{"the next try is later", func(_ *scene, b *cluster.WorkloadTries) { b.NextTry = b.NextTry.Add(time.Minute) }},
		{"a claim is coming", func(_ *scene, b *cluster.WorkloadTries) { b.ComingClaims = 1 }},
		{"a node is unused", func(_ *scene, b *cluster.WorkloadTries) { b.UnusedClaims = []string{"v"} }},
		{"another node shows the cause", func(_ *scene, b *cluster.WorkloadTries) { b.Failures[0].Claim = "v" }},
		{"it is time for a try", func(x *scene, b *cluster.WorkloadTries) { x.s.Now = b.NextTry }},
		{"the nodes are of use", func(x *scene, _ *cluster.WorkloadTries) { x.s.WorkloadTries = nil }},
	} {
		look := func(change func(*scene, *cluster.WorkloadTries)) *cluster.Snapshot {
			x := newScene()
			x.hasUnused(time.Minute)
			x.s.DemandRev, x.s.SupplyRev = 7, 7
			x.s.Nodes = x.s.Nodes[:1] // nowhere else to go
			x.node.Allocatable = x.p.Class.Requests
			other := *x.w
			other.UID, other.Name = "w2", "w2"
			x.s.Pods = append(x.s.Pods, &other)
			change(x, x.s.WorkloadTries["web"])
			return x.s.Seal()
		}
		before := plan.Make(look(func(*scene, *cluster.WorkloadTries) {}), defaultPolicy(), nil, nil)
		s := look(c.change)
		fresh, known := plan.Make(s, defaultPolicy(), nil, nil), plan.Make(s, defaultPolicy(), &before, nil)
		if holds(&before) == "" {
			t.Fatal("nobody is held to begin with")
		}
		if a, b := holds(&known), holds(&fresh); a != b || len(creates(&known)) != len(creates(&fresh)) {
			t.Errorf("%s: with a memory %d nodes are made and\n%swithout %d and\n%s", c.name, len(creates(&known)), a,
				len(creates(&fresh)), b)
		}
	}
}
