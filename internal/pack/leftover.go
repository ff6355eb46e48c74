package pack

import (
	"cmp"
	"slices"
)

// placeLeftOver tries, for pods that are left over, every bin type of their set one by one, also those that were
// thought no better than another: where Suits has the last word, or something has run out, they may be the only ones.
func (r *packingRun) placeLeftOver() {
	m := r.m
	if m.p.Suits == nil && len(m.p.Reservations) == 0 {
		return
	}
	var byPrice []int
	for s := range r.unplaced {
		if r.unplaced[s] == 0 || !m.fitsEmptyNode(s) {
			continue
		}
		if byPrice == nil {
			byPrice = m.binTypesByPrice()
		}
		for _, o := range byPrice {
			if r.unplaced[s] == 0 {
				break
			}
			if m.p.FeasibleSets[m.p.Items[s].Feasible].Has(o) {
				r.buyAlone(s, o)
			}
		}
	}
}

func (m *model) binTypesByPrice() []int {
	out := make([]int, len(m.p.BinTypes))
	for o := range out {
		out[o] = o
	}
	slices.SortFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.p.BinTypes[a].Price, m.p.BinTypes[b].Price), cmp.Compare(a, b))
	})
	return out
}

// fitsEmptyNode reports whether the item's marks let one of its pods onto an empty node.
func (m *model) fitsEmptyNode(s int) bool {
	return !m.hasMarks[s] || newNodeMarks(m.MarkCount).allows(&m.p.Items[s], m.onePerNode[s], 1) > 0
}

// buyAlone buys nodes of the bin type for pods of the item alone.
func (r *packingRun) buyAlone(s, binType int) {
	p := r.m.p
	for r.unplaced[s] > 0 && r.supply.allows(binType, 1) > 0 {
		n := p.Items[s].Need.Count(p.BinTypes[binType].Room, r.unplaced[s])
		if n > 0 && r.m.hasMarks[s] {
			n = newNodeMarks(r.m.MarkCount).allows(&p.Items[s], r.m.onePerNode[s], n)
		}
		parts := []Part{{Item: s, Count: n}}
		for parts[0].Count > 0 && p.Suits != nil && !p.Suits(binType, parts) {
			parts[0].Count /= 2
		}
		if n = parts[0].Count; n == 0 {
			return
		}
		nodes := r.supply.allows(binType, r.unplaced[s]/n)
		r.supply.buy(binType, nodes)
		r.unplaced[s] -= nodes * n
		r.bins = append(r.bins, Bin{BinType: binType, Parts: parts, Times: nodes})
	}
}
