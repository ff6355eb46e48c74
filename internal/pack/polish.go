package pack

import (
	"cmp"
	"slices"
)

// How long the answer is polished: so many tries, as long as the pods looked at stay below the budget.
const (
	maxTries   = 120
	polishWork = 100_000
	polishBins = 64 // where there are more, a few nodes hardly matter
	maxTorn    = 4  // nodes at a time
)

// dice is a small generator of numbers that look random and are always the same.
type dice uint64

// roll gives a number below n.
func (d *dice) roll(n int) int {
	*d = *d*6364136223846793005 + 1442695040888963407
	return int((uint64(*d) >> 33) % uint64(n))
}

// polish tears down a few nodes at a time, rather those that are not worth their price, packs their pods anew with other
// preferences, and keeps what has become cheaper.
func (s *search) polish() {
	m := s.m
	r := newRun(m)
	r.adopt(&s.best)
	worth := slices.Clone(s.relaxed.worth)
	d := dice(1)
	start := s.fill.work
	for range maxTries {
		if len(r.bins) == 0 || s.fill.work-start > polishWork || s.best.Price <= s.relaxed.bound*1.0005 {
			break
		}
		s.rebuild(r, s.choose(r, &d), worth, &d)
	}
	r.join()
	s.offer(r)
}

// choose names nodes to tear down, by their place in bins, in falling order.
func (s *search) choose(r *run, d *dice) []int {
	var out []int
	for range 2 + d.roll(maxTorn-1) {
		best, bestLoss := -1, 0.0
		for range 3 {
			i := d.roll(len(r.bins))
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
func (s *search) loss(b *Bin) float64 {
	value := 0.0
	for _, p := range b.Parts {
		value += s.relaxed.worth[p.Stack] * float64(p.Count)
	}
	return 1 - value/(s.m.p.Offers[b.Offer].Price+1e-12)
}

// rebuild packs the pods of the nodes anew; it changes the run only if that is cheaper.
func (s *search) rebuild(r *run, torn []int, worth []float64, d *dice) {
	m := s.m
	before := 0.0
	var stacks []int
	sub := &run{m: m, left: r.spare, ledger: r.ledger.clone()}
	for _, i := range torn {
		b := &r.bins[i]
		before += m.p.Offers[b.Offer].Price
		sub.ledger.buy(b.Offer, -1)
		for _, p := range b.Parts {
			if sub.left[p.Stack] == 0 {
				stacks = append(stacks, p.Stack)
			}
			sub.left[p.Stack] += p.Count
		}
	}
	for _, i := range stacks {
		worth[i] = s.relaxed.worth[i] * (0.6 + float64(d.roll(1000))/1000)
	}
	s.fill.prepareFew(s.kinds, stacks, worth, s.relaxed.rate)
	sub.greedy(s.fill, s.kinds, s.price)
	sub.trim()
	after, whole := 0.0, true
	for i := range sub.bins {
		after += m.p.Offers[sub.bins[i].Offer].Price * float64(sub.bins[i].Times)
	}
	for _, i := range stacks {
		whole = whole && sub.left[i] == 0
		sub.left[i] = 0
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
	r.ledger = sub.ledger
}

// join makes one bin of bins that are alike.
func (r *run) join() {
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
	if c := cmp.Compare(a.Offer, b.Offer); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Parts, b.Parts, func(x, y Part) int {
		return cmp.Or(cmp.Compare(x.Stack, y.Stack), cmp.Compare(x.Count, y.Count))
	})
}
