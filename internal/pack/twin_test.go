package pack_test

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/pack"
)

// What Solve may cost above the optimum on the seeds below, as measured and rounded up. If a change makes it worse the
// test fails; if it makes it better, lower the bounds.
const (
	worstGap   = 0.18
	averageGap = 0.0006
)

// The twin tries every way to put up to seven pods on nodes. No answer is cheaper, and the bound is no higher.
func TestPriceAgainstExhaustiveTwin(t *testing.T) {
	sum, worst, worstSeed, optimal, counted := 0.0, 0.0, int64(0), 0, 0
	for seed := range int64(1500) {
		p := small(rand.New(rand.NewSource(seed)))
		var pods []int
		for i := range p.Items {
			if homeOf(p, i) < 0 {
				p.Items[i].Count = 0
			}
			for range p.Items[i].Count {
				pods = append(pods, i)
			}
		}
		if len(pods) == 0 {
			continue
		}
		s := pack.Solve(p)
		if err := check(p, &s); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		best := cheapest(p, pods, nil)
		gap := s.Price/best - 1
		if gap < -1e-9 {
			t.Fatalf("seed %d: we pay %g, the optimum is %g", seed, s.Price, best)
		}
		if bound := pack.Bound(p); bound > best*(1+1e-9) {
			t.Fatalf("seed %d: the bound is %g, the optimum %g", seed, bound, best)
		}
		counted++
		sum += gap
		if gap < 1e-9 {
			optimal++
		}
		if gap > worst {
			worst, worstSeed = gap, seed
		}
	}
	average := sum / float64(counted)
	t.Logf("%d problems: %.1f%% optimal, on average %.2f%% above the optimum, at worst %.1f%% (seed %d)",
		counted, 100*float64(optimal)/float64(counted), 100*average, 100*worst, worstSeed)
	if counted < 1000 {
		t.Errorf("only %d problems had something to place", counted)
	}
	if worst > worstGap || average > averageGap {
		t.Errorf("worse than it was: worst %.3f (bound %.3f), average %.4f (bound %.4f)", worst, worstGap, average,
			averageGap)
	}
}

// small has up to seven pods and up to six bin types.
func small(r *rand.Rand) *pack.Problem {
	c := recipe{stacks: 1 + r.Intn(6), offers: 1 + r.Intn(6), most: 2, sites: r.Intn(2) == 0, marks: r.Intn(3) == 0}
	p := generate(r, c)
	left := 7
	for i := range p.Items {
		p.Items[i].Count = min(p.Items[i].Count, left)
		left -= p.Items[i].Count
	}
	return p
}

// cheapest gives each pod in turn to one of the nodes so far or to a new one.
func cheapest(p *pack.Problem, pods []int, nodes [][]int) float64 {
	if len(pods) == 0 {
		sum := 0.0
		for _, node := range nodes {
			sum += priceOf(p, node)
		}
		return sum
	}
	best := cheapest(p, pods[1:], append(nodes, []int{pods[0]}))
	for i := range nodes {
		old := nodes[i]
		nodes[i] = append(old[:len(old):len(old)], pods[0])
		best = min(best, cheapest(p, pods[1:], nodes))
		nodes[i] = old
	}
	return best
}

// priceOf is the price of the cheapest bin type that holds the pods.
func priceOf(p *pack.Problem, pods []int) float64 {
	b := pack.Bin{Times: 1}
	for _, s := range slices.Sorted(slices.Values(pods)) {
		if n := len(b.Parts); n > 0 && b.Parts[n-1].Item == s {
			b.Parts[n-1].Count++
		} else {
			b.Parts = append(b.Parts, pack.Part{Item: s, Count: 1})
		}
	}
	best := math.Inf(1)
	for o := range p.BinTypes {
		if b.BinType = o; p.BinTypes[o].Price < best && checkNode(p, &b) == nil {
			best = p.BinTypes[o].Price
		}
	}
	return best
}
