package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// MaxTypes bounds how many interchangeable types a new node keeps. The cheapest stay; more would only lengthen the
// claim.
const MaxTypes = 60

// Bin is a new node: what it may be, and the pods it is made for.
type Bin struct {
	Pool *cluster.Pool
	Pods []*cluster.Pod
	// Types that hold the content and may be exchanged for one another, cheapest first.
	Types []string
	// Requirements that whatever is launched must meet, and labels that the node will carry beyond what its offering
	// decides.
	Requirements require.Set
	Labels       cluster.Labels
	// Requests of the pods and of the daemonsets; Capacity is the most that the node counts for against limits.
	Requests, Capacity resource.Vector
	Seats              []cluster.Seat
	Price              float64
	Estimated          bool // nobody has told that price
	// Relaxed says that minValues were lowered to what there is (the BestEffort policy).
	Relaxed bool
}

// purchase is an offering that was chosen for a content.
type purchase struct {
	m       *market
	row     int
	content resource.Vector
	// wants are the alternatives, one of each site in it, that the offering meets.
	wants []*want
	// fond says, if the pods have wishes, which sorts of offerings meet them as well; sorts is the sort of each offering.
	fond  []bool
	sorts []int32
	// rows are the offerings that the node may become, once it has been written down.
	rows require.Bits
}

// likes reports whether an offering meets the pods' wishes no less than the one that was chosen.
func (p *purchase) likes(row int) bool { return p.fond == nil || p.fond[p.sorts[row]] }

// newPurchase finds which alternatives of the sites the offering meets.
func newPurchase(m *market, row int, sites []*site, content resource.Vector) *purchase {
	p := &purchase{m: m, row: row, content: content}
	for _, st := range sites {
		for j := range st.wants[m.number] {
			if w := &st.wants[m.number][j]; w.bits.Has(row) {
				p.wants = append(p.wants, w)
				break
			}
		}
	}
	return p
}

// choice is what a node may become: offerings, their types, cheapest first, and labels that had to be settled for it.
type choice struct {
	rows    require.Bits
	types   []int
	settled require.Set
}

// interchangeable finds every offering that would do for the content as well, the cheapest MaxTypes types of them. What
// was bought from a reservation stays there.
func (p *purchase) interchangeable() choice {
	m, catalog := p.m, p.m.pool.Catalog
	r := m.ranking(p.wants, catalog.Offerings[p.row].Reservation)
	capacity := &catalog.Types[catalog.Offerings[p.row].Type].Capacity
	var out choice
	fits := require.NewBits(len(m.room))
	if m.uniform {
		for _, kind := range r.types {
			if len(out.types) == MaxTypes {
				break
			}
			if m.holds(kind.first, &p.content) && m.withinLimited(&catalog.Types[kind.number].Capacity, capacity) && p.copy(r.rows, fits, kind) {
				out.types = append(out.types, kind.number)
			}
		}
		out.rows = fits
		return out
	}
	tight := require.NewBits(len(m.room))
	for i := range r.all.All {
		switch {
		case !m.holds(i, &p.content):
			tight.Set(i)
		case r.rows.Has(i) && p.likes(i) && m.withinLimited(&catalog.Types[catalog.Offerings[i].Type].Capacity, capacity):
			fits.Set(i)
		}
	}
	fits, out.settled = p.apart(fits, tight)
	out.rows = require.NewBits(len(m.room))
	for _, kind := range m.rank(fits) {
		if len(out.types) < MaxTypes {
			out.types = append(out.types, kind.number)
			p.copy(fits, out.rows, kind)
		}
	}
	return out
}

// ranking is the types that meet some wants, cheapest first.
type ranking struct {
	types []rankedType
	// rows are the offerings among which the types were ranked, all those that the wants allow.
	rows, all require.Bits
}

// rankedType is a type with the place of its first and its last offering.
type rankedType struct {
	number, first, last int
	price               float64
}

// copy copies the type's offerings that are to the pods' liking; it is false if there is none.
func (p *purchase) copy(from, to require.Bits, kind rankedType) (any bool) {
	for i := kind.first; i <= kind.last; i++ {
		if from.Has(i) && p.likes(i) {
			to.Set(i)
			any = true
		}
	}
	return any
}

// ranking ranks the types that meet the wants. Many nodes ask the same, so the answer is kept.
func (m *market) ranking(wants []*want, reservation string) *ranking {
	for _, known := range m.rankings {
		if known.reservation == reservation && slices.Equal(known.wants, wants) {
			return known.ranking
		}
	}
	r := &ranking{all: m.offered}
	for _, w := range wants {
		r.all = r.all.And(w.bits)
	}
	r.rows = m.without(r.all.And(m.forSale), func(o *cluster.Offering) bool { return o.Reservation != reservation })
	r.types = m.rank(r.rows)
	m.rankings = append(m.rankings, knownRanking{wants, reservation, r})
	return r
}

