package pack

import (
	"cmp"
	"slices"
)

// How long the answer is polished: so many tries, as long as the pods looked at stay below the budget.
const (
	maxTries    = 120
	polishWork  = 100_000
	polishBins  = 64 // where there are more, a few nodes hardly matter
	maxRepacked = 4  // nodes at a time
)

// pseudoRandom is a small generator of numbers that look random and are always the same.
type pseudoRandom uint64

// next gives a number below n.
func (r *pseudoRandom) next(n int) int {
	*r = *r*6364136223846793005 + 1442695040888963407
	return int((uint64(*r) >> 33) % uint64(n))
}

// polish tears down a few nodes at a time, rather those that are not worth their price, packs their pods anew with
// other preferences, and keeps what has become cheaper.
func (s *solver) polish() {
	m := s.m
	r := newPackingRun(m)
	r.adopt(&s.best)
	worth := slices.Clone(s.relaxation.Worth)
	random := pseudoRandom(1)
	start := s.filler.work
	for range maxTries {
		if len(r.bins) == 0 || s.filler.work-start > polishWork || s.best.Price <= s.relaxation.Bound*1.0005 {
			break
		}
		s.rebuild(r, s.choose(r, &random), worth, &random)
	}
	r.mergeBins()
	s.keepIfBetter(r)
}

// choose names nodes to tear down, by their place in bins, in falling order.
func (s *solver) choose(r *packingRun, random *pseudoRandom) []int {
	var out []int
	for range 2 + random.next(maxRepacked-1) {
		best, bestLoss := -1, 0.0
		for range 3 {
			i := random.next(len(r.bins))
			if loss := s.loss(&r.bins[i]); !slices.Contains(out, i) && (best < 0 || loss > bestLoss) {
				best, bestLoss = i, loss
			}
		}
		if best >= 0 {
			out = append(out, best)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// loss is the part of a node's price that its content is not worth.
func (s *solver) loss(b *Bin) float64 {
	value := 0.0
	for _, p := range b.Parts {
		value += s.relaxation.Worth[p.Item] * float64(p.Count)
	}
	return 1 - value/(s.m.p.BinTypes[b.BinType].Price+1e-12)
}

// rebuild packs the pods of the nodes anew; it changes the run only if that is cheaper.
func (s *solver) rebuild(r *packingRun, torn []int, worth []float64, random *pseudoRandom) {
	m := s.m
	before := 0.0
	var items []int
	sub := &packingRun{m: m, unplaced: r.scratch, supply: r.supply.clone()}
	for _, i := range torn {
		b := &r.bins[i]
		before += m.p.BinTypes[b.BinType].Price
		sub.supply.buy(b.BinType, -1)
		for _, p := range b.Parts {
			if sub.unplaced[p.Item] == 0 {
				items = append(items, p.Item)
			}
			sub.unplaced[p.Item] += p.Count
		}
	}
	for _, i := range items {
		worth[i] = s.relaxation.Worth[i] * (0.6 + float64(random.next(1000))/1000)
	}
	s.filler.prepareFew(s.options, items, worth, s.relaxation.Rate)
	sub.greedy(s.filler, s.options, s.price)
	sub.cheapenBins()
	after, whole := 0.0, true
	for i := range sub.bins {
		after += m.p.BinTypes[sub.bins[i].BinType].Price * float64(sub.bins[i].Times)
	}
	for _, i := range items {
		whole = whole && sub.unplaced[i] == 0
		sub.unplaced[i] = 0
	}
	if !whole || after >= before-1e-9*before {
		return
	}
	for _, i := range torn {
		if r.bins[i].Times--; r.bins[i].Times == 0 {
			r.bins[i] = r.bins[len(r.bins)-1]
			r.bins = r.bins[:len(r.bins)-1]
		}
	}
	r.bins = append(r.bins, sub.bins...)
	r.supply = sub.supply
}

// mergeBins makes one bin of bins that are alike.
func (r *packingRun) mergeBins() {
	slices.SortStableFunc(r.bins, compareBins)
	out := r.bins[:0]
	for _, b := range r.bins {
		if n := len(out); n > 0 && compareBins(out[n-1], b) == 0 {
			out[n-1].Times += b.Times
		} else {
			out = append(out, b)
		}
	}
	r.bins = out
}

func compareBins(a, b Bin) int {
	if c := cmp.Compare(a.BinType, b.BinType); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Parts, b.Parts, func(x, y Part) int {
		return cmp.Or(cmp.Compare(x.Item, y.Item), cmp.Compare(x.Count, y.Count))
	})
}
