package pack

import (
	"cmp"
	"slices"
)

// ration is for when shelves or stocks run short. Higher ranks are served first, and lower ones fill the gaps that these
// leave; nodes are chosen by their price or by what they take off what is scarce; and pods by their worth, or all alike,
// so that many small ones are served rather than few large ones.
func (s *search) ration() {
	m := s.m
	tier := s.tiers()
	ones := make([]float64, len(m.p.Stacks))
	for i := range ones {
		ones[i] = 1
	}
	all := make([]int, len(m.kinds))
	for k := range all {
		all[k] = k
	}
	worth := slices.Clone(s.relaxed.worth)
	for i := range worth {
		worth[i] += 1e-9
	}
	for _, cost := range [][]float64{s.price, m.toll()} {
		for _, w := range [][]float64{worth, ones} {
			s.fill.prepare(all, w, s.relaxed.rate, tier)
			r := newRun(m)
			for range 3 {
				before := len(r.bins)
				r.greedy(s.fill, all, cost)
				r.rescue()
				r.exchange()
				if len(r.bins) == before {
					break
				}
				r.trim()
			}
			s.offer(r)
		}
	}
}

// settle makes sure of the answer that nobody is out whose place somebody of a lower rank has.
func (s *search) settle() {
	r := newRun(s.m)
	r.adopt(&s.best)
	r.exchange()
	s.best = r.solution()
}

// tiers are the stacks' ranks, numbered from the highest.
func (s *search) tiers() []int32 {
	out := make([]int32, len(s.m.p.Stacks))
	for i := range out {
		out[i] = int32(slices.Index(s.ranks, s.m.p.Stacks[i].Rank))
	}
	return out
}

// toll is, by kind, what a node takes off its shelf, as parts of what there is; the price only decides among equals.
func (m *model) toll() []float64 {
	out := make([]float64, len(m.kinds))
	dearest := 1e-12
	for _, o := range m.kinds {
		dearest = max(dearest, m.p.Offers[o].Price)
	}
	for k, at := range m.kinds {
		o := &m.p.Offers[at]
		out[k] = 1e-3 * o.Price / dearest
		if o.Shelf < 0 || o.Shelf >= len(m.p.Shelves) {
			continue
		}
		shelf := &m.p.Shelves[o.Shelf]
		if shelf.Nodes > 0 {
			out[k] += 1 / float64(shelf.Nodes)
		}
		for dim, bound := range shelf.Bound {
			if bound && shelf.Left[dim] > 0 {
				out[k] += float64(o.Charge[dim]) / float64(shelf.Left[dim])
			}
		}
	}
	return out
}

// exchange lets pods that are left take the place of pods of a lower rank. Each exchange raises the rank of what is
// placed, so there is an end to it.
func (r *run) exchange() {
	m := r.m
	waiting := make([]int, 0, len(r.left))
	for s := range r.left {
		if r.left[s] > 0 && m.sane(s) {
			waiting = append(waiting, s)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Compare(m.p.Stacks[b].Rank, m.p.Stacks[a].Rank) })
	marks := newRegister(m.ids)
	for i := 0; i < len(waiting); i++ {
		s := waiting[i]
		for b := 0; b < len(r.bins) && r.left[s] > 0; {
			dropped, ok := r.displace(b, s, marks)
			if !ok {
				b++
				continue
			}
			for _, d := range dropped {
				if !slices.Contains(waiting[i:], d) {
					at, _ := slices.BinarySearchFunc(waiting[i+1:], d, func(x, y int) int {
						return cmp.Or(cmp.Compare(m.p.Stacks[y].Rank, m.p.Stacks[x].Rank), cmp.Compare(x, y))
					})
					waiting = slices.Insert(waiting, i+1+at, d)
				}
			}
		}
	}
}

