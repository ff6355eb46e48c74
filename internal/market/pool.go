package market

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Pool is one pool as a place to buy nodes: its offerings, what daemonsets leave of each, and what its limits
// leave.
type Pool struct {
	Number int // its place among all markets
	Names  *resource.Names
	Spec   *cluster.Pool
	// FixedLabels are the labels that every node of the pool has; OpenRequirements are the pool's requirements on keys
	// that neither the catalog nor the template decides: a node gets the value that its pods ask for.
	FixedLabels      cluster.Labels
	OpenRequirements require.Set
	// Offered are the offerings that the pool's requirements allow; ForSale those that are available and hold their
	// daemons; Buyable those of them that limits and reservations allow now.
	Offered, ForSale, Buyable require.Bits
	// Room is what pods can use of each offering once the daemonsets have taken their share.
	Room []resource.Vector
	// uniform says that all offerings of a type have the same room.
	uniform bool
	// daemonOfferings are where DaemonSets' pods may go, Daemons those that room is kept for; Omitted are the
	// DaemonSets that find room on no offering.
	daemonOfferings []DaemonOfferings
	Daemons         []DaemonOfferings
	Omitted         []OmittedDaemon
	Headroom        Headroom
	// rankings are kept for as long as the wants that they were made for.
	rankings []cachedRanking
	// offeringsByPrice are the offerings for sale by price, once somebody has asked for them.
	offeringsByPrice []int
}

// termMatch is one alternative of a feasible set in a market: the offerings that meet it, and what it settles of the
// open labels.
type termMatch struct {
	Offerings  require.Bits
	OpenLabels cluster.Labels
	term       require.Set
	// claimText is what a claim says of the term; see asks.
	claimText    require.Set
	hasClaimText bool
}

// marketTiers sorts the usable pools into tiers of equal weight, heaviest first.
func marketTiers(s *cluster.Snapshot) [][]*Pool {
	pools := slices.Clone(s.Pools)
	slices.SortFunc(pools, func(a, b *cluster.Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
	})
	var tiers [][]*Pool
	last, number := int32(-1), 0
	for _, p := range pools {
		if !p.IsUsable() {
			continue
		}
		if p.Weight != last {
			tiers = append(tiers, nil)
			last = p.Weight
		}
		pm := NewPool(s, p)
		pm.Number = number
		number++
		tiers[len(tiers)-1] = append(tiers[len(tiers)-1], pm)
	}
	return tiers
}

// NewPool opens the market of one pool.
func NewPool(s *cluster.Snapshot, p *cluster.Pool) *Pool {
	pm := &Pool{Names: s.Names, Spec: p}
	pm.FixedLabels = p.Template.Labels.With(cluster.PoolLabel, p.Name).
		With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")
	index := p.Catalog.Index()
	pm.Offered = require.AllBits(index.Len())
	for _, label := range pm.FixedLabels {
		if index.Knows(label.Key) {
			pm.Offered = pm.Offered.And(index.Match(label.Key, require.Only(label.Value)))
		}
	}
	for _, e := range p.Template.Requirements {
		if _, decided := pm.FixedLabels.Get(e.Key); decided {
			continue
		}
		if index.Knows(e.Key) {
			pm.Offered = pm.Offered.And(index.Match(e.Key, e.Values))
			continue
		}
		pm.OpenRequirements = pm.OpenRequirements.With(e.Key, e.Values)
	}
	pm.findDaemonOfferings(s.Daemons)
	pm.takeDaemonShare(AllDaemons())
	pm.Headroom = *HeadroomOf(s, p)
	return pm
}

// Fits reports whether an offering has room for the need beside its daemons. One that is too small for its daemons
// alone holds nothing, not even a pod that asks for nothing.
func (pm *Pool) Fits(row int, need *resource.Vector) bool {
	room := &pm.Room[row]
	for i := range room {
		if need[i] > room[i] || room[i] < 0 {
			return false
		}
	}
	return true
}

// MatchTerms finds the alternatives of a term list in the market, those that can hold at all. One that asks the same of
// the market as an earlier one is left out: nobody would ever choose it.
func (pm *Pool) MatchTerms(terms []require.Set) []termMatch {
	var out []termMatch
	for _, term := range terms {
		tm, _, ok := pm.MatchTerm(term)
		same := func(o termMatch) bool {
			return slices.Equal(o.OpenLabels, tm.OpenLabels) && slices.Equal(o.Offerings, tm.Offerings)
		}
		if ok && tm.Offerings.Any() && !slices.ContainsFunc(out, same) {
			out = append(out, tm)
		}
	}
	return out
}

// MatchTerm resolves each demand where it is decided: by the pool, by the catalog, or by the pods themselves. If the
// pool rules the term out altogether, miss is the entry that does it.
func (pm *Pool) MatchTerm(term require.Set) (tm termMatch, miss require.Entry, ok bool) {
	tm = termMatch{Offerings: pm.Offered, term: term}
	index := pm.Spec.Catalog.Index()
	for _, e := range term {
		if value, decided := pm.FixedLabels.Get(e.Key); decided {
			if !e.Values.Matches(value, true) {
				return termMatch{}, e, false
			}
			continue
		}
		if index.Knows(e.Key) {
			tm.Offerings = tm.Offerings.And(index.Match(e.Key, e.Values))
			continue
		}
		have, open := pm.OpenRequirements.Get(e.Key)
		if e.Key == cluster.HostnameLabel || e.Key == cluster.NameField { // a name that nobody has yet
			if !e.Values.Matches("", true) {
				return termMatch{}, e, false
			}
			continue
		}
		if !open {
			if !e.Values.AllowsAbsent() {
				return termMatch{}, e, false
			}
			continue
		}
		value, ok := have.And(e.Values).Pick()
		if !ok {
			return termMatch{}, e, false
		}
		tm.OpenLabels = tm.OpenLabels.With(e.Key, value)
	}
	return tm, require.Entry{}, true
}

// Fitting are those of the offerings that have room for the need beside their daemons.
func (pm *Pool) Fitting(rows require.Bits, need resource.Vector) require.Bits {
	out := require.NewBits(len(pm.Room))
	for i := range rows.All {
		if pm.Fits(i, &need) {
			out.Set(i)
		}
	}
	return out
}

// CountTypes counts the instance types of offerings.
func (pm *Pool) CountTypes(rows require.Bits) int {
	n, last := 0, -1
	for i := range rows.All {
		if t := pm.Spec.Catalog.Offerings[i].Type; t != last {
			n, last = n+1, t
		}
	}
	return n
}

// byPrice lists what is for sale, the cheapest first.
func (pm *Pool) byPrice() []int {
	if pm.offeringsByPrice == nil {
		for i := range pm.ForSale.All {
			pm.offeringsByPrice = append(pm.offeringsByPrice, i)
		}
		slices.SortFunc(pm.offeringsByPrice, func(i, j int) int {
			return cmp.Or(cmp.Compare(pm.Spec.Catalog.Offerings[i].Price, pm.Spec.Catalog.Offerings[j].Price), i-j)
		})
	}
	return pm.offeringsByPrice
}
