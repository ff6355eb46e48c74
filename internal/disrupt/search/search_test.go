package search_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// street is a town of one pool whose nodes are all of the cheapest offering, with pods of a quarter of a core each.
func street(pods ...int) *town {
	catalog := region(rand.New(rand.NewPCG(1, 1)), 1, []int64{4})
	w := newTown(catalog, threePools(catalog)[0])
	best := slices.MinFunc(catalog.Offerings, func(a, b cluster.Offering) int { return cmp.Compare(a.Price, b.Price) })
	class := &cluster.PodClass{Key: "small", Terms: []require.Set{nil}, Requests: resource.Vector{resource.CPU: 250,
		resource.Memory: 256 << 20, resource.Pods: 1}}
	for i, n := range pods {
		name := w.build(w.pools[0], &best, nil)
		for j := range n {
			id := fmt.Sprintf("pod-%d-%02d", i, j)
			w.pods[id] = &cluster.Pod{UID: id, Name: id, Namespace: "default", Class: class, Owner: "rs", Node: name,
				Ready: true, EvictionCost: 1}
		}
	}
	return w
}

// goes lists the nodes that a search would take away, move by move.
func (w *town) goes() (out [][]string) {
	p := search.Find(w.snapshot(), settings())
	for i := range p.Moves {
		out = append(out, p.Moves[i].Claims)
	}
	return out
}

func (w *town) allow(nodes int) { w.pools[0].Budgets = []cluster.Budget{{Nodes: nodes, Active: true}} }

func TestOfEqualSavingsTheLeastDisturbanceWins(t *testing.T) {
	w := street(6, 2, 6)
	w.allow(1)
	if got := w.goes(); len(got) != 1 || !slices.Equal(got[0], []string{"node-000002"}) {
		t.Errorf("%v go, want the node with two pods", got)
	}
	w = street(3, 3, 3)
	w.allow(1)
	for i, cost := range []float64{5, 1, 5} {
		for j := range 3 {
			w.pods[fmt.Sprintf("pod-%d-%02d", i, j)].EvictionCost = cost
		}
	}
	if got := w.goes(); len(got) != 1 || !slices.Equal(got[0], []string{"node-000002"}) {
		t.Errorf("%v go, want the node whose pods cost the least to evict", got)
	}
}

func TestManyNodesBecomeFew(t *testing.T) {
	w := street(5, 5, 5, 5, 5, 5)
	p := search.Find(w.snapshot(), settings())
	gone := 0
	for i := range p.Moves {
		gone += len(p.Moves[i].Claims)
	}
	if gone != 4 { // thirty pods fit on two nodes, which have room for fifteen each
		t.Errorf("%d nodes go in %d moves, want four of the six", gone, len(p.Moves))
	}
}

func TestBudgetsBoundWhatGoes(t *testing.T) {
	for _, allowed := range []int{0, 1, 2} {
		w := street(1, 1, 1, 1, 1, 1)
		w.allow(allowed)
		p := search.Find(w.snapshot(), settings())
		blocked := 0
		for _, s := range p.Blocked {
			if s.Reason == disrupt.BudgetBlocks {
				blocked++
			}
		}
		if len(p.Moves) != allowed || blocked == 0 {
			t.Errorf("a budget of %d: %d moves, %d nodes say that budgets keep them", allowed, len(p.Moves), blocked)
		}
	}
}

// A node that is still being filled is no place for pods of others, until it is quiet.
func TestNoisyNodesTakeNobody(t *testing.T) {
	w := street(1, 12)
	w.pools[0].ConsolidateAfter = cluster.NillableDuration{For: 2 * time.Hour}
	w.claims["node-000001"].LastPodEvent = noon().Add(-3 * time.Hour)
	w.claims["node-000001"].Conditions[2].Since = noon().Add(-3 * time.Hour)
	p := search.Find(w.snapshot(), settings())
	if len(p.Moves) != 0 || !p.WakeAt.Equal(noon().Add(time.Hour)) {
		t.Errorf("%d moves, and the search wakes at %s; want none before the other node is quiet",
			len(p.Moves), p.WakeAt)
	}
	w.claims["node-000002"].LastPodEvent = noon().Add(-3 * time.Hour)
	w.claims["node-000002"].Conditions[2].Since = noon().Add(-3 * time.Hour)
	if got := w.goes(); len(got) != 1 || !slices.Equal(got[0], []string{"node-000001"}) {
		t.Errorf("%v go, want the first node", got)
	}
}

// Whoever stays is told what the best exchange would save, and what it would have to.
func TestStaysSayWhatIsMissing(t *testing.T) {
	w := street(14)
	p := search.Find(w.snapshot(), settings())
	if len(p.Moves) != 0 || len(p.Blocked) != 1 {
		t.Fatalf("%d moves and %d stays, want one stay", len(p.Moves), len(p.Blocked))
	}
	if s := p.Blocked[0]; s.Reason != disrupt.NothingCheaper && s.Reason != disrupt.SavesTooLittle ||
		s.NeededSaving <= 0 || s.Saving >= s.NeededSaving {
		t.Errorf("a full node stays because of %+v", s)
	}
}

// A node to which pods go whose own is on its way out is not taken away at the same time: they would be left with
// nowhere to go.
func TestWhoTakesPodsInStays(t *testing.T) {
	w := street(1, 2, 12)
	if got := w.goes(); len(got) == 0 {
		t.Fatal("nobody goes while all is quiet")
	}
	w.claims["node-000001"].Deleting = noon()
	p := search.Find(w.snapshot(), settings())
	blocked := slices.IndexFunc(p.Blocked, func(s disrupt.BlockedNode) bool { return s.Node == "node-000002" })
	if blocked < 0 || p.Blocked[blocked].Reason != disrupt.PodsExpected {
		t.Errorf("moves %+v, stays %+v; want the second node to wait for the first one's pod", p.Moves, p.Blocked)
	}
}
