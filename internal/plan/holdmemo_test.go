package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// holds says for whom no node is bought because nodes were in vain, and in which words that would be told.
func holds(p *plan.Plan) string {
	text := ""
	for i := range p.Placement.Unplaced {
		u := &p.Placement.Unplaced[i]
		if b := u.Held.Setback; b != nil {
			text += fmt.Sprintf("%s: %d tries, next %s, %d coming, %d in vain, %s, trying %t\n", u.Pod.Name, b.Tries, b.Next.Format(time.TimeOnly), b.Coming, b.InVain(), u.Held.Failure.Claim, u.Held.Trying)
		}
	}
	return text
}

// Neither pods nor nodes have changed, but what is known of nodes in vain has: a plan that remembers the last one says the same as
// one that does not.
func TestHoldsAreTakenOverOnlyIfTheyAreTheSame(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene, b *cluster.Setback)
	}{
		{"nothing", func(*scene, *cluster.Setback) {}},
		{"another try has failed", func(_ *scene, b *cluster.Setback) { b.Tries = 3 }},
		{"the next try is later", func(_ *scene, b *cluster.Setback) { b.Next = b.Next.Add(time.Minute) }},
		{"a claim is coming", func(_ *scene, b *cluster.Setback) { b.Coming = 1 }},
		{"a node stands in vain", func(_ *scene, b *cluster.Setback) { b.Standing = []string{"v"} }},
		{"another node shows the cause", func(_ *scene, b *cluster.Setback) { b.Failures[0].Claim = "v" }},
		{"it is time for a try", func(x *scene, b *cluster.Setback) { x.s.Now = b.Next }},
		{"the nodes are of use", func(x *scene, _ *cluster.Setback) { x.s.Setbacks = nil }},
	} {
		look := func(change func(*scene, *cluster.Setback)) *cluster.Snapshot {
			x := newScene()
			x.inVain(time.Minute)
			x.s.Demand, x.s.Supply = 7, 7
			x.s.Nodes = x.s.Nodes[:1] // nowhere else to go
			x.node.Allocatable = x.p.Class.Requests
			other := *x.w
			other.UID, other.Name = "w2", "w2"
			x.s.Pods = append(x.s.Pods, &other)
			change(x, x.s.Setbacks["web"])
			return x.s.Seal()
		}
		before := plan.Make(look(func(*scene, *cluster.Setback) {}), defaultPolicy(), nil, nil)
		s := look(c.change)
		fresh, known := plan.Make(s, defaultPolicy(), nil, nil), plan.Make(s, defaultPolicy(), &before, nil)
		if holds(&before) == "" {
			t.Fatal("nobody is held to begin with")
		}
		if a, b := holds(&known), holds(&fresh); a != b || len(creates(&known)) != len(creates(&fresh)) {
			t.Errorf("%s: with a memory %d nodes are made and\n%swithout %d and\n%s", c.name, len(creates(&known)), a, len(creates(&fresh)), b)
		}
	}
}
