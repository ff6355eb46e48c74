package pack

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// wishMargin is how much dearer an offer may be and still be bought because it is liked.
const wishMargin = 1.05

// model is a problem in the shape that searching needs: only the dimensions that somebody asks for, only the offers
// that could be part of a cheapest answer, and for each offer the stacks that it can hold.
type model struct {
	p     *Problem
	loose bool
	dims  []int
	d     int // len(dims)

	// By stack: what it asks for in the dimensions in use.
	need   []int64
	needf  []float64
	site   []int32 // dense number of the site
	class  []int32 // stacks with the same number need the same
	marked []bool  // has marks
	solo   []bool  // at most one pod of it to a node

	// By kind, that is an offer worth looking at, from cheap to dear.
	kinds []int // place in Problem.Offers
	room  []int64
	seen  []uint64 // for each kind: the sites it is in, words to a kind
	words int
	holds [][]int32 // the stacks that fit when the node is empty

	ids int // one more than the largest id in the marks
}

// newModel reads a problem. A loose model takes the stacks' loose sites and forgets shelves, stocks and wishes: it is
// what the lower bound counts with.
func newModel(p *Problem, loose bool) *model {
	m := &model{p: p, loose: loose}
	m.readStacks()
	sites, of := m.readSites()
	m.words = (len(sites) + 63) / 64
	m.site = of
	m.readOffers(sites)
	m.match()
	return m
}

// readStacks finds out which dimensions matter and keeps what is asked for in them.
func (m *model) readStacks() {
	var used [resource.Size]bool
	for i := range m.p.Stacks {
		for dim, amount := range m.p.Stacks[i].Need {
			used[dim] = used[dim] || amount > 0
		}
	}
	for dim, u := range used {
		if u {
			m.dims = append(m.dims, dim)
		}
	}
	m.d = len(m.dims)
	n := len(m.p.Stacks)
	m.need, m.needf = make([]int64, n*m.d), make([]float64, n*m.d)
	m.marked, m.solo, m.class = make([]bool, n), make([]bool, n), make([]int32, n)
	classes := make(map[resource.Vector]int32)
	for i := range m.p.Stacks {
		s := &m.p.Stacks[i]
		for j, dim := range m.dims {
			m.need[i*m.d+j] = max(s.Need[dim], 0)
			m.needf[i*m.d+j] = float64(max(s.Need[dim], 0))
		}
		class, ok := classes[s.Need]
		if !ok {
			class = int32(len(classes))
			classes[s.Need] = class
		}
		m.class[i] = class
		m.marked[i] = len(s.Shuns)+len(s.Shunned)+len(s.Caps)+len(s.Counts) > 0
		m.solo[i] = meets(s.Shuns, s.Shunned)
		for _, id := range s.Shuns {
			m.ids = max(m.ids, int(id)+1)
		}
		for _, id := range s.Shunned {
			m.ids = max(m.ids, int(id)+1)
		}
		for _, c := range s.Caps {
			m.ids = max(m.ids, int(c.ID)+1)
		}
		for _, id := range s.Counts {
			m.ids = max(m.ids, int(id)+1)
		}
	}
}

// meets reports whether two sorted lists have an id in common.
func meets(a, b []int32) bool {
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

// readSites numbers the sites that stacks refer to; those with the same offers are one.
func (m *model) readSites() (sites []require.Bits, of []int32) {
	dense := make([]int32, len(m.p.Sites))
	of = make([]int32, len(m.p.Stacks))
	known := make(map[string]int32)
	var text []byte
	for i := range m.p.Stacks {
		at := m.p.Stacks[i].Site
		if m.loose {
			at = m.p.Stacks[i].Loose
		}
		if dense[at] == 0 {
			text = text[:0]
			for _, word := range m.p.Sites[at] {
				text = binary.LittleEndian.AppendUint64(text, word)
			}
			if dense[at] = known[string(text)]; dense[at] == 0 {
				sites = append(sites, m.p.Sites[at])
				dense[at] = int32(len(sites))
				known[string(text)] = dense[at]
			}
		}
		of[i] = dense[at] - 1
	}
	return sites, of
}

// needOf is what a pod of the stack asks for.
func (m *model) needOf(stack int) []int64 { return m.need[stack*m.d : stack*m.d+m.d] }

// roomOf is what an empty node of the kind has.
func (m *model) roomOf(kind int) []int64 { return m.room[kind*m.d : kind*m.d+m.d] }

// seenBy are the sites that the kind is in.
func (m *model) seenBy(kind int) []uint64 { return m.seen[kind*m.words : kind*m.words+m.words] }

// in reports whether the kind is in the site.
func (m *model) in(kind int, site int32) bool {
	return m.seen[kind*m.words+int(site>>6)]&(1<<(site&63)) != 0
}

// total is what all stacks ask for together: room beyond it is worth nothing.
func (m *model) total() []int64 {
	out := make([]int64, m.d)
	for j := range out {
		sum := 0.0
		for i := range m.p.Stacks {
			sum += m.needf[i*m.d+j] * float64(m.p.Stacks[i].Count)
		}
		out[j] = math.MaxInt64
		if sum < 1<<52 {
			out[j] = int64(sum)
		}
	}
	return out
}

// candidate is an offer that has not been compared with the others yet.
type candidate struct {
	offer int
	price float64
	room  []int64
	seen  []uint64
}

// readOffers keeps the offers that are in some site and not dominated by another.
func (m *model) readOffers(sites []require.Bits) {
	list := m.withoutHopeless(m.candidates(sites))
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.offer, b.offer))
	})
	var kept []*candidate
	var probe []*candidate // the same, those that dominated another last first
	for i := range list {
		c := &list[i]
		at := slices.IndexFunc(probe, func(k *candidate) bool { return m.dominates(k, c) })
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
		m.kinds = append(m.kinds, kept[i].offer)
		for _, dim := range m.dims {
			m.room = append(m.room, m.p.Offers[kept[i].offer].Room[dim])
		}
		m.seen = append(m.seen, kept[i].seen...)
	}
}

