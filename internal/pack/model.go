package pack

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/pack/lp"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// preferenceMargin is how much dearer a bin type may be and still be bought because it is liked.
const preferenceMargin = 1.05

// model is a problem in the shape that searching needs: only the dimensions that somebody asks for, only the bin types
// that could be part of a cheapest answer, and for each bin type the items that it can hold.
type model struct {
	lp.Problem
	p            *Problem
	unrestricted bool
	dims         []int // the resources in use, Problem.Dims of them

	// By item.
	needClass  []int32 // items with the same number need the same
	hasMarks   []bool
	onePerNode []bool // at most one pod of it to a node

	options []int // by option, that is a bin type worth looking at: its place in BinTypes
}

// newModel reads a problem. An unrestricted model takes the items' unrestricted sets and forgets limits, reservations
// and preferences: it is what the lower bound counts with.
func newModel(p *Problem, loose bool) *model {
	m := &model{p: p, unrestricted: loose}
	m.readItems()
	sets, of := m.readSets()
	m.Words = (len(sets) + 63) / 64
	m.SetOf = of
	m.readBinTypes(sets)
	m.match()
	return m
}

// readItems finds out which dimensions matter and keeps what is asked for in them.
func (m *model) readItems() {
	var used [resource.Size]bool
	for i := range m.p.Items {
		for dim, amount := range m.p.Items[i].Need {
			used[dim] = used[dim] || amount > 0
		}
	}
	for dim, u := range used {
		if u {
			m.dims = append(m.dims, dim)
		}
	}
	m.Dims = len(m.dims)
	n := len(m.p.Items)
	m.Needs, m.NeedsFloat = make([]int64, n*m.Dims), make([]float64, n*m.Dims)
	m.Counts, m.Shares = make([]int, n), m.sharesOf
	m.hasMarks, m.onePerNode, m.needClass = make([]bool, n), make([]bool, n), make([]int32, n)
	classes := make(map[resource.Vector]int32)
	for i := range m.p.Items {
		s := &m.p.Items[i]
		m.Counts[i] = s.Count
		for j, dim := range m.dims {
			m.Needs[i*m.Dims+j] = max(s.Need[dim], 0)
			m.NeedsFloat[i*m.Dims+j] = float64(max(s.Need[dim], 0))
		}
		class, ok := classes[s.Need]
		if !ok {
			class = int32(len(classes))
			classes[s.Need] = class
		}
		m.needClass[i] = class
		m.hasMarks[i] = len(s.Excludes)+len(s.ExcludedAs)+len(s.Caps)+len(s.Counts) > 0
		m.onePerNode[i] = intersects(s.Excludes, s.ExcludedAs)
		for _, id := range s.Excludes {
			m.MarkCount = max(m.MarkCount, int(id)+1)
		}
		for _, id := range s.ExcludedAs {
			m.MarkCount = max(m.MarkCount, int(id)+1)
		}
		for _, c := range s.Caps {
			m.MarkCount = max(m.MarkCount, int(c.ID)+1)
		}
		for _, id := range s.Counts {
			m.MarkCount = max(m.MarkCount, int(id)+1)
		}
	}
}

// intersects reports whether two sorted lists have an id in common.
func intersects(a, b []int32) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			return true
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return false
}

// readSets numbers the sets that items refer to; those with the same bin types are one.
func (m *model) readSets() (sets []require.Bits, of []int32) {
	dense := make([]int32, len(m.p.FeasibleSets))
	of = make([]int32, len(m.p.Items))
	known := make(map[string]int32)
	var text []byte
	for i := range m.p.Items {
		at := m.p.Items[i].Feasible
		if m.unrestricted {
			at = m.p.Items[i].Unrestricted
		}
		if dense[at] == 0 {
			text = text[:0]
			for _, word := range m.p.FeasibleSets[at] {
				text = binary.LittleEndian.AppendUint64(text, word)
			}
			if dense[at] = known[string(text)]; dense[at] == 0 {
				sets = append(sets, m.p.FeasibleSets[at])
				dense[at] = int32(len(sets))
				known[string(text)] = dense[at]
			}
		}
		of[i] = dense[at] - 1
	}
	return sets, of
}

// total is what all items ask for together: room beyond it is worth nothing.
func (m *model) total() []int64 {
	out := make([]int64, m.Dims)
	for j := range out {
		sum := 0.0
		for i := range m.p.Items {
			sum += m.NeedsFloat[i*m.Dims+j] * float64(m.p.Items[i].Count)
		}
		out[j] = math.MaxInt64
		if sum < 1<<52 {
			out[j] = int64(sum)
		}
	}
	return out
}

// binTypeCandidate is a bin type that has not been compared with the others yet.
type binTypeCandidate struct {
	binType int
	price   float64
	room    []int64
	sets    []uint64
}

