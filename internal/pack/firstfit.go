package pack

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
)

// open is a node to be bought whose kind is not decided yet.
type open struct {
	alive require.Bits // kinds that can hold it
	load  []int64
	free  []int64 // scratch
	most  []int64 // room of the largest kind, dimension by dimension
	parts []Part
}

// firstFit is the plain way, as a yardstick and a net: pods from large to small, each on the first node of which some
// kind can still hold everything; in the end each node becomes the cheapest such kind.
func (r *run) firstFit() {
	m := r.m
	order := make([]int, len(r.left))
	for s := range order {
		order[s] = s
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(slices.Compare(m.needOf(b), m.needOf(a)), cmp.Compare(a, b))
	})
	sites := make([]require.Bits, m.words*64)
	marks := newRegister(m.ids)
	var bins []*open
	for _, s := range order {
		site := m.kindsIn(sites, m.site[s])
		for _, b := range bins {
			if r.left[s] == 0 {
				break
			}
			r.put(b, s, site, marks)
		}
		if r.work += len(bins); r.work > m.p.steps() {
			r.cut = true
			return
		}
		for r.left[s] > 0 {
			b := &open{alive: require.AllBits(len(m.kinds)), load: make([]int64, m.d), free: make([]int64, m.d), most: make([]int64, m.d)}
			b.measure(m)
			if !r.put(b, s, site, marks) {
				break
			}
			bins = append(bins, b)
		}
	}
	for _, b := range bins {
		r.close(b)
	}
}

// kindsIn lists the kinds of a site.
func (m *model) kindsIn(known []require.Bits, site int32) require.Bits {
	if known[site] == nil {
		known[site] = require.NewBits(len(m.kinds))
		for k := range m.kinds {
			if m.in(k, site) {
				known[site].Set(k)
			}
		}
	}
	return known[site]
}

func (b *open) measure(m *model) {
	clear(b.most)
	for k := range b.alive.All {
		for j, x := range m.roomOf(k) {
			b.most[j] = max(b.most[j], x)
		}
	}
}

// put adds as many pods of the stack as some kind can hold; it is false if none can hold one.
func (r *run) put(b *open, s int, site require.Bits, marks *register) bool {
	m := r.m
	need := m.needOf(s)
	for j, x := range need {
		if x > 0 && b.load[j]+x > b.most[j] {
			return false
		}
	}
	limit := r.left[s]
	if m.marked[s] {
		for _, p := range b.parts {
			r.work++
			if m.marked[p.Stack] && m.clash(s, p.Stack) {
				return false
			}
		}
		r.work += (len(m.p.Stacks[s].Shunned) + len(m.p.Stacks[s].Shuns)) * (1 + len(b.parts)) / 16
		marks.clear()
		for _, p := range b.parts {
			if m.marked[p.Stack] {
				marks.add(&m.p.Stacks[p.Stack], p.Count)
			}
		}
		limit = marks.allows(&m.p.Stacks[s], m.solo[s], limit)
	}
	n := 0
	for k := range b.alive.All {
		if limit > n && site.Has(k) {
			for j, x := range m.roomOf(k) {
				b.free[j] = x - b.load[j]
			}
			n = max(n, times(need, b.free, limit))
		}
	}
	if n == 0 {
		return false
	}
	for j, x := range need {
		b.load[j] += x * int64(n)
	}
	r.left[s] -= n
	b.parts = append(b.parts, Part{Stack: s, Count: n})
	b.alive = b.alive.And(site)
	for k := range b.alive.All {
		if !fits(b.load, m.roomOf(k)) {
			b.alive[k/64] &^= 1 << (k % 64)
		}
	}
	b.measure(m)
	return true
}

// close buys the cheapest kind that may be bought; without one the pods are left over.
func (r *run) close(b *open) {
	m := r.m
	slices.SortFunc(b.parts, func(x, y Part) int { return cmp.Compare(x.Stack, y.Stack) })
	for k := range b.alive.All {
		offer := m.kinds[k]
		if r.ledger.allows(offer, 1) > 0 && (m.p.Suits == nil || m.p.Suits(offer, b.parts)) {
			r.ledger.buy(offer, 1)
			r.bins = append(r.bins, Bin{Offer: offer, Parts: b.parts, Times: 1})
			return
		}
	}
	for _, p := range b.parts {
		r.left[p.Stack] += p.Count
	}
}
