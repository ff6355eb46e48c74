package pack

import (
	"cmp"
	"slices"
)

// solveScarce is for when limits or reservations run short. Higher ranks are served first, and lower ones fill the gaps
// that these leave; nodes are chosen by their price or by what they take off what is scarce; and pods by their worth,
// or all alike, so that many small ones are served rather than few large ones.
func (s *solver) solveScarce() {
	m := s.m
	tier := s.tiers()
	ones := make([]float64, len(m.p.Items))
	for i := range ones {
		ones[i] = 1
	}
	all := make([]int, len(m.options))
	for k := range all {
		all[k] = k
	}
	worth := slices.Clone(s.relaxation.Worth)
	for i := range worth {
		worth[i] += 1e-9
	}
	for _, cost := range [][]float64{s.price, m.limitUse()} {
		for _, w := range [][]float64{worth, ones} {
			s.filler.prepare(all, w, s.relaxation.Rate, tier)
			r := newPackingRun(m)
			for range 3 {
				before := len(r.bins)
				r.greedy(s.filler, all, cost)
				r.placeLeftOver()
				r.exchange()
				if len(r.bins) == before {
					break
				}
				r.cheapenBins()
			}
			s.keepIfBetter(r)
		}
	}
}

// exchangeRanks makes sure of the answer that nobody is out whose place somebody of a lower rank has.
func (s *solver) exchangeRanks() {
	r := newPackingRun(s.m)
	r.adopt(&s.best)
	r.exchange()
	s.best = r.solution()
}

// tiers are the items' ranks, numbered from the highest.
func (s *solver) tiers() []int32 {
	out := make([]int32, len(s.m.p.Items))
	for i := range out {
		out[i] = int32(slices.Index(s.ranks, s.m.p.Items[i].Rank))
	}
	return out
}

// limitUse is, by option, what a node takes off its limit, as parts of what there is; the price only decides among
// equals.
func (m *model) limitUse() []float64 {
	out := make([]float64, len(m.options))
	dearest := 1e-12
	for _, o := range m.options {
		dearest = max(dearest, m.p.BinTypes[o].Price)
	}
	for k, at := range m.options {
		o := &m.p.BinTypes[at]
		out[k] = 1e-3 * o.Price / dearest
		if o.Limit < 0 || o.Limit >= len(m.p.Limits) {
			continue
		}
		limit := &m.p.Limits[o.Limit]
		if limit.Nodes > 0 {
			out[k] += 1 / float64(limit.Nodes)
		}
		for dim, bound := range limit.Limited {
			if bound && limit.Left[dim] > 0 {
				out[k] += float64(o.Charge[dim]) / float64(limit.Left[dim])
			}
		}
	}
	return out
}

// exchange lets pods that are left take the place of pods of a lower rank. Each exchange raises the rank of what is
// placed, so there is an end to it.
func (r *packingRun) exchange() {
	m := r.m
	waiting := make([]int, 0, len(r.unplaced))
	for s := range r.unplaced {
		if r.unplaced[s] > 0 && m.fitsEmptyNode(s) {
			waiting = append(waiting, s)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Compare(m.p.Items[b].Rank, m.p.Items[a].Rank) })
	marks := newNodeMarks(m.MarkCount)
	for i := 0; i < len(waiting); i++ {
		s := waiting[i]
		for b := 0; b < len(r.bins) && r.unplaced[s] > 0; {
			dropped, ok := r.displace(b, s, marks)
			if !ok {
				b++
				continue
			}
			for _, d := range dropped {
				if !slices.Contains(waiting[i:], d) {
					at, _ := slices.BinarySearchFunc(waiting[i+1:], d, func(x, y int) int {
						return cmp.Or(cmp.Compare(m.p.Items[y].Rank, m.p.Items[x].Rank), cmp.Compare(x, y))
					})
					waiting = slices.Insert(waiting, i+1+at, d)
				}
			}
		}
	}
}