func (m *model) candidates(sites []require.Bits) []candidate {
	total := m.total()
	rows := make([]int32, len(m.p.Offers)) // place in the list, plus one
	n := 0
	for _, bits := range sites {
		for o := range bits.All {
			if rows[o] == 0 {
				n++
				rows[o] = int32(n)
			}
		}
	}
	list := make([]candidate, n)
	room, seen := make([]int64, n*m.d), make([]uint64, n*m.words)
	for o, row := range rows {
		if row == 0 {
			continue
		}
		i := int(row - 1)
		c := candidate{offer: o, price: m.p.Offers[o].Price, room: room[i*m.d : i*m.d+m.d], seen: seen[i*m.words : i*m.words+m.words]}
		for j, dim := range m.dims {
			c.room[j] = min(m.p.Offers[o].Room[dim], total[j])
		}
		list[i] = c
	}
	for s, bits := range sites {
		for o := range bits.All {
			list[rows[o]-1].seen[s>>6] |= 1 << (s & 63)
		}
	}
	return list
}

// withoutHopeless takes out what is dominated by the cheapest offer that could hold everything. When there is little to
// pack that is nearly all of them, and sorting is spared.
func (m *model) withoutHopeless(list []candidate) []candidate {
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
		if c.offer == champion.offer || c.price < champion.price || !m.dominates(&champion, &c) {
			out = append(out, c)
		}
	}
	return out
}

// dominates reports whether a, which is no dearer, can stand in for b in every answer.
func (m *model) dominates(a, b *candidate) bool {
	for j := range a.room {
		if a.room[j] < b.room[j] {
			return false
		}
	}
	for w := range a.seen {
		if b.seen[w]&^a.seen[w] != 0 {
			return false
		}
	}
	if m.loose {
		return true
	}
	x, y := &m.p.Offers[a.offer], &m.p.Offers[b.offer]
	if x.Stock >= 0 && x.Stock != y.Stock {
		return false
	}
	if !m.shelfDominates(x, y) {
		return false
	}
	if b.price <= a.price*wishMargin {
		for _, like := range m.p.Likes {
			if like[a.offer] < like[b.offer] {
				return false
			}
		}
	}
	return true
}

func (m *model) shelfDominates(x, y *Offer) bool {
	if x.Shelf < 0 || x.Shelf >= len(m.p.Shelves) {
		return true
	}
	shelf := &m.p.Shelves[x.Shelf]
	if x.Shelf != y.Shelf {
		return shelf.Nodes < 0 && shelf.Bound == [resource.Size]bool{}
	}
	for dim, bound := range shelf.Bound {
		if bound && x.Charge[dim] > y.Charge[dim] {
			return false
		}
	}
	return true
}

// match lists for each kind the stacks that it can hold.
func (m *model) match() {
	m.holds = make([][]int32, len(m.kinds))
	for k := range m.kinds {
		room := m.roomOf(k)
		for s := range m.p.Stacks {
			if m.p.Stacks[s].Count > 0 && m.in(k, m.site[s]) && fits(m.needOf(s), room) && m.suitsAlone(k, s) {
				m.holds[k] = append(m.holds[k], int32(s))
			}
		}
	}
}

// suitsAlone reports whether a node of the kind may be bought for one pod of the stack alone.
func (m *model) suitsAlone(kind, s int) bool {
	return m.loose || m.p.Suits == nil || m.p.Suits(m.kinds[kind], []Part{{Stack: s, Count: 1}})
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
