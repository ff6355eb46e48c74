package market

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
	// Requirements that whatever is launched must meet, and Labels that the node will carry beyond what its offering
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

// Choice is an offering that was chosen for a content.
type Choice struct {
	Pool     *Pool
	Offering int
	content  resource.Vector
	// Matches are the alternatives, one of each feasible set in it, that the offering meets.
	Matches []*termMatch
	// LikedSorts says, if the pods have wishes, which sorts of offerings meet them as well; Sorts is the sort of each
	// offering.
	LikedSorts []bool
	Sorts      []int32
	// Offerings are the offerings that the node may become, once it has been written down.
	Offerings require.Bits
}

// isLiked reports whether an offering meets the pods' wishes no less than the one that was chosen.
func (co *Choice) isLiked(row int) bool {
	return co.LikedSorts == nil || co.LikedSorts[co.Sorts[row]]
}

// NewChoice finds which alternatives of the feasible sets the offering meets.
func NewChoice(pm *Pool, row int, sets []*FeasibleSet, content resource.Vector) *Choice {
	c := &Choice{Pool: pm, Offering: row, content: content}
	for _, fs := range sets {
		for j := range fs.Matches[pm.Number] {
			if tm := &fs.Matches[pm.Number][j]; tm.Offerings.Has(row) {
				c.Matches = append(c.Matches, tm)
				break
			}
		}
	}
	return c
}

// Alternatives is what a node may become: offerings, their types, cheapest first, and labels that had to be settled for
// it.
type Alternatives struct {
	Offerings     require.Bits
	types         []int
	decidedLabels require.Set
}

