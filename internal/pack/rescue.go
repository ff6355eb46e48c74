package pack

import (
	"cmp"
	"slices"
)

// rescue tries, for pods that are left over, every offer of their site one by one, also those that were thought no better
// than another: where Suits has the last word, or something has run out, they may be the only ones.
func (r *run) rescue() {
	m := r.m
	if m.p.Suits == nil && len(m.p.Stocks) == 0 {
		return
	}
	var byPrice []int
	for s := range r.left {
		if r.left[s] == 0 || !m.sane(s) {
			continue
		}
		if byPrice == nil {
			byPrice = m.offersByPrice()
		}
		for _, o := range byPrice {
			if r.left[s] == 0 {
				break
			}
			if m.p.Sites[m.p.Stacks[s].Site].Has(o) {
				r.buyAlone(s, o)
			}
		}
	}
}

func (m *model) offersByPrice() []int {
	out := make([]int, len(m.p.Offers))
	for o := range out {
		out[o] = o
	}
	slices.SortFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.p.Offers[a].Price, m.p.Offers[b].Price), cmp.Compare(a, b))
	})
	return out
}

// sane reports whether the stack's marks let one of its pods onto an empty node.
func (m *model) sane(s int) bool {
	return !m.marked[s] || newRegister(m.ids).allows(&m.p.Stacks[s], m.solo[s], 1) > 0
}

// buyAlone buys nodes of the offer for pods of the stack alone.
func (r *run) buyAlone(s, offer int) {
	p := r.m.p
	for r.left[s] > 0 && r.ledger.allows(offer, 1) > 0 {
		n := p.Stacks[s].Need.Count(p.Offers[offer].Room, r.left[s])
		if n > 0 && r.m.marked[s] {
			n = newRegister(r.m.ids).allows(&p.Stacks[s], r.m.solo[s], n)
		}
		parts := []Part{{Stack: s, Count: n}}
		for parts[0].Count > 0 && p.Suits != nil && !p.Suits(offer, parts) {
			parts[0].Count /= 2
		}
		if n = parts[0].Count; n == 0 {
			return
		}
		nodes := r.ledger.allows(offer, r.left[s]/n)
		r.ledger.buy(offer, nodes)
		r.left[s] -= nodes * n
		r.bins = append(r.bins, Bin{Offer: offer, Parts: parts, Times: nodes})
	}
}
