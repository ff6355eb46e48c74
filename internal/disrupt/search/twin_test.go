package search_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// smallTown has at most six nodes, and nothing stands in the way of any.
func smallTown(r *rand.Rand) *town {
	for {
		catalog := region(r, 1+r.IntN(4), []int64{1, 2, 4, 8}[:2+r.IntN(3)])
		w := newTown(catalog, threePools(catalog)[:1+r.IntN(2)]...)
		w.populate(r, 6+r.IntN(40))
		w.shrink(r, 0.1, 0.8)
		w.sweep()
		if n := len(w.nodes); n >= 2 && n <= 6 {
			return w
		}
	}
}

// best is the least that the town can cost after some of its nodes have gone at once, by trying all sets of nodes.
func (w *town) best() float64 {
	s, least := w.snapshot(), w.cost()
	for set := 1; set < 1<<len(s.Nodes); set++ {
		var names []string
		price := 0.0
		for i, n := range s.Nodes {
			if set>>i&1 == 1 {
				names = append(names, n.Name)
			} else {
				price += w.claims[n.Name].Price
			}
		}
		if p := schedule.Place(s.Without(names...), schedule.Settings{}); len(p.Unplaced) == 0 {
			least = min(least, price+p.Price)
		}
	}
	return least
}

// The twin tries every set of nodes. A search that settles in steps is held against it.
func TestSettledCostNearBruteForce(t *testing.T) {
	var ratios []float64
	for seed := range uint64(60) {
		w := smallTown(rand.New(rand.NewPCG(seed, 13)))
		best := w.best()
		for rounds := 0; ; rounds++ {
			if p, _ := w.round(disrupt.Settings{SpotToSpot: true, SpotRisk: 1e-9}, nil); len(p.Moves) == 0 {
				break
			} else if rounds > 100 {
				t.Fatalf("seed %d: no end of moves", seed)
			}
		}
		ratios = append(ratios, w.cost()/best)
	}
	slices.Sort(ratios)
	mean := 0.0
	for _, x := range ratios {
		mean += x / float64(len(ratios))
	}
	t.Logf("settled cost by brute force: mean %.3f, median %.3f, 90 %% below %.3f, worst %.3f", mean,
		ratios[len(ratios)/2], ratios[len(ratios)*9/10], ratios[len(ratios)-1])
	if mean > 1.03 || ratios[len(ratios)-1] > 1.3 {
		t.Errorf("the search settles too far above the best: %.3f", ratios)
	}
}

// Whoever carries a proposal out places the pods of all its moves again, at once. That must come to about the same.
func TestProposalsHoldWhenPlacedTogether(t *testing.T) {
	all, lost := 0.0, 0.0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 14))
		catalog := region(r, 10, []int64{2, 4, 8})
		w := newTown(catalog, threePools(catalog)...)
		w.populate(r, 400)
		w.shrink(r, 0.2, 0.8)
		w.sweep()
		s := w.snapshot()
		p := search.Find(s, settings())
		var gone []string
		saving, after := 0.0, 0.0
		for i := range p.Moves {
			saving += p.Moves[i].Before - p.Moves[i].After
			after += p.Moves[i].After
			for _, name := range p.Moves[i].Claims {
				gone = append(gone, s.NodeOf(name).Name)
			}
		}
		again := schedule.Place(s.Without(gone...), schedule.Settings{})
		if len(again.Unplaced) > 0 {
			t.Errorf("seed %d: %d pods find no place: %s", seed, len(again.Unplaced),
				render.Unplaced(&again.Unplaced[0]))
		}
		all, lost = all+saving, lost+max(again.Price-after, 0)
		if more := again.Price - after; more > saving/4 {
			t.Errorf("seed %d: placed together the %d moves save $%.3f less of $%.3f", seed, len(p.Moves), more, saving)
		}
	}
	if lost > all/20 {
		t.Errorf("placed together, moves save $%.3f less of $%.3f", lost, all)
	}
}

// What is under way is not used twice: the room for pods of fenced nodes is not free, and fenced nodes take nobody.
func TestFencedNodesAreLeftOut(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 15))
		catalog := region(r, 4, []int64{2, 4})
		w := newTown(catalog, threePools(catalog)[:1]...)
		w.populate(r, 120)
		w.shrink(r, 0.2, 0.6)
		w.sweep()
		first := search.Find(w.snapshot(), settings())
		if len(first.Moves) < 2 {
			continue
		}
		fenced := make(map[string]bool)
		for _, name := range first.Moves[0].Claims {
			fenced[name] = true
			n, c := *w.nodes[name], *w.claims[name]
			n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: cluster.DisruptedTaint,
				Effect: cluster.NoSchedule})
			c.Move = first.Moves[0].ID
			c.Conditions = append(slices.Clone(c.Conditions), cluster.Condition{Type: cluster.DisruptionReason,
				Status: cluster.True, Reason: "Underutilized"})
			w.nodes[name], w.claims[name] = &n, &c
		}
		s := w.snapshot()
		second := search.Find(s, settings())
		var gone []string
		for i := range second.Moves {
			for _, name := range second.Moves[i].Claims {
				if fenced[name] {
					t.Errorf("seed %d: %s goes twice", seed, name)
				}
				gone = append(gone, name)
			}
			for _, a := range second.Moves[i].Assigned {
				if fenced[a.Host] {
					t.Errorf("seed %d: %s is sent to %s, which is fenced", seed, a.Pod.Name, a.Host)
				}
			}
		}
		for name := range fenced {
			gone = append(gone, name)
		}
		if p := schedule.Place(s.Without(gone...), schedule.Settings{}); len(p.Unplaced) > 0 {
			t.Errorf("seed %d: %d pods find no place", seed, len(p.Unplaced))
		}
	}
}
