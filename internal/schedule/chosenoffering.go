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

// chosenOffering is an offering that was chosen for a content.
type chosenOffering struct {
	market   *poolMarket
	offering int
	content  resource.Vector
	// matches are the alternatives, one of each feasible set in it, that the offering meets.
	matches []*termMatch
	// likedSorts says, if the pods have wishes, which sorts of offerings meet them as well; sorts is the sort of each
	// offering.
	likedSorts []bool
	sorts      []int32
	// offerings are the offerings that the node may become, once it has been written down.
	offerings require.Bits
}

// isLiked reports whether an offering meets the pods' wishes no less than the one that was chosen.
func (co *chosenOffering) isLiked(row int) bool {
	return co.likedSorts == nil || co.likedSorts[co.sorts[row]]
}

// newChosenOffering finds which alternatives of the feasible sets the offering meets.
func newChosenOffering(pm *poolMarket, row int, sets []*feasibleSet, content resource.Vector) *chosenOffering {
	c := &chosenOffering{market: pm, offering: row, content: content}
	for _, fs := range sets {
		for j := range fs.matches[pm.number] {
			if tm := &fs.matches[pm.number][j]; tm.offerings.Has(row) {
				c.matches = append(c.matches, tm)
				break
			}
		}
	}
	return c
}

// binChoice is what a node may become: offerings, their types, cheapest first, and labels that had to be settled for
// it.
type binChoice struct {
	offerings     require.Bits
	types         []int
	decidedLabels require.Set
}

// interchangeable finds every offering that would do for the content as well, the cheapest MaxTypes types of them. What
// was bought from a reservation stays there.
func (co *chosenOffering) interchangeable() binChoice {
	pm, catalog := co.market, co.market.pool.Catalog
	r := pm.ranking(co.matches, catalog.Offerings[co.offering].Reservation)
	capacity := &catalog.Types[catalog.Offerings[co.offering].Type].Capacity
	var out binChoice
	fits := require.NewBits(len(pm.room))
	if pm.uniform {
		for _, kind := range r.types {
			if len(out.types) == MaxTypes {
				break
			}
			if pm.fits(kind.first, &co.content) && pm.withinCharge(&catalog.Types[kind.number].Capacity, capacity) &&
				co.copyLiked(r.offerings, fits, kind) {
				out.types = append(out.types, kind.number)
			}
		}
		out.offerings = fits
		return out
	}
	tight := require.NewBits(len(pm.room))
	for i := range r.allOfferings.All {
		switch {
		case !pm.fits(i, &co.content):
			tight.Set(i)
		case r.offerings.Has(i) && co.isLiked(i) && pm.withinCharge(&catalog.Types[catalog.Offerings[i].Type].Capacity,
			capacity):
			fits.Set(i)
		}
	}
	fits, out.decidedLabels = co.dropTight(fits, tight)
	out.offerings = require.NewBits(len(pm.room))
	for _, kind := range pm.rank(fits) {
		if len(out.types) < MaxTypes {
			out.types = append(out.types, kind.number)
			co.copyLiked(fits, out.offerings, kind)
		}
	}
	return out
}

// ranking is the types that meet some wants, cheapest first.
type ranking struct {
	types []rankedType
	// offerings are the offerings among which the types were ranked, all those that the wants allow.
	offerings, allOfferings require.Bits
}

// rankedType is a type with the place of its first and its last offering.
type rankedType struct {
	number, first, last int
	price               float64
}

// copyLiked copies the type's offerings that are to the pods' liking; it is false if there is none.
func (co *chosenOffering) copyLiked(from, to require.Bits, kind rankedType) (any bool) {
	for i := kind.first; i <= kind.last; i++ {
		if from.Has(i) && co.isLiked(i) {
			to.Set(i)
			any = true
		}
	}
	return any
}

// ranking ranks the types that meet the wants. Many nodes ask the same, so the answer is kept.
func (pm *poolMarket) ranking(matches []*termMatch, reservation string) *ranking {
	for _, known := range pm.rankings {
		if known.reservation == reservation && slices.Equal(known.matches, matches) {
			return known.ranking
		}
	}
	r := &ranking{allOfferings: pm.offered}
	for _, m := range matches {
		r.allOfferings = r.allOfferings.And(m.offerings)
	}
	r.offerings = pm.without(r.allOfferings.And(pm.forSale), func(o *cluster.Offering) bool {
		return o.Reservation != reservation
	})
	r.types = pm.rank(r.offerings)
	pm.rankings = append(pm.rankings, cachedRanking{matches, reservation, r})
	return r
}

