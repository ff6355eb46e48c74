package pack

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
)

// undecidedBin is a node to be bought whose kind is not decided yet.
type undecidedBin struct {
	possible require.Bits // kinds that can hold it
	load     []int64
	free     []int64 // scratch
	most     []int64 // room of the largest kind, dimension by dimension
	parts    []Part
}

// firstFit is the plain way, as a yardstick and a net: pods from large to small, each on the first node of which some
// kind can still hold everything; in the end each node becomes the cheapest such kind.
func (r *packingRun) firstFit() {
	m := r.m
	order := make([]int, len(r.unplaced))
	for s := range order {
		order[s] = s
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(slices.Compare(m.NeedOf(b), m.NeedOf(a)), cmp.Compare(a, b))
	})
	sets := make([]require.Bits, m.Words*64)
	marks := newNodeMarks(m.MarkCount)
	var bins []*undecidedBin
	for _, s := range order {
		set := m.optionsIn(sets, m.SetOf[s])
		for _, b := range bins {
			if r.unplaced[s] == 0 {
				break
			}
			r.put(b, s, set, marks)
		}
		if r.work += len(bins); r.work > m.p.steps() {
			r.truncated = true
			return
		}
		for r.unplaced[s] > 0 {
			b := &undecidedBin{possible: require.AllBits(len(m.options)), load: make([]int64, m.Dims),
				free: make([]int64, m.Dims), most: make([]int64, m.Dims)}
			b.findLargest(m)
			if !r.put(b, s, set, marks) {
				break
			}
			bins = append(bins, b)
		}
	}
	for _, b := range bins {
		r.buyCheapest(b)
	}
}

// optionsIn lists the options of a set.
func (m *model) optionsIn(known []require.Bits, set int32) require.Bits {
	if known[set] == nil {
		known[set] = require.NewBits(len(m.options))
		for k := range m.options {
			if m.IsIn(k, set) {
				known[set].Set(k)
			}
		}
	}
	return known[set]
}

func (b *undecidedBin) findLargest(m *model) {
	clear(b.most)
	for k := range b.possible.All {
		for j, x := range m.RoomOf(k) {
			b.most[j] = max(b.most[j], x)
		}
	}
}

// put adds as many pods of the item as some option can hold; it is false if none can hold one.
func (r *packingRun) put(b *undecidedBin, s int, set require.Bits, marks *nodeMarks) bool {
	m := r.m
	need := m.NeedOf(s)
	for j, x := range need {
		if x > 0 && b.load[j]+x > b.most[j] {
			return false
		}
	}
	limit := r.unplaced[s]
	if m.hasMarks[s] {
		for _, p := range b.parts {
			r.work++
			if m.hasMarks[p.Item] && m.itemsClash(s, p.Item) {
				return false
			}
		}
		r.work += (len(m.p.Items[s].ExcludedAs) + len(m.p.Items[s].Excludes)) * (1 + len(b.parts)) / 16
		marks.clear()
		for _, p := range b.parts {
			if m.hasMarks[p.Item] {
				marks.add(&m.p.Items[p.Item], p.Count)
			}
		}
		limit = marks.allows(&m.p.Items[s], m.onePerNode[s], limit)
	}
	n := 0
	for k := range b.possible.All {
		if limit > n && set.Has(k) {
			for j, x := range m.RoomOf(k) {
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
	r.unplaced[s] -= n
	b.parts = append(b.parts, Part{Item: s, Count: n})
	b.possible = b.possible.And(set)
	for k := range b.possible.All {
		if !fits(b.load, m.RoomOf(k)) {
			b.possible[k/64] &^= 1 << (k % 64)
		}
	}
	b.findLargest(m)
	return true
}

// buyCheapest buys the cheapest kind that may be bought; without one the pods are left over.
func (r *packingRun) buyCheapest(b *undecidedBin) {
	m := r.m
	slices.SortFunc(b.parts, func(x, y Part) int { return cmp.Compare(x.Item, y.Item) })
	for k := range b.possible.All {
		binType := m.options[k]
		if r.supply.allows(binType, 1) > 0 && (m.p.Suits == nil || m.p.Suits(binType, b.parts)) {
			r.supply.buy(binType, 1)
			r.bins = append(r.bins, Bin{BinType: binType, Parts: b.parts, Times: 1})
			return
		}
	}
	for _, p := range b.parts {
		r.unplaced[p.Item] += p.Count
	}
}
