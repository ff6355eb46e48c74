package disrupt

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// The capacity types of the contract.
const (
	onDemand = "on-demand"
	spot     = "spot"
)

// shelf holds the types that a new node may be, by what they cost at worst.
type shelf struct {
	origin *schedule.Bin
	rule   spotTerms
	pinned bool // to spot
	relax  bool // minValues may give way
	wares  []ware
	// rows are the offerings that meet the bin's requirements and are to be had.
	rows require.Bits
	// fewest and most bound how many types are kept; fewest is beyond what there is if minValues can't be met.
	fewest, most int
}

// ware is a type with what it costs: at least and at most, among the offerings that the cloud would take first. Its offerings
// are those of the shelf's rows from first to before end.
type ware struct {
	name        string
	best, worst float64
	first, end  int
}

// newShelf lists what a bin may become. A bin that may be spot or on-demand becomes spot: that is what makes it cheap, and if
// there is none it is better not to make it than to pay more.
func newShelf(b *schedule.Bin, rule spotTerms, relax bool) *shelf {
	if !allowsSpot(*b) {
		rule = spotTerms{}
	}
	sh := &shelf{origin: b, rule: rule, relax: relax}
	terms, _ := b.Requirements.Get(cluster.CapacityTypeLabel)
	sh.pinned = terms.Matches(spot, true) && (terms.Matches(onDemand, true) || rule.applies)
	sh.wares = sh.list()
	slices.SortFunc(sh.wares, func(x, y ware) int { return cmp.Or(cmp.Compare(x.worst, y.worst), strings.Compare(x.name, y.name)) })
	sh.fewest, sh.most = sh.variety(), len(sh.wares)
	if rule.applies && rule.risk <= 0 && rule.types > 0 {
		sh.most = min(sh.most, max(rule.types, sh.fewest))
		sh.fewest = max(sh.fewest, rule.types)
	}
	return sh
}

// list finds what the bin's types cost.
func (sh *shelf) list() []ware {
	catalog := sh.origin.Pool.Catalog
	sh.rows = catalog.Available()
	for _, e := range sh.origin.Requirements {
		if e.Key != cluster.InstanceTypeLabel && catalog.Index().Knows(e.Key) { // the bin's types are listed as well
			sh.rows = sh.rows.And(catalog.Index().Match(e.Key, e.Values))
		}
	}
	if sh.pinned {
		sh.rows = sh.rows.And(catalog.Index().Match(cluster.CapacityTypeLabel, require.Only(spot)))
	}
	out := make([]ware, 0, len(sh.origin.Types))
	for _, name := range sh.origin.Types {
		w := ware{name: name}
		w.first, w.end = offerings(catalog, name)
		if sh.price(&w) {
			out = append(out, w)
		}
	}
	return out
}

// price says what a type costs: the cloud takes what is reserved first, then spot, then the rest; among those it may hand out
// the most expensive. It is false if none of its offerings will do.
func (sh *shelf) price(w *ware) bool {
	last := -1
	for i := w.first; i < w.end; i++ {
		if !sh.rows.Has(i) {
			continue
		}
		o := &sh.origin.Pool.Catalog.Offerings[i]
		switch rank := rankOf(o); {
		case last < 0 || rank < last:
			w.best, w.worst, last = o.Price, o.Price, rank
		case rank == last:
			w.best, w.worst = min(w.best, o.Price), max(w.worst, o.Price)
		}
	}
	return last >= 0
}

// take adds the ware's offerings to a set.
func (sh *shelf) take(w *ware, rows require.Bits) {
	for i := w.first; i < w.end; i++ {
		if sh.rows.Has(i) {
			rows.Set(i)
		}
	}
}

// offerings are the places of a type's offerings in the catalog: from first to before end.
func offerings(catalog *cluster.Catalog, name string) (first, end int) {
	number := sort.Search(len(catalog.Types), func(i int) bool { return catalog.Types[i].Name >= name })
	if number == len(catalog.Types) || catalog.Types[number].Name != name {
		return 0, 0
	}
	first = sort.Search(len(catalog.Offerings), func(i int) bool { return catalog.Offerings[i].Type >= number })
	for end = first; end < len(catalog.Offerings) && catalog.Offerings[end].Type == number; end++ {
		continue
	}
	return first, end
}