// cachedRanking is a ranking with what it was made for.
type cachedRanking struct {
	matches     []*termMatch
	reservation string
	ranking     *ranking
}

// rank orders the types among the rows by the least price.
func (pm *poolMarket) rank(rows require.Bits) []rankedType {
	var out []rankedType
	for i := range rows.All {
		o := &pm.pool.Catalog.Offerings[i]
		if n := len(out); n > 0 && out[n-1].number == o.Type {
			out[n-1].last, out[n-1].price = i, min(out[n-1].price, o.Price)
			continue
		}
		out = append(out, rankedType{o.Type, i, i, o.Price})
	}
	slices.SortFunc(out, func(a, b rankedType) int { return cmp.Or(cmp.Compare(a.price, b.price), a.number-b.number) })
	return out
}

// dropTight narrows the offerings that fit until no combination of their types, zones and capacity types is one that is
// too tight: a claim lists each by itself, so the cloud may combine them freely. Offerings of one type differ in room
// where a daemonset selects some of them. The chosen offering itself always stays.
func (co *chosenOffering) dropTight(fits, tight require.Bits) (require.Bits, require.Set) {
	var settled require.Set
	pm := co.market
	own := &pm.pool.Catalog.Offerings[co.offering]
	for again := true; again; {
		again = false
		types, zones, terms := pm.spanOf(fits)
		for i := range tight.All {
			o := &pm.pool.Catalog.Offerings[i]
			if !types[o.Type] || !zones[o.Zone] || !terms[o.CapacityType] || !pm.meets(i, settled) {
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
				key, value := labelDifference(own.AllLabels(), o.AllLabels())
				settled = settled.With(key, value)
				clashes = func(x *cluster.Offering) bool { have, ok := x.Label(key); return !value.Matches(have, ok) }
			}
			fits, again = pm.without(fits, clashes), true
			break
		}
	}
	return fits, settled
}

// spanOf are the types, zones and capacity types among the rows.
func (pm *poolMarket) spanOf(rows require.Bits) (types map[int]bool, zones, terms map[string]bool) {
	types, zones, terms = map[int]bool{}, map[string]bool{}, map[string]bool{}
	for i := range rows.All {
		o := &pm.pool.Catalog.Offerings[i]
		types[o.Type], zones[o.Zone], terms[o.CapacityType] = true, true, true
	}
	return types, zones, terms
}

func (pm *poolMarket) meets(row int, set require.Set) bool {
	_, ok := set.FirstMiss(pm.pool.Catalog.Offerings[row].Label)
	return ok
}

func (pm *poolMarket) without(rows require.Bits, drop func(*cluster.Offering) bool) require.Bits {
	out := require.NewBits(len(pm.room))
	for i := range rows.All {
		if !drop(&pm.pool.Catalog.Offerings[i]) {
			out.Set(i)
		}
	}
	return out
}

