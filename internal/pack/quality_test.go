package pack_test

import (
	"cmp"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/pack"
)

// firstFitDecreasing is what the peers do: pods by CPU, then memory, from large to small; each on the first node of
// which some bin type can hold all; in the end each node becomes the cheapest such bin type.
func firstFitDecreasing(p *pack.Problem) (price float64) {
	var pods []int
	for i := range p.Items {
		if homeOf(p, i) >= 0 {
			pods = append(pods, slices.Repeat([]int{i}, p.Items[i].Count)...)
		}
	}
	slices.SortStableFunc(pods, func(a, b int) int {
		x, y := &p.Items[a].Need, &p.Items[b].Need
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	var nodes [][]int
	for _, pod := range pods {
		done := false
		for i := range nodes {
			if with := append(nodes[i][:len(nodes[i]):len(nodes[i])], pod); priceOf(p, with) < 1e300 {
				nodes[i], done = with, true
				break
			}
		}
		if !done {
			nodes = append(nodes, []int{pod})
		}
	}
	for _, n := range nodes {
		price += priceOf(p, n)
	}
	return price
}

func TestNeverDearerThanFirstFit(t *testing.T) {
	cheaper, n := 0.0, 0
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		p := generate(r, recipe{stacks: 1 + r.Intn(10), offers: 1 + r.Intn(10), most: 1 + r.Intn(8),
			sites: r.Intn(2) == 0, marks: r.Intn(3) == 0})
		plain := firstFitDecreasing(p)
		s := pack.Solve(p)
		if s.Price > plain*(1+1e-9) {
			t.Errorf("seed %d: we pay %g, first fit %g", seed, s.Price, plain)
		}
		if plain > 0 {
			cheaper += 1 - s.Price/plain
			n++
		}
	}
	t.Logf("%.1f%% cheaper on average", 100*cheaper/float64(n))
}

// On fleets as they are found the price is near what no answer can undercut.
func TestNearTheBound(t *testing.T) {
	for _, c := range []struct {
		name string
		p    *pack.Problem
		most float64
	}{
		{"fleet-2000", fleet(2, 2000, 150, 4), 0.04},
		{"plain-2000", plainFleet(2, 2000, 150), 0.04},
		{"memory-heavy-5000", fleet(5, 5000, 200, 12), 0.03},
		{"gpu-mix-3000", gpuMix(7, 3000), 0.01},
		{"fleet-20000", fleet(3, 20000, 400, 4), 0.03},
	} {
		s := pack.Solve(c.p)
		if err := check(c.p, &s); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if gap := s.Price/pack.Bound(c.p) - 1; gap > c.most || gap < 0 {
			t.Errorf("%s: %.2f%% above the bound, want at most %.0f%%", c.name, 100*gap, 100*c.most)
		}
	}
}

func TestSameProblemSameAnswer(t *testing.T) {
	for seed := range int64(200) {
		make := func() *pack.Problem {
			r := rand.New(rand.NewSource(seed))
			return generate(r, everything(r))
		}
		a, b := make(), make()
		if x, y := pack.Solve(a), pack.Solve(b); !reflect.DeepEqual(x, y) {
			t.Fatalf("seed %d: two answers", seed)
		}
		if x, y := pack.Bound(a), pack.Bound(b); x != y {
			t.Fatalf("seed %d: two bounds, %v and %v", seed, x, y)
		}
	}
}

// Solve leaves the problem as it was.
func TestProblemIsNotChanged(t *testing.T) {
	for seed := range int64(100) {
		make := func() *pack.Problem {
			r := rand.New(rand.NewSource(seed))
			p := generate(r, everything(r))
			p.Suits = nil
			return p
		}
		p := make()
		pack.Solve(p)
		pack.Bound(p)
		if !reflect.DeepEqual(p, make()) {
			t.Fatalf("seed %d: changed", seed)
		}
	}
}

// Preferences choose among bin types of about the same price: they are met where it costs nothing, and neither the
// price nor the number of nodes grows much.
func TestWishesAreMetWhereTheyCostLittle(t *testing.T) {
	p := fleet(11, 2000, 120, 4)
	zones := slices.Compact(slices.Sorted(slices.Values(ec2().zone)))
	d := &desk{p: p, sites: map[want]int{}}
	set := d.site(want{arch: "amd64", onDemand: true})
	for _, zone := range zones[:3] {
		row := make([]float32, len(p.BinTypes))
		for o := range row {
			if ec2().zone[o] == zone {
				row[o] = 1
			}
		}
		p.Preferences = append(p.Preferences, row)
	}
	for i := range p.Items {
		p.Items[i].Feasible, p.Items[i].Unrestricted, p.Items[i].Preference = set, set, i%3
	}
	with := pack.Solve(p)
	if err := check(p, &with); err != nil {
		t.Fatal(err)
	}
	met, all, nodes := 0.0, 0, 0
	for _, b := range with.Bins {
		nodes += b.Times
		for _, part := range b.Parts {
			met += float64(p.Preferences[p.Items[part.Item].Preference][b.BinType]) * float64(part.Count*b.Times)
			all += part.Count * b.Times
		}
	}
	for i := range p.Items {
		p.Items[i].Preference = -1
	}
	without := pack.Solve(p)
	plain := 0
	for _, b := range without.Bins {
		plain += b.Times
	}
	t.Logf("%.0f of %d wishes met; %d nodes for %.2f, without wishes %d for %.2f", met, all, nodes, with.Price, plain,
		without.Price)
	if met < 0.7*float64(all) || with.Price > 1.02*without.Price || nodes > plain+plain/10 {
		t.Error("too few wishes met, or they cost too much")
	}
}