// displace puts one pod of the stack on a node of the bin, as it is or sold for another offer, and takes off pods of
// lower rank where needed. It names the stacks whose pods were taken off.
func (r *run) displace(bin, s int, marks *register) ([]int, bool) {
	m := r.m
	b := r.bins[bin]
	rank := m.p.Stacks[s].Rank
	if !slices.ContainsFunc(b.Parts, func(p Part) bool { return m.p.Stacks[p.Stack].Rank < rank }) {
		return nil, false
	}
	try := []int{b.Offer}
	if !slices.ContainsFunc(b.Parts, func(p Part) bool { return m.p.Stacks[p.Stack].Rank >= rank }) {
		try = append(try, m.kinds...)
	}
	sold := &m.p.Offers[b.Offer]
	for _, offer := range try {
		if o := &m.p.Offers[offer]; o.Shelf != sold.Shelf && (o.Stock < 0 || o.Stock != sold.Stock) {
			continue // what is sold would not make it possible
		}
		if !m.p.Sites[m.p.Stacks[s].Site].Has(offer) || !m.p.Stacks[s].Need.Fits(m.p.Offers[offer].Room) {
			continue
		}
		r.ledger.buy(b.Offer, -1)
		if r.ledger.allows(offer, 1) == 0 {
			r.ledger.buy(b.Offer, 1)
			continue
		}
		if parts, ok := r.squeeze(offer, s, b.Parts, marks); ok {
			r.ledger.buy(offer, 1)
			return r.replace(bin, offer, s, parts), true
		}
		r.ledger.buy(b.Offer, 1)
	}
	return nil, false
}

// squeeze makes a content of one pod of the stack, all that has its rank or a higher one, and as much of the rest as
// still goes.
func (r *run) squeeze(offer, s int, parts []Part, marks *register) ([]Part, bool) {
	m := r.m
	p := m.p
	order := slices.Clone(parts)
	slices.SortStableFunc(order, func(a, b Part) int { return cmp.Compare(p.Stacks[b.Stack].Rank, p.Stacks[a.Stack].Rank) })
	free := p.Offers[offer].Room.Sub(p.Stacks[s].Need.Floor())
	marks.clear()
	marks.add(&p.Stacks[s], 1)
	out := []Part{{Stack: s, Count: 1}}
	for _, part := range order {
		st := &p.Stacks[part.Stack]
		n := 0
		if p.Sites[st.Site].Has(offer) {
			n = marks.allows(st, m.solo[part.Stack], st.Need.Count(free, part.Count))
		}
		if n < part.Count && st.Rank >= p.Stacks[s].Rank {
			return nil, false
		}
		if n == 0 {
			continue
		}
		next := insertPart(out, part.Stack, n)
		if p.Suits != nil && !p.Suits(offer, next) {
			if st.Rank >= p.Stacks[s].Rank {
				return nil, false
			}
			continue
		}
		out = next
		marks.add(st, n)
		free = free.Sub(st.Need.Floor().Times(int64(n)))
	}
	return out, p.Suits == nil || p.Suits(offer, out)
}

// insertPart returns the parts with pods of a stack more.
func insertPart(parts []Part, stack, n int) []Part {
	out := slices.Clone(parts)
	at, ok := slices.BinarySearchFunc(out, stack, func(p Part, s int) int { return cmp.Compare(p.Stack, s) })
	if ok {
		out[at].Count += n
		return out
	}
	return slices.Insert(out, at, Part{Stack: stack, Count: n})
}

// replace splits one node off the bin and gives it the new offer and content. It names the stacks that lost pods.
func (r *run) replace(bin, offer, s int, parts []Part) []int {
	var dropped []int
	for _, p := range r.bins[bin].Parts {
		r.left[p.Stack] += p.Count
	}
	for _, p := range parts {
		r.left[p.Stack] -= p.Count
	}
	for _, p := range r.bins[bin].Parts {
		if p.Stack != s && r.left[p.Stack] > 0 {
			dropped = append(dropped, p.Stack)
		}
	}
	if r.bins[bin].Times > 1 {
		r.bins[bin].Times--
		r.bins = append(r.bins, Bin{Offer: offer, Parts: parts, Times: 1})
	} else {
		r.bins[bin] = Bin{Offer: offer, Parts: parts, Times: 1}
	}
	return dropped
}
