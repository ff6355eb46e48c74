package saving

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
)

// priceCap holds the types that a new node may be, by what they cost at worst.
type priceCap struct {
	sourceBin      *market.Bin
	terms          spotTerms
	spotOnly       bool // to spot
	relaxMinValues bool // minValues may give way
	types          []typePrice
	// offerings are the offerings that meet the bin's requirements and are to be had.
	offerings require.Bits
	// minTypes and most bound how many types are kept; minTypes is beyond what there is if minValues can't be met.
	minTypes, maxTypes int
}

// typePrice is a type with what it costs: at least and at most, among the offerings that the cloud would take first.
// Its offerings are those of the price cap's offerings from first to before end.
type typePrice struct {
	name       string
	low, high  float64
	first, end int
}

// newPriceCap lists what a bin may become. A bin that may be spot or on-demand becomes spot: that is what makes it
// cheap, and if there is none it is better not to make it than to pay more.
func newPriceCap(b *market.Bin, rule spotTerms, relax bool) *priceCap {
	if !allowsSpot(*b) {
		rule = spotTerms{}
	}
	c := &priceCap{sourceBin: b, terms: rule, relaxMinValues: relax}
	terms, _ := b.Requirements.Get(cluster.CapacityTypeLabel)
	c.spotOnly = terms.Matches(disrupt.Spot, true) && (terms.Matches(disrupt.OnDemand, true) || rule.applies)
	c.types = c.priceTypes()
	slices.SortFunc(c.types, func(x, y typePrice) int {
		return cmp.Or(cmp.Compare(x.high, y.high), strings.Compare(x.name, y.name))
	})
	c.minTypes, c.maxTypes = c.typesForMinValues(), len(c.types)
	if rule.applies && rule.riskPerHalving <= 0 && rule.minTypes > 0 {
		c.maxTypes = min(c.maxTypes, max(rule.minTypes, c.minTypes))
		c.minTypes = max(c.minTypes, rule.minTypes)
	}
	return c
}

// priceTypes finds what the bin's types cost.
func (pc *priceCap) priceTypes() []typePrice {
	catalog := pc.sourceBin.Pool.Catalog
	pc.offerings = catalog.Available()
	for _, e := range pc.sourceBin.Requirements {
		if e.Key != cluster.InstanceTypeLabel && catalog.Index().Knows(e.Key) { // the bin's types are listed as well
			pc.offerings = pc.offerings.And(catalog.Index().Match(e.Key, e.Values))
		}
	}
	if pc.spotOnly {
		pc.offerings = pc.offerings.And(catalog.Index().Match(cluster.CapacityTypeLabel, require.Only(disrupt.Spot)))
	}
	out := make([]typePrice, 0, len(pc.sourceBin.Types))
	for _, name := range pc.sourceBin.Types {
		t := typePrice{name: name}
		t.first, t.end = catalog.RangeOf(name)
		if pc.priceType(&t) {
			out = append(out, t)
		}
	}
	return out
}

// priceType says what a type costs: the cloud takes what is reserved first, then spot, then the rest; among those it
// may hand out the most expensive. It is false if none of its offerings will do.
func (pc *priceCap) priceType(t *typePrice) bool {
	last := -1
	for i := t.first; i < t.end; i++ {
		if !pc.offerings.Has(i) {
			continue
		}
		o := &pc.sourceBin.Pool.Catalog.Offerings[i]
		switch rank := launchOrder(o); {
		case last < 0 || rank < last:
			t.low, t.high, last = o.Price, o.Price, rank
		case rank == last:
			t.low, t.high = min(t.low, o.Price), max(t.high, o.Price)
		}
	}
	return last >= 0
}

// addOfferings adds the type's offerings to a set.
func (pc *priceCap) addOfferings(t *typePrice, rows require.Bits) {
	for i := t.first; i < t.end; i++ {
		if pc.offerings.Has(i) {
			rows.Set(i)
		}
	}
}

func launchOrder(o *cluster.Offering) int {
	switch {
	case o.Reservation != "":
		return 0
	case o.CapacityType == disrupt.Spot:
		return 1
	}
	return 2
}