// labelDifference is a key in which the labels differ, with what the first have there.
func labelDifference(own, other cluster.Labels) (key string, values require.Values) {
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

// withinCharge reports whether the capacity is no more than what is charged, in the dimensions that are limited: so
// that a limit is never overshot, whichever type the cloud hands out.
func (pm *poolMarket) withinCharge(capacity, charged *resource.Vector) bool {
	for dim, set := range pm.pool.Limits.Set {
		if set && capacity[dim] > charged[dim] {
			return false
		}
	}
	return true
}

// shortOfValues names a key of which the rows offer fewer values than the pool's minValues asks for.
func (pm *poolMarket) shortOfValues(rows require.Bits) string {
	for _, e := range pm.pool.Template.Requirements {
		if e.MinValues > 0 && pm.pool.Catalog.Index().Knows(e.Key) && pm.pool.Catalog.Index().Spread(e.Key,
			rows) < e.MinValues {
			return e.Key
		}
	}
	return ""
}

// firstMinValuesKey names the first key of which the pool asks for a choice of values.
func (pm *poolMarket) firstMinValuesKey() string {
	for _, e := range pm.pool.Template.Requirements {
		if e.MinValues > 0 {
			return e.Key
		}
	}
	return ""
}

// toBin writes the chosen offering down as a node.
func (co *chosenOffering) toBin() Bin {
	pm, catalog := co.market, co.market.pool.Catalog
	c := co.interchangeable()
	co.offerings = c.offerings
	own := &catalog.Offerings[co.offering]
	b := Bin{Pool: pm.pool, Price: own.Price, Estimated: own.Estimated, Capacity: catalog.Types[own.Type].Capacity,
		Requirements: pm.pool.Template.Requirements.And(c.decidedLabels), Labels: pm.fixedLabels,
		Relaxed: pm.shortOfValues(c.offerings) != ""}
	for _, label := range pm.fixedLabels {
		if catalog.Index().Knows(label.Key) {
			b.Requirements = b.Requirements.Replace(label.Key, require.Only(label.Value))
		}
	}
	for _, tm := range co.matches {
		b.Requirements = b.Requirements.And(pm.claimTerm(tm))
		b.Labels = b.Labels.Merge(tm.openLabels)
	}
	b.Requirements = pm.shorten(b.Requirements, mostForeign)
	for _, e := range pm.openRequirements {
		if value, set := b.Labels.Get(e.Key); set {
			b.Requirements = b.Requirements.Replace(e.Key, require.Only(value))
		} else if value, ok := e.Values.Pick(); ok {
			b.Labels = b.Labels.With(e.Key, value)
			b.Requirements = b.Requirements.Replace(e.Key, require.Only(value))
		}
	}
	co.describe(&b, &c)
	if b.Relaxed {
		b.Requirements = pm.lowerMinValues(b.Requirements, c.offerings)
	}
	return b
}

// describe lists types, zones and capacity types, cheapest first where that matters.
func (co *chosenOffering) describe(b *Bin, c *binChoice) {
	pm, catalog := co.market, co.market.pool.Catalog
	own := &catalog.Offerings[co.offering]
	var daemons resource.Vector
	var zones, terms []string
	last := -1
	for i := range c.offerings.All {
		o := &catalog.Offerings[i]
		if last < 0 || !pm.uniform || o.Type != catalog.Offerings[last].Type {
			// The least that daemonsets take on any of them: what the claim asks for must fit each, and each was chosen
			// so that it holds the content beside its own daemons.
			taken := catalog.Types[o.Type].Allocatable.Sub(pm.room[i])
			if last < 0 {
				daemons = taken
			}
			daemons = daemons.Min(taken)
		}
		last = i
		zones, terms = insertSorted(zones, o.Zone), insertSorted(terms, o.CapacityType)
		if o.Price < b.Price {
			b.Price, b.Estimated = o.Price, o.Estimated
		}
	}
	for _, t := range c.types {
		b.Types = append(b.Types, catalog.Types[t].Name)
	}
	b.Requests = co.content.Add(daemons)
	for dim := range b.Requests { // attachments are no resource of a node: it would never report them
		if pm.names.Attaches(dim) {
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

// insertSorted adds a value to a short sorted list.
func insertSorted(list []string, value string) []string {
	if value == "" || slices.Contains(list, value) { // mostly it is the very same string, which is quick to tell
		return list
	}
	i, _ := slices.BinarySearchFunc(list, value, strings.Compare)
	return slices.Insert(list, i, value)
}

// lowerMinValues asks for no more different values than the rows have.
func (pm *poolMarket) lowerMinValues(set require.Set, rows require.Bits) require.Set {
	out := slices.Clone(set)
	for i := range out {
		if index := pm.pool.Catalog.Index(); out[i].MinValues > 0 && index.Knows(out[i].Key) {
			out[i].MinValues = min(out[i].MinValues, index.Spread(out[i].Key, rows))
		}
	}
	return out
}

// decidable are the demands that the launch decides about: the rest holds for every node of the pool.
func (pm *poolMarket) decidable(term require.Set) require.Set {
	var out require.Set
	for _, e := range term {
		if _, fixed := pm.fixedLabels.Get(e.Key); !fixed && pm.pool.Catalog.Index().Knows(e.Key) {
			out = out.With(e.Key, e.Values)
		}
	}
	return out
}