// knownRanking is a ranking with what it was made for.
type knownRanking struct {
	wants       []*want
	reservation string
	ranking     *ranking
}

// rank orders the types among the rows by the least price.
func (m *market) rank(rows require.Bits) []rankedType {
	var out []rankedType
	for i := range rows.All {
		o := &m.pool.Catalog.Offerings[i]
		if n := len(out); n > 0 && out[n-1].number == o.Type {
			out[n-1].last, out[n-1].price = i, min(out[n-1].price, o.Price)
			continue
		}
		out = append(out, rankedType{o.Type, i, i, o.Price})
	}
	slices.SortFunc(out, func(a, b rankedType) int { return cmp.Or(cmp.Compare(a.price, b.price), a.number-b.number) })
	return out
}

// apart narrows the offerings that fit until no combination of their types, zones and capacity types is one that is too
// tight: a claim lists each by itself, so the cloud may combine them freely. Offerings of one type differ in room where
// a daemonset selects some of them. The purchase itself always stays.
func (p *purchase) apart(fits, tight require.Bits) (require.Bits, require.Set) {
	var settled require.Set
	m := p.m
	own := &m.pool.Catalog.Offerings[p.row]
	for again := true; again; {
		again = false
		types, zones, terms := m.spanned(fits)
		for i := range tight.All {
			o := &m.pool.Catalog.Offerings[i]
			if !types[o.Type] || !zones[o.Zone] || !terms[o.CapacityType] || !m.meets(i, settled) {
				continue
			}
			var clashes func(*cluster.Offering) bool
			switch {
			case o.Type != own.Type:
				clashes = func(x *cluster.Offering) bool { return x.Type == o.Type }
			case o.Zone != own.Zone:
				clashes = func(x *cluster.Offering) bool { return x.Zone == o.Zone }
			case o.CapacityType != own.CapacityType:
				clashes = func(x *cluster.Offering) bool { return x.CapacityType == o.CapacityType }
			default:
				key, value := difference(own.AllLabels(), o.AllLabels())
				settled = settled.With(key, value)
				clashes = func(x *cluster.Offering) bool { have, ok := x.Label(key); return !value.Matches(have, ok) }
			}
			fits, again = m.without(fits, clashes), true
			break
		}
	}
	return fits, settled
}

// spanned are the types, zones and capacity types among the rows.
func (m *market) spanned(rows require.Bits) (types map[int]bool, zones, terms map[string]bool) {
	types, zones, terms = map[int]bool{}, map[string]bool{}, map[string]bool{}
	for i := range rows.All {
		o := &m.pool.Catalog.Offerings[i]
		types[o.Type], zones[o.Zone], terms[o.CapacityType] = true, true, true
	}
	return types, zones, terms
}

func (m *market) meets(row int, set require.Set) bool {
	_, ok := set.Miss(m.pool.Catalog.Offerings[row].Label)
	return ok
}

func (m *market) without(rows require.Bits, drop func(*cluster.Offering) bool) require.Bits {
	out := require.NewBits(len(m.room))
	for i := range rows.All {
		if !drop(&m.pool.Catalog.Offerings[i]) {
			out.Set(i)
		}
	}
	return out
}

// difference is a key in which the labels differ, with what the first have there.
func difference(own, other cluster.Labels) (key string, values require.Values) {
	for _, l := range own {
		if value, ok := other.Get(l.Key); !ok || value != l.Value {
			return l.Key, require.Only(l.Value)
		}
	}
	for _, l := range other {
		if _, ok := own.Get(l.Key); !ok {
			absent, _ := require.Make(require.DoesNotExist, nil)
			return l.Key, absent
		}
	}
	return cluster.InstanceTypeLabel, require.Anything()
}

// withinLimited reports whether the capacity is no more than what is charged, in the dimensions that are limited: so
// that a limit is never overshot, whichever type the cloud hands out.
func (m *market) withinLimited(capacity, charged *resource.Vector) bool {
	for dim, set := range m.pool.Limits.Set {
		if set && capacity[dim] > charged[dim] {
			return false
		}
	}
	return true
}

// shortOfValues names a key of which the rows offer fewer values than the pool's minValues asks for.
func (m *market) shortOfValues(rows require.Bits) string {
	for _, e := range m.pool.Template.Requirements {
		if e.MinValues > 0 && m.pool.Catalog.Index().Knows(e.Key) && m.pool.Catalog.Index().Spread(e.Key, rows) < e.MinValues {
			return e.Key
		}
	}
	return ""
}

