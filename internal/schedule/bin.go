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
}

// newBin turns a candidate and its content into a node. If the pool asks for a choice of values (minValues) and the
// content leaves too few, some of the content is left for another node. ok is false if even one pod leaves too few.
func newBin(c *candidate, groups []*group, fill *filling) (Bin, bool) {
	for {
		content := fill.content(groups)
		choice := c.interchangeable(groups, fill, content)
		if c.m.shortOfValues(choice.rows) == "" {
			return c.bin(groups, fill, choice, content), true
		}
		if !fill.halve() {
			return Bin{}, false
		}
	}
}

// choice is what a node may become: offerings, their types, cheapest first, and labels that had to be settled for it.
type choice struct {
	rows    require.Bits
	types   []string
	settled require.Set
}

// interchangeable finds every offering that would do for the content as well.
func (c *candidate) interchangeable(groups []*group, fill *filling, content resource.Vector) choice {
	m, catalog := c.m, c.m.pool.Catalog
	rows := m.offered
	for i, n := range fill.counts {
		if n > 0 {
			rows = rows.And(m.wantsOf(groups[i].class)[c.lands[i]].bits)
		}
	}
	capacity := catalog.Types[catalog.Offerings[c.offering].Type].Capacity
	fits, tight := require.NewBits(len(m.room)), require.NewBits(len(m.room))
	for i := range rows.All {
		switch {
		case !m.holds(i, content):
			tight.Set(i)
		case m.withinLimited(catalog.Types[catalog.Offerings[i].Type].Capacity, capacity):
			fits.Set(i)
		}
	}
	fits, settled := c.apart(fits.And(m.forSale), tight)
	least := make(map[int]float64)
	for i := range fits.All {
		o := &catalog.Offerings[i]
		if price, seen := least[o.Type]; !seen || o.Price < price {
			least[o.Type] = o.Price
		}
	}
	order := make([]int, 0, len(least))
	for t := range least {
		order = append(order, t)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(least[a], least[b]), a-b) })
	if len(order) > MaxTypes {
		order = order[:MaxTypes]
	}
	out := choice{settled: settled}
	out.rows, out.types = m.only(fits, order)
	return out
}

// apart narrows the offerings that fit until no combination of their types, zones and capacity types is one that is too
// tight: a claim lists each by itself, so the cloud may combine them freely. Offerings of one type differ in room where
// a daemonset selects some of them. The candidate itself always stays.
func (c *candidate) apart(fits, tight require.Bits) (require.Bits, require.Set) {
	var settled require.Set
	own := &c.m.pool.Catalog.Offerings[c.offering]
	for again := true; again; {
		again = false
		types, zones, terms := c.m.spanned(fits)
		for i := range tight.All {
			o := &c.m.pool.Catalog.Offerings[i]
			if !types[o.Type] || !zones[o.Zone] || !terms[o.CapacityType] || !c.m.meets(i, settled) {
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
				key, value := difference(own.Labels, o.Labels)
				settled = settled.With(key, value)
				clashes = func(x *cluster.Offering) bool { have, ok := x.Labels.Get(key); return !value.Matches(have, ok) }
			}
			fits, again = c.m.without(fits, clashes), true
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
	_, ok := set.Miss(m.pool.Catalog.Offerings[row].Labels.Get)
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
func (m *market) withinLimited(capacity, charged resource.Vector) bool {
	for dim, set := range m.pool.Limits.Set {
		if set && capacity[dim] > charged[dim] {
			return false
		}
	}
	return true
}

func (m *market) only(rows require.Bits, types []int) (require.Bits, []string) {
	keep := make(map[int]bool, len(types))
	names := make([]string, len(types))
	for i, t := range types {
		keep[t] = true
		names[i] = m.pool.Catalog.Types[t].Name
	}
	out := require.NewBits(len(m.room))
	for i := range rows.All {
		if keep[m.pool.Catalog.Offerings[i].Type] {
			out.Set(i)
		}
	}
	return out, names
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

func (c *candidate) bin(groups []*group, fill *filling, choice choice, content resource.Vector) Bin {
	m, catalog := c.m, c.m.pool.Catalog
	b := Bin{
		Pool: m.pool, Types: choice.types, Price: c.price, Seats: fill.seats(groups),
		Capacity:     catalog.Types[catalog.Offerings[c.offering].Type].Capacity,
		Requirements: m.pool.Template.Requirements.And(choice.settled), Labels: m.fixed,
	}
	for _, label := range m.fixed {
		if catalog.Index().Knows(label.Key) {
			b.Requirements = b.Requirements.Replace(label.Key, require.Only(label.Value))
		}
	}
	for i, n := range fill.counts {
		if n > 0 {
			b.Requirements = b.Requirements.And(m.decidable(m.wantsOf(groups[i].class)[c.lands[i]].term))
		}
	}
	var daemons resource.Vector
	first := true
	zones, terms := map[string]bool{}, map[string]bool{}
	for i := range choice.rows.All {
		o := &catalog.Offerings[i]
		// The least that daemonsets take on any of them: what the claim asks for must fit each, and each was chosen so
		// that it holds the content beside its own daemons.
		share := catalog.Types[o.Type].Allocatable.Sub(m.room[i])
		if first {
			daemons, first = share, false
		}
		daemons = daemons.Min(share)
		zones[o.Zone], terms[o.CapacityType] = true, true
		b.Price = min(b.Price, o.Price)
	}
	b.Requests = content.Add(daemons)
	b.Requirements = b.Requirements.Replace(cluster.InstanceTypeLabel, require.Only(choice.types...)).
		Replace(cluster.CapacityTypeLabel, require.Only(listed(terms)...)).
		Replace(cluster.ZoneLabel, require.Only(listed(zones)...))
	for _, e := range fill.open {
		if value, ok := e.Values.Pick(); ok {
			b.Labels = b.Labels.With(e.Key, value)
			b.Requirements = b.Requirements.Replace(e.Key, require.Only(value))
		}
	}
	return b
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

func listed(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for value := range set {
		if value != "" {
			out = append(out, value)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