// readBinTypes keeps the bin types that are in some set and not dominated by another.
func (m *model) readBinTypes(sets []require.Bits) {
	list := m.dropHopeless(m.candidates(sets))
	slices.SortFunc(list, func(a, b binTypeCandidate) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.binType, b.binType))
	})
	var kept []*binTypeCandidate
	var probe []*binTypeCandidate // the same, those that dominated another last first
	for i := range list {
		c := &list[i]
		at := slices.IndexFunc(probe, func(k *binTypeCandidate) bool { return m.dominates(k, c) })
		switch {
		case at < 0:
			kept, probe = append(kept, c), append(probe, c)
		case at > 0:
			k := probe[at]
			copy(probe[1:at+1], probe[:at])
			probe[0] = k
		}
	}
	for i := range kept {
		m.options = append(m.options, kept[i].binType)
		m.Prices = append(m.Prices, kept[i].price)
		for _, dim := range m.dims {
			m.Room = append(m.Room, m.p.BinTypes[kept[i].binType].Room[dim])
		}
		m.OptionSets = append(m.OptionSets, kept[i].sets...)
	}
}

func (m *model) candidates(sets []require.Bits) []binTypeCandidate {
	total := m.total()
	rows := make([]int32, len(m.p.BinTypes)) // place in the list, plus one
	n := 0
	for _, bits := range sets {
		for o := range bits.All {
			if rows[o] == 0 {
				n++
				rows[o] = int32(n)
			}
		}
	}
	list := make([]binTypeCandidate, n)
	room, seen := make([]int64, n*m.Dims), make([]uint64, n*m.Words)
	for o, row := range rows {
		if row == 0 {
			continue
		}
		i := int(row - 1)
		c := binTypeCandidate{binType: o, price: m.p.BinTypes[o].Price, room: room[i*m.Dims : i*m.Dims+m.Dims],
			sets: seen[i*m.Words : i*m.Words+m.Words]}
		for j, dim := range m.dims {
			c.room[j] = min(m.p.BinTypes[o].Room[dim], total[j])
		}
		list[i] = c
	}
	for s, bits := range sets {
		for o := range bits.All {
			list[rows[o]-1].sets[s>>6] |= 1 << (s & 63)
		}
	}
	return list
}

// dropHopeless takes out what is dominated by the cheapest bin type that could hold everything. When there is little to
// pack that is nearly all of them, and sorting is spared.
func (m *model) dropHopeless(list []binTypeCandidate) []binTypeCandidate {
	total := m.total()
	best := -1
	for i := range list {
		if slices.Equal(list[i].room, total) && (best < 0 || list[i].price < list[best].price) {
			best = i
		}
	}
	if best < 0 {
		return list
	}
	champion, out := list[best], list[:0]
	for _, c := range list {
		if c.binType == champion.binType || c.price < champion.price || !m.dominates(&champion, &c) {
			out = append(out, c)
		}
	}
	return out
}

// dominates reports whether a, which is no dearer, can stand in for b in every answer.
func (m *model) dominates(a, b *binTypeCandidate) bool {
	for j := range a.room {
		if a.room[j] < b.room[j] {
			return false
		}
	}
	for w := range a.sets {
		if b.sets[w]&^a.sets[w] != 0 {
			return false
		}
	}
	if m.unrestricted {
		return true
	}
	x, y := &m.p.BinTypes[a.binType], &m.p.BinTypes[b.binType]
	if x.Reservation >= 0 && x.Reservation != y.Reservation {
		return false
	}
	if !m.limitDominates(x, y) {
		return false
	}
	if b.price <= a.price*preferenceMargin {
		for _, preference := range m.p.Preferences {
			if preference[a.binType] < preference[b.binType] {
				return false
			}
		}
	}
	return true
}

func (m *model) limitDominates(x, y *BinType) bool {
	if x.Limit < 0 || x.Limit >= len(m.p.Limits) {
		return true
	}
	limit := &m.p.Limits[x.Limit]
	if x.Limit != y.Limit {
		return limit.Nodes < 0 && limit.Limited == [resource.Size]bool{}
	}
	for dim, bound := range limit.Limited {
		if bound && x.Charge[dim] > y.Charge[dim] {
			return false
		}
	}
	return true
}

// match lists for each option the items that it can hold.
func (m *model) match() {
	m.FittingItems = make([][]int32, len(m.options))
	for k := range m.options {
		room := m.RoomOf(k)
		for s := range m.p.Items {
			if m.p.Items[s].Count > 0 && m.IsIn(k, m.SetOf[s]) && fits(m.NeedOf(s), room) && m.suitsAlone(k, s) {
				m.FittingItems[k] = append(m.FittingItems[k], int32(s))
			}
		}
	}
}

// suitsAlone reports whether a node of the option may be bought for one pod of the item alone.
func (m *model) suitsAlone(option, s int) bool {
	return m.unrestricted || m.p.Suits == nil || m.p.Suits(m.options[option], []Part{{Item: s, Count: 1}})
}

// fits is resource.Vector.Fits in the dimensions in use.
func fits(need, free []int64) bool {
	for j, n := range need {
		if n > 0 && n > free[j] {
			return false
		}
	}
	return true
}

// times says how often need can be taken out of free, at most limit.
func times(need, free []int64, limit int) int {
	n := int64(limit)
	for j, x := range need {
		if x > 0 {
			if f := free[j]; f < x {
				return 0
			} else if x*n > f {
				n = f / x
			}
		}
	}
	return int(n)
}