// Interchangeable finds every offering that would do for the content as well, the cheapest MaxTypes types of them. What
// was bought from a reservation stays there.
func (co *Choice) Interchangeable() Alternatives {
	pm, catalog := co.Pool, co.Pool.Spec.Catalog
	r := pm.ranking(co.Matches, catalog.Offerings[co.Offering].Reservation)
	capacity := &catalog.Types[catalog.Offerings[co.Offering].Type].Capacity
	var out Alternatives
	fits := require.NewBits(len(pm.Room))
	if pm.uniform {
		for _, kind := range r.types {
			if len(out.types) == MaxTypes {
				break
			}
			if pm.Fits(kind.first, &co.content) && pm.WithinCharge(&catalog.Types[kind.number].Capacity, capacity) &&
				co.copyLiked(r.offerings, fits, kind) {
				out.types = append(out.types, kind.number)
			}
		}
		out.Offerings = fits
		return out
	}
	tight := require.NewBits(len(pm.Room))
	for i := range r.allOfferings.All {
		switch {
		case !pm.Fits(i, &co.content):
			tight.Set(i)
		case r.offerings.Has(i) && co.isLiked(i) && pm.WithinCharge(&catalog.Types[catalog.Offerings[i].Type].Capacity,
			capacity):
			fits.Set(i)
		}
	}
	fits, out.decidedLabels = co.dropTight(fits, tight)
	out.Offerings = require.NewBits(len(pm.Room))
	for _, kind := range rank(pm.Spec.Catalog, fits) {
		if len(out.types) < MaxTypes {
			out.types = append(out.types, kind.number)
			co.copyLiked(fits, out.Offerings, kind)
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
func (co *Choice) copyLiked(from, to require.Bits, kind rankedType) (any bool) {
	for i := kind.first; i <= kind.last; i++ {
		if from.Has(i) && co.isLiked(i) {
			to.Set(i)
			any = true
		}
	}
	return any
}

// ranking ranks the types that meet the wants. Many nodes ask the same, so the answer is kept.
func (pm *Pool) ranking(matches []*termMatch, reservation string) *ranking {
	for _, known := range pm.rankings {
		if known.reservation == reservation && slices.Equal(known.matches, matches) {
			return known.ranking
		}
	}
	r := &ranking{allOfferings: pm.Offered}
	for _, m := range matches {
		r.allOfferings = r.allOfferings.And(m.Offerings)
	}
	r.offerings = without(pm.Spec.Catalog, r.allOfferings.And(pm.ForSale), func(o *cluster.Offering) bool {
		return o.Reservation != reservation
	})
	r.types = rank(pm.Spec.Catalog, r.offerings)
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
func rank(catalog *cluster.Catalog, rows require.Bits) []rankedType {
	var out []rankedType
	for i := range rows.All {
		o := &catalog.Offerings[i]
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
func (co *Choice) dropTight(fits, tight require.Bits) (require.Bits, require.Set) {
	var settled require.Set
	pm := co.Pool
	own := &pm.Spec.Catalog.Offerings[co.Offering]
	for again := true; again; {
		again = false
		types, zones, terms := spanOf(pm.Spec.Catalog, fits)
		for i := range tight.All {
			o := &pm.Spec.Catalog.Offerings[i]
			if _, meets := settled.FirstMiss(o.Label); !meets || !types[o.Type] || !zones[o.Zone] ||
				!terms[o.CapacityType] {
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
			fits, again = without(pm.Spec.Catalog, fits, clashes), true
			break
		}
	}
	return fits, settled
}

// spanOf are the types, zones and capacity types among the rows.
func spanOf(catalog *cluster.Catalog, rows require.Bits) (types map[int]bool, zones, terms map[string]bool) {
	types, zones, terms = map[int]bool{}, map[string]bool{}, map[string]bool{}
	for i := range rows.All {
		o := &catalog.Offerings[i]
		types[o.Type], zones[o.Zone], terms[o.CapacityType] = true, true, true
	}
	return types, zones, terms
}

// without leaves offerings out.
func without(catalog *cluster.Catalog, rows require.Bits, drop func(*cluster.Offering) bool) require.Bits {
	out := require.NewBits(len(catalog.Offerings))
	for i := range rows.All {
		if !drop(&catalog.Offerings[i]) {
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

// WithinCharge reports whether the capacity is no more than what is charged, in the dimensions that are limited: so
// that a limit is never overshot, whichever type the cloud hands out.
func (pm *Pool) WithinCharge(capacity, charged *resource.Vector) bool {
	for dim, set := range pm.Spec.Limits.Set {
		if set && capacity[dim] > charged[dim] {
			return false
		}
	}
	return true
}

// ShortOfValues names a key of which the rows offer fewer values than the pool's minValues asks for.
func (pm *Pool) ShortOfValues(rows require.Bits) string {
	for _, e := range pm.Spec.Template.Requirements {
		if e.MinValues > 0 && pm.Spec.Catalog.Index().Knows(e.Key) && pm.Spec.Catalog.Index().Spread(e.Key,
			rows) < e.MinValues {
			return e.Key
		}
	}
	return ""
}

// FirstMinValuesKey names the first key of which the pool asks for a choice of values.
func (pm *Pool) FirstMinValuesKey() string {
	for _, e := range pm.Spec.Template.Requirements {
		if e.MinValues > 0 {
			return e.Key
		}
	}
	return ""
}

// ToBin writes the chosen offering down as a node.
func (co *Choice) ToBin() Bin {
	pm, catalog := co.Pool, co.Pool.Spec.Catalog
	c := co.Interchangeable()
	co.Offerings = c.Offerings
	own := &catalog.Offerings[co.Offering]
	b := Bin{Pool: pm.Spec, Price: own.Price, Estimated: own.Estimated, Capacity: catalog.Types[own.Type].Capacity,
		Requirements: pm.Spec.Template.Requirements.And(c.decidedLabels), Labels: pm.FixedLabels,
		Relaxed: pm.ShortOfValues(c.Offerings) != ""}
	for _, label := range pm.FixedLabels {
		if catalog.Index().Knows(label.Key) {
			b.Requirements = b.Requirements.Replace(label.Key, require.Only(label.Value))
		}
	}
	for _, tm := range co.Matches {
		b.Requirements = b.Requirements.And(pm.claimTerm(tm))
		b.Labels = b.Labels.Merge(tm.OpenLabels)
	}
	b.Requirements = pm.shorten(b.Requirements, mostForeign)
	for _, e := range pm.OpenRequirements {
		if value, set := b.Labels.Get(e.Key); set {
			b.Requirements = b.Requirements.Replace(e.Key, require.Only(value))
		} else if value, ok := e.Values.Pick(); ok {
			b.Labels = b.Labels.With(e.Key, value)
			b.Requirements = b.Requirements.Replace(e.Key, require.Only(value))
		}
	}
	co.describe(&b, &c)
	if b.Relaxed {
		b.Requirements = pm.lowerMinValues(b.Requirements, c.Offerings)
	}
	return b
}

// describe lists types, zones and capacity types, cheapest first where that matters.
func (co *Choice) describe(b *Bin, c *Alternatives) {
	pm, catalog := co.Pool, co.Pool.Spec.Catalog
	own := &catalog.Offerings[co.Offering]
	var daemons resource.Vector
	var zones, terms []string
	last := -1
	for i := range c.Offerings.All {
		o := &catalog.Offerings[i]
		if last < 0 || !pm.uniform || o.Type != catalog.Offerings[last].Type {
			// The least that daemonsets take on any of them: what the claim asks for must fit each, and each was chosen
			// so that it holds the content beside its own daemons.
			taken := catalog.Types[o.Type].Allocatable.Sub(pm.Room[i])
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
		if pm.Names.Attaches(dim) {
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
func (pm *Pool) lowerMinValues(set require.Set, rows require.Bits) require.Set {
	out := slices.Clone(set)
	for i := range out {
		if index := pm.Spec.Catalog.Index(); out[i].MinValues > 0 && index.Knows(out[i].Key) {
			out[i].MinValues = min(out[i].MinValues, index.Spread(out[i].Key, rows))
		}
	}
	return out
}

// decidable are the demands that the launch decides about: the rest holds for every node of the pool.
func (pm *Pool) decidable(term require.Set) require.Set {
	var out require.Set
	for _, e := range term {
		if _, fixed := pm.FixedLabels.Get(e.Key); !fixed && pm.Spec.Catalog.Index().Knows(e.Key) {
			out = out.With(e.Key, e.Values)
		}
	}
	return out
}

// LabelsAgree reports whether the feasible sets' alternatives want the same values of labels that the pool leaves open.
func (co *Choice) LabelsAgree() bool {
	var settled cluster.Labels
	return !slices.ContainsFunc(co.Matches, func(m *termMatch) bool { return !m.agrees(&settled) })
}
