package destination

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// When a placement of moves may be taken over from the last plan: only if nothing is different that it depends on.
func TestWhenAPlacementIsTakenOver(t *testing.T) {
	pods := func(uids ...string) (out []*cluster.Pod) {
		for _, uid := range uids {
			out = append(out, &cluster.Pod{UID: uid})
		}
		return out
	}
	type asked struct {
		moves, gone, avoid []string
		room               Others
		homeless           []*cluster.Pod
		demand, supply     uint64
	}
	first := func() asked {
		return asked{[]string{"a", "b"}, []string{"n1", "n2", "n1"}, []string{"n3"},
			Others{PlacedOn: map[string][]*cluster.Pod{"n4": pods("p")}, Handled: map[string]bool{"p": true}},
			pods("h"), 1, 1}
	}
	question := func(a asked) Query {
		x := NewVerifier(&cluster.Snapshot{DemandRev: a.demand, SupplyRev: a.supply}, disrupt.Settings{})
		x.podsBetweenNodes = a.homeless
		var moves []*Move
		for _, id := range a.moves {
			moves = append(moves, &Move{ID: id})
		}
		return x.QueryFor(moves, a.gone, a.avoid, &a.room)
	}
	for _, c := range []struct {
		name   string
		change func(a *asked)
		want   bool
	}{
		{"nothing", func(a *asked) {}, true},
		{"the order of nodes that are gone", func(a *asked) { a.gone = []string{"n2", "n1"} }, true},
		{"other pods with the same UIDs", func(a *asked) {
			a.homeless, a.room.PlacedOn["n4"] = pods("h"), pods("p")
		}, true},
		{"a move", func(a *asked) { a.moves[1] = "c" }, false},
		{"a node that is gone", func(a *asked) { a.gone = a.gone[:1] }, false},
		{"a node that takes no pods", func(a *asked) { a.avoid = nil }, false},
		{"a pod that is between two nodes", func(a *asked) { a.homeless = pods("x") }, false},
		{"no pod is between two nodes", func(a *asked) { a.homeless = nil }, false},
		{"a pod that others place", func(a *asked) { a.room.PlacedOn["n4"] = pods("x") }, false},
		{"where others place a pod", func(a *asked) { a.room.PlacedOn["n5"] = pods("p") }, false},
		{"a pod that others look after", func(a *asked) { a.room.Handled = map[string]bool{"x": true} }, false},
		{"pods", func(a *asked) { a.demand = 2 }, false},
		{"nodes", func(a *asked) { a.supply = 2 }, false},
	} {
		before, now := first(), first()
		c.change(&now)
		x, y := question(before), question(now)
		if got := y.SameAnswer(&x); got != c.want {
			t.Errorf("different is %s: the same %t, want %t", c.name, got, c.want)
		}
	}
	for _, change := range []func(a *asked){func(a *asked) { a.demand = 0 }, func(a *asked) { a.supply = 0 }} {
		a, b := first(), first()
		change(&a)
		change(&b)
		if x, y := question(a), question(b); x.SameAnswer(&y) {
			t.Error("a placement is taken over although nobody knows what has changed")
		}
	}
}