func rankOf(o *cluster.Offering) int {
	switch {
	case o.Reservation != "":
		return 0
	case o.CapacityType == spot:
		return 1
	}
	return 2
}

// variety is how many of the cheapest types it takes to meet the pool's minValues.
func (sh *shelf) variety() int {
	catalog, n, taken := sh.origin.Pool.Catalog, 1, 0
	var rows require.Bits
	for _, e := range sh.origin.Requirements {
		if e.MinValues <= 0 || sh.relax || !catalog.Index().Knows(e.Key) {
			continue
		}
		if rows == nil {
			rows = require.NewBits(len(catalog.Offerings))
		}
		for catalog.Index().Spread(e.Key, rows) < e.MinValues {
			if taken == len(sh.wares) {
				return len(sh.wares) + 1
			}
			sh.take(&sh.wares[taken], rows)
			taken++
		}
		n = max(n, taken)
	}
	return n
}

// outdo drops what is no cheaper than a node of the same type that goes: it could be kept instead.
func (sh *shelf) outdo(candidates []Candidate) {
	top, capped := 0.0, false
	for i := range candidates {
		c := &candidates[i]
		if slices.ContainsFunc(sh.wares, func(w ware) bool { return w.name == c.Type }) && (!capped || c.Price < top) {
			top, capped = c.Price, true
		}
	}
	if capped {
		sh.wares = slices.DeleteFunc(sh.wares, func(w ware) bool { return w.worst > top-leastSaving })
		sh.most = min(sh.most, len(sh.wares))
	}
}

// cost is what a choice of the k cheapest types counts for.
func (sh *shelf) cost(k int) float64 { return sh.wares[k-1].worst * sh.rule.factor(k) }

// least is what the shelf must be granted: the least that a choice of as many types as it takes counts for. It is below zero if
// there are too few.
func (sh *shelf) least() float64 {
	least := -1.0
	for k := sh.fewest; k <= sh.most; k++ {
		if cost := sh.cost(k); least < 0 || cost < least {
			least = cost
		}
	}
	return least
}

// upTo is how many types may be kept if they are to count for no more than the ceiling; it is never below what the shelf must be
// granted, but for the way in which numbers are rounded.
func (sh *shelf) upTo(ceiling float64) int {
	best := sh.fewest
	for k := sh.most; k >= sh.fewest; k-- {
		if sh.cost(k) <= ceiling {
			return k
		}
		if sh.cost(k) < sh.cost(best) {
			best = k
		}
	}
	return best
}

// short says what it is that there are too few types for: where nothing asks for several, the cheapest is enough.
func (sh *shelf) short() Why {
	if sh.rule.applies {
		return SpotNeedsTypes
	}
	return MinValuesTooDear
}

// bin is the new node with the k cheapest types left, and the most that it may cost.
func (sh *shelf) bin(k int) (schedule.Bin, float64) {
	b := *sh.origin
	kept := make(map[string]bool, k)
	for i := range sh.wares[:k] {
		w := &sh.wares[i]
		kept[w.name] = true
		if i == 0 || w.best < b.Price {
			b.Price = w.best
		}
	}
	b.Types = slices.DeleteFunc(slices.Clone(b.Types), func(name string) bool { return !kept[name] })
	b.Requirements = b.Requirements.Replace(cluster.InstanceTypeLabel, require.Only(b.Types...))
	if sh.pinned {
		b.Requirements = b.Requirements.Replace(cluster.CapacityTypeLabel, require.Only(spot))
	}
	if sh.relax {
		sh.lower(&b, k)
	}
	return b, sh.wares[k-1].worst
}

// lower asks for no more different values than there are left.
func (sh *shelf) lower(b *schedule.Bin, k int) {
	index, rows := b.Pool.Catalog.Index(), require.NewBits(len(b.Pool.Catalog.Offerings))
	for i := range sh.wares[:k] {
		sh.take(&sh.wares[i], rows)
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