// typesForMinValues is how many of the cheapest types it takes to meet the pool's minValues.
func (pc *priceCap) typesForMinValues() int {
	catalog, n, taken := pc.sourceBin.Pool.Catalog, 1, 0
	var rows require.Bits
	for _, e := range pc.sourceBin.Requirements {
		if e.MinValues <= 0 || pc.relaxMinValues || !catalog.Index().Knows(e.Key) {
			continue
		}
		if rows == nil {
			rows = require.NewBits(len(catalog.Offerings))
		}
		for catalog.Index().Spread(e.Key, rows) < e.MinValues {
			if taken == len(pc.types) {
				return len(pc.types) + 1
			}
			pc.addOfferings(&pc.types[taken], rows)
			taken++
		}
		n = max(n, taken)
	}
	return n
}

// dropNoCheaper drops what is no cheaper than a node of the same type that goes: it could be kept instead.
func (pc *priceCap) dropNoCheaper(candidates []disrupt.Candidate) {
	top, capped := 0.0, false
	for i := range candidates {
		c := &candidates[i]
		if slices.ContainsFunc(pc.types, func(t typePrice) bool {
			return t.name == c.Type
		}) && (!capped || c.Price < top) {
			top, capped = c.Price, true
		}
	}
	if capped {
		pc.types = slices.DeleteFunc(pc.types, func(t typePrice) bool { return t.high > top-Least })
		pc.maxTypes = min(pc.maxTypes, len(pc.types))
	}
}

// costOf is what a choice of the k cheapest types counts for.
func (pc *priceCap) costOf(k int) float64 { return pc.types[k-1].high * pc.terms.factor(k) }

// minCap is what the price cap must be granted: the least that a choice of as many types as it takes counts for. It is
// below zero if there are too few.
func (pc *priceCap) minCap() float64 {
	least := -1.0
	for k := pc.minTypes; k <= pc.maxTypes; k++ {
		if cost := pc.costOf(k); least < 0 || cost < least {
			least = cost
		}
	}
	return least
}

// typesWithin is how many types may be kept if they are to count for no more than the ceiling; it is never below what
// the price cap must be granted, but for the way in which numbers are rounded.
func (pc *priceCap) typesWithin(ceiling float64) int {
	best := pc.minTypes
	for k := pc.maxTypes; k >= pc.minTypes; k-- {
		if pc.costOf(k) <= ceiling {
			return k
		}
		if pc.costOf(k) < pc.costOf(best) {
			best = k
		}
	}
	return best
}

// tooFewReason says what it is that there are too few types for: where nothing asks for several, the cheapest is
// enough.
func (pc *priceCap) tooFewReason() disrupt.BlockReason {
	if pc.terms.applies {
		return disrupt.SpotNeedsTypes
	}
	return disrupt.MinValuesTooDear
}

// binWith is the new node with the k cheapest types left, and the most that it may cost.
func (pc *priceCap) binWith(k int) (market.Bin, float64) {
	b := *pc.sourceBin
	kept := make(map[string]bool, k)
	for i := range pc.types[:k] {
		t := &pc.types[i]
		kept[t.name] = true
		if i == 0 || t.low < b.Price {
			b.Price = t.low
		}
	}
	b.Types = slices.DeleteFunc(slices.Clone(b.Types), func(name string) bool { return !kept[name] })
	b.Requirements = b.Requirements.Replace(cluster.InstanceTypeLabel, require.Only(b.Types...))
	if pc.spotOnly {
		b.Requirements = b.Requirements.Replace(cluster.CapacityTypeLabel, require.Only(disrupt.Spot))
	}
	if pc.relaxMinValues {
		pc.lowerMinValues(&b, k)
	}
	return b, pc.types[k-1].high
}

// lowerMinValues asks for no more different values than there are left.
func (pc *priceCap) lowerMinValues(b *market.Bin, k int) {
	index, rows := b.Pool.Catalog.Index(), require.NewBits(len(b.Pool.Catalog.Offerings))
	for i := range pc.types[:k] {
		pc.addOfferings(&pc.types[i], rows)
	}
	for i, e := range b.Requirements {
		if e.MinValues <= 0 || !index.Knows(e.Key) {
			continue
		}
		if have := index.Spread(e.Key, rows); have < e.MinValues {
			b.Requirements = slices.Clone(b.Requirements)
			b.Requirements[i].MinValues, b.Relaxed = have, true
		}
	}
}