// choosy names the first key of which the pool asks for a choice of values.
func (m *market) choosy() string {
	for _, e := range m.pool.Template.Requirements {
		if e.MinValues > 0 {
			return e.Key
		}
	}
	return ""
}

// bin writes the purchase down as a node.
func (p *purchase) bin() Bin {
	m, catalog := p.m, p.m.pool.Catalog
	c := p.interchangeable()
	p.rows = c.rows
	own := &catalog.Offerings[p.row]
	b := Bin{Pool: m.pool, Price: own.Price, Estimated: own.Estimated, Capacity: catalog.Types[own.Type].Capacity,
		Requirements: m.pool.Template.Requirements.And(c.settled), Labels: m.fixed, Relaxed: m.shortOfValues(c.rows) != ""}
	for _, label := range m.fixed {
		if catalog.Index().Knows(label.Key) {
			b.Requirements = b.Requirements.Replace(label.Key, require.Only(label.Value))
		}
	}
	for _, w := range p.wants {
		b.Requirements = b.Requirements.And(m.asks(w))
		b.Labels = b.Labels.Merge(w.open)
	}
	b.Requirements = m.terse(b.Requirements, mostForeign)
	for _, e := range m.open {
		if value, set := b.Labels.Get(e.Key); set {
			b.Requirements = b.Requirements.Replace(e.Key, require.Only(value))
		} else if value, ok := e.Values.Pick(); ok {
			b.Labels = b.Labels.With(e.Key, value)
			b.Requirements = b.Requirements.Replace(e.Key, require.Only(value))
		}
	}
	p.describe(&b, &c)
	if b.Relaxed {
		b.Requirements = m.lowered(b.Requirements, c.rows)
	}
	return b
}

// describe lists types, zones and capacity types, cheapest first where that matters.
func (p *purchase) describe(b *Bin, c *choice) {
	m, catalog := p.m, p.m.pool.Catalog
	own := &catalog.Offerings[p.row]
	var daemons resource.Vector
	var zones, terms []string
	last := -1
	for i := range c.rows.All {
		o := &catalog.Offerings[i]
		if last < 0 || !m.uniform || o.Type != catalog.Offerings[last].Type {
			// The least that daemonsets take on any of them: what the claim asks for must fit each, and each was chosen
			// so that it holds the content beside its own daemons.
			taken := catalog.Types[o.Type].Allocatable.Sub(m.room[i])
			if last < 0 {
				daemons = taken
			}
			daemons = daemons.Min(taken)
		}
		last = i
		zones, terms = include(zones, o.Zone), include(terms, o.CapacityType)
		if o.Price < b.Price {
			b.Price, b.Estimated = o.Price, o.Estimated
		}
	}
	for _, t := range c.types {
		b.Types = append(b.Types, catalog.Types[t].Name)
	}
	b.Requests = p.content.Add(daemons)
	for dim := range b.Requests { // attachments are no resource of a node: it would never report them
		if m.names.Attaches(dim) {
			b.Requests[dim] = 0
		}
	}
	b.Requirements = b.Requirements.Replace(cluster.InstanceTypeLabel, require.Only(b.Types...)).
		Replace(cluster.CapacityTypeLabel, require.Only(terms...)).
		Replace(cluster.ZoneLabel, require.Only(zones...))
	if own.Reservation != "" {
		for _, label := range own.AllLabels() {
			if label.Value == own.Reservation {
				b.Requirements = b.Requirements.Replace(label.Key, require.Only(label.Value))
			}
		}
	}
}

// include adds a value to a short sorted list.
func include(list []string, value string) []string {
	if value == "" || slices.Contains(list, value) { // mostly it is the very same string, which is quick to tell
		return list
	}
	i, _ := slices.BinarySearchFunc(list, value, strings.Compare)
	return slices.Insert(list, i, value)
}

// lowered asks for no more different values than the rows have.
func (m *market) lowered(set require.Set, rows require.Bits) require.Set {
	out := slices.Clone(set)
	for i := range out {
		if index := m.pool.Catalog.Index(); out[i].MinValues > 0 && index.Knows(out[i].Key) {
			out[i].MinValues = min(out[i].MinValues, index.Spread(out[i].Key, rows))
		}
	}
	return out
}

// decidable are the demands that the launch decides about: the rest holds for every node of the pool.
func (m *market) decidable(term require.Set) require.Set {
	var out require.Set
	for _, e := range term {
		if _, fixed := m.fixed.Get(e.Key); !fixed && m.pool.Catalog.Index().Knows(e.Key) {
			out = out.With(e.Key, e.Values)
		}
	}
	return out
}