// displace puts one pod of the item on a node of the bin, as it is or sold for another bin type, and takes off pods of
// lower rank where needed. It names the items whose pods were taken off.
func (r *packingRun) displace(bin, s int, marks *nodeMarks) ([]int, bool) {
	m := r.m
	b := r.bins[bin]
	rank := m.p.Items[s].Rank
	if !slices.ContainsFunc(b.Parts, func(p Part) bool { return m.p.Items[p.Item].Rank < rank }) {
		return nil, false
	}
	try := []int{b.BinType}
	if !slices.ContainsFunc(b.Parts, func(p Part) bool { return m.p.Items[p.Item].Rank >= rank }) {
		try = append(try, m.options...)
	}
	sold := &m.p.BinTypes[b.BinType]
	for _, binType := range try {
		if o := &m.p.BinTypes[binType]; o.Limit != sold.Limit &&
			(o.Reservation < 0 || o.Reservation != sold.Reservation) {
			continue // what is sold would not make it possible
		}
		if !m.p.FeasibleSets[m.p.Items[s].Feasible].Has(binType) ||
			!m.p.Items[s].Need.Fits(m.p.BinTypes[binType].Room) {
			continue
		}
		r.supply.buy(b.BinType, -1)
		if r.supply.allows(binType, 1) == 0 {
			r.supply.buy(b.BinType, 1)
			continue
		}
		if parts, ok := r.makeRoomFor(binType, s, b.Parts, marks); ok {
			r.supply.buy(binType, 1)
			return r.replace(bin, binType, s, parts), true
		}
		r.supply.buy(b.BinType, 1)
	}
	return nil, false
}

// makeRoomFor makes a content of one pod of the item, all that has its rank or a higher one, and as much of the rest as
// still goes.
func (r *packingRun) makeRoomFor(binType, s int, parts []Part, marks *nodeMarks) ([]Part, bool) {
	m := r.m
	p := m.p
	order := slices.Clone(parts)
	slices.SortStableFunc(order, func(a, b Part) int { return cmp.Compare(p.Items[b.Item].Rank, p.Items[a.Item].Rank) })
	free := p.BinTypes[binType].Room.Sub(p.Items[s].Need.Floor())
	marks.clear()
	marks.add(&p.Items[s], 1)
	out := []Part{{Item: s, Count: 1}}
	for _, part := range order {
		st := &p.Items[part.Item]
		n := 0
		if p.FeasibleSets[st.Feasible].Has(binType) {
			n = marks.allows(st, m.onePerNode[part.Item], st.Need.Count(free, part.Count))
		}
		if n < part.Count && st.Rank >= p.Items[s].Rank {
			return nil, false
		}
		if n == 0 {
			continue
		}
		next := insertPart(out, part.Item, n)
		if p.Suits != nil && !p.Suits(binType, next) {
			if st.Rank >= p.Items[s].Rank {
				return nil, false
			}
			continue
		}
		out = next
		marks.add(st, n)
		free = free.Sub(st.Need.Floor().Times(int64(n)))
	}
	return out, p.Suits == nil || p.Suits(binType, out)
}

// insertPart returns the parts with pods of an item more.
func insertPart(parts []Part, item, n int) []Part {
	out := slices.Clone(parts)
	at, ok := slices.BinarySearchFunc(out, item, func(p Part, s int) int { return cmp.Compare(p.Item, s) })
	if ok {
		out[at].Count += n
		return out
	}
	return slices.Insert(out, at, Part{Item: item, Count: n})
}

// replace splits one node off the bin and gives it the new bin type and content. It names the items that lost pods.
func (r *packingRun) replace(bin, binType, s int, parts []Part) []int {
	var dropped []int
	for _, p := range r.bins[bin].Parts {
		r.unplaced[p.Item] += p.Count
	}
	for _, p := range parts {
		r.unplaced[p.Item] -= p.Count
	}
	for _, p := range r.bins[bin].Parts {
		if p.Item != s && r.unplaced[p.Item] > 0 {
			dropped = append(dropped, p.Item)
		}
	}
	if r.bins[bin].Times > 1 {
		r.bins[bin].Times--
		r.bins = append(r.bins, Bin{BinType: binType, Parts: parts, Times: 1})
	} else {
		r.bins[bin] = Bin{BinType: binType, Parts: parts, Times: 1}
	}
	return dropped
}
