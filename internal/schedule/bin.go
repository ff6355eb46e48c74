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
		rows, types := c.interchangeable(groups, fill, content)
		if c.m.shortOfValues(rows) == "" {
			return c.bin(groups, fill, rows, types, content), true
		}
		if !fill.halve() {
			return Bin{}, false
		}
	}
}

// interchangeable finds every offering that would do for the content as well, and its types, cheapest first.
func (c *candidate) interchangeable(groups []*group, fill *filling, content resource.Vector) (require.Bits, []string) {
	m, catalog := c.m, c.m.pool.Catalog
	rows := m.forSale
	for i, n := range fill.counts {
		if n > 0 {
			rows = rows.And(m.wantsOf(groups[i].class)[c.lands[i]].bits)
		}
	}
	capacity := catalog.Types[catalog.Offerings[c.offering].Type].Capacity
	least := make(map[int]float64)
	fits := require.NewBits(len(m.room))
	for i := range rows.All {
		o := &catalog.Offerings[i]
		if !content.Fits(m.room[i]) || !m.withinLimited(catalog.Types[o.Type].Capacity, capacity) {
			continue
		}
		fits.Set(i)
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
	return m.only(fits, order)
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

func (c *candidate) bin(groups []*group, fill *filling, rows require.Bits, types []string, content resource.Vector) Bin {
	m, catalog := c.m, c.m.pool.Catalog
	b := Bin{
		Pool: m.pool, Types: types, Price: c.price, Seats: fill.seats(groups),
		Capacity:     catalog.Types[catalog.Offerings[c.offering].Type].Capacity,
		Requirements: m.pool.Template.Requirements, Labels: m.fixed,
	}
	for i, n := range fill.counts {
		if n > 0 {
			b.Requirements = b.Requirements.And(m.decidable(m.wantsOf(groups[i].class)[c.lands[i]].term))
		}
	}
	var daemons resource.Vector
	zones, terms := map[string]bool{}, map[string]bool{}
	for i := range rows.All {
		o := &catalog.Offerings[i]
		daemons = daemons.Max(catalog.Types[o.Type].Allocatable.Sub(m.room[i]))
		zones[o.Zone], terms[o.CapacityType] = true, true
		b.Price = min(b.Price, o.Price)
	}
	b.Requests = content.Add(daemons)
	b.Requirements = b.Requirements.Replace(cluster.InstanceTypeLabel, require.Only(types...)).
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
