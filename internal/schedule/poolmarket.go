package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// poolMarket is one pool as a place to buy nodes: its offerings, what daemonsets leave of each, and what its limits
// leave.
type poolMarket struct {
	number int // its place among all markets
	names  *resource.Names
	pool   *cluster.Pool
	// fixedLabels are the labels that every node of the pool has; openRequirements are the pool's requirements on keys
	// that neither the catalog nor the template decides: a node gets the value that its pods ask for.
	fixedLabels      cluster.Labels
	openRequirements require.Set
	// offered are the offerings that the pool's requirements allow; forSale those that are available and hold their
	// daemons; buyable those of them that limits and reservations allow now.
	offered, forSale, buyable require.Bits
	// room is what pods can use of each offering once the daemonsets have taken their share.
	room []resource.Vector
	// uniform says that all offerings of a type have the same room.
	uniform bool
	// daemonOfferings are where DaemonSets' pods may go, daemons those that room is kept for; omitted are the
	// DaemonSets that find room on no offering.
	daemonOfferings []daemonOfferings
	daemons         []daemonOfferings
	omitted         []OmittedDaemon
	limits          limitsLeft
	// rankings are kept for as long as the wants that they were made for.
	rankings []cachedRanking
	// offeringsByPrice are the offerings for sale by price, once somebody has asked for them.
	offeringsByPrice []int
	// hints are for pods that find no place.
	hints hints
}

// limitsLeft is what a pool's limits still allow.
type limitsLeft struct {
	limits *cluster.Limits
	used   resource.Vector
	nodes  int64
}

// termMatch is one alternative of a feasible set in a market: the offerings that meet it, and what it settles of the
// open labels.
type termMatch struct {
	offerings  require.Bits
	openLabels cluster.Labels
	term       require.Set
	// claimText is what a claim says of the term; see asks.
	claimText    require.Set
	hasClaimText bool
}

// marketTiers sorts the usable pools into tiers of equal weight, heaviest first.
func marketTiers(s *cluster.Snapshot) [][]*poolMarket {
	pools := slices.Clone(s.Pools)
	slices.SortFunc(pools, func(a, b *cluster.Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
	})
	var tiers [][]*poolMarket
	last, number := int32(-1), 0
	for _, p := range pools {
		if !p.IsUsable() {
			continue
		}
		if p.Weight != last {
			tiers = append(tiers, nil)
			last = p.Weight
		}
		pm := newPoolMarket(s, p)
		pm.number = number
		number++
		tiers[len(tiers)-1] = append(tiers[len(tiers)-1], pm)
	}
	return tiers
}

func newPoolMarket(s *cluster.Snapshot, p *cluster.Pool) *poolMarket {
	pm := &poolMarket{names: s.Names, pool: p}
	pm.fixedLabels = p.Template.Labels.With(cluster.PoolLabel, p.Name).
		With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")
	index := p.Catalog.Index()
	pm.offered = require.AllBits(index.Len())
	for _, label := range pm.fixedLabels {
		if index.Knows(label.Key) {
			pm.offered = pm.offered.And(index.Match(label.Key, require.Only(label.Value)))
		}
	}
	for _, e := range p.Template.Requirements {
		if _, decided := pm.fixedLabels.Get(e.Key); decided {
			continue
		}
		if index.Knows(e.Key) {
			pm.offered = pm.offered.And(index.Match(e.Key, e.Values))
			continue
		}
		pm.openRequirements = pm.openRequirements.With(e.Key, e.Values)
	}
	pm.findDaemonOfferings(s.Daemons)
	pm.takeDaemonShare(requireAllDaemons())
	pm.limits = newLimitsLeft(s, p)
	return pm
}

// refreshBuyable finds what limits and reservations let the pool buy now.
func (pm *poolMarket) refreshBuyable(stocks map[string]int) {
	if !pm.pool.Limits.Any() && len(stocks) == 0 {
		pm.buyable = pm.forSale
		return
	}
	pm.buyable = require.NewBits(len(pm.room))
	kind, allowed := -1, 0
	for i := range pm.forSale.All {
		o := &pm.pool.Catalog.Offerings[i]
		if o.Type != kind {
			kind = o.Type
			allowed, _ = pm.limits.allows(pm.pool.Catalog.Types[o.Type].Capacity, 1)
		}
		if allowed > 0 && (o.Reservation == "" || stocks[o.Reservation] > 0) {
			pm.buyable.Set(i)
		}
	}
}

// fits reports whether an offering has room for the need beside its daemons. One that is too small for its daemons
// alone holds nothing, not even a pod that asks for nothing.
func (pm *poolMarket) fits(row int, need *resource.Vector) bool {
	room := &pm.room[row]
	for i := range room {
		if need[i] > room[i] || room[i] < 0 {
			return false
		}
	}
	return true
}

func newLimitsLeft(s *cluster.Snapshot, p *cluster.Pool) limitsLeft {
	l := limitsLeft{limits: &p.Limits}
	for _, c := range s.ClaimsOf(p.Name) {
		l.nodes++
		l.used = l.used.Add(Charge(s, p, c))
	}
	return l
}

// Headroom is what a pool's limits leave.
type Headroom struct{ limits limitsLeft }

// HeadroomOf counts what the limits of a pool leave beside the claims that it has.
func HeadroomOf(s *cluster.Snapshot, p *cluster.Pool) *Headroom {
	return &Headroom{newLimitsLeft(s, p)}
}

// Take reports whether one more node of that capacity is within the limits, and counts it if so.
func (h *Headroom) Take(capacity resource.Vector) bool {
	if n, _ := h.limits.allows(capacity, 1); n < 1 {
		return false
	}
	h.limits.charge(capacity, 1)
	return true
}

// Fits reports whether one more node of that capacity is within the limits.
func (h *Headroom) Fits(capacity resource.Vector) bool {
	n, _ := h.limits.allows(capacity, 1)
	return n == 1
}

// Charge is what a claim counts for against its pool's limits: what its node has or, until that is known, the most that
// it may turn out to have.
func Charge(s *cluster.Snapshot, p *cluster.Pool, c *cluster.Claim) resource.Vector {
	if n := s.NodeOf(c.Name); n != nil && !n.Capacity.IsZero() {
		return n.Capacity
	}
	if !c.Capacity.IsZero() || p.Catalog == nil {
		return c.Capacity
	}
	var most resource.Vector
	for _, name := range c.Types() {
		if t, ok := p.Catalog.Type(name); ok {
			most = most.Max(t.Capacity)
		}
	}
	return most
}

// allows says how many more nodes with the capacity the limits allow, at most n, and which resource binds if it is
// fewer.
func (l *limitsLeft) allows(capacity resource.Vector, n int) (count int, binds int) {
	count, binds = n, -1
	if l.limits.Broken != "" {
		return 0, resource.Size
	}
	if l.limits.HasNodes && l.limits.Nodes-l.nodes < int64(count) {
		count, binds = int(max(l.limits.Nodes-l.nodes, 0)), resource.Size
	}
	for dim, set := range l.limits.Set {
		if !set || capacity[dim] <= 0 {
			continue
		}
		if more := max(l.limits.Amount[dim]-l.used[dim], 0) / capacity[dim]; more < int64(count) {
			count, binds = int(more), dim
		}
	}
	return count, binds
}

func (l *limitsLeft) charge(capacity resource.Vector, n int) {
	l.nodes += int64(n)
	l.used = l.used.Add(capacity.Times(int64(n)))
}

// matchTerms finds the alternatives of a term list in the market, those that can hold at all. One that asks the same of
// the market as an earlier one is left out: nobody would ever choose it.
func (pm *poolMarket) matchTerms(terms []require.Set) []termMatch {
	var out []termMatch
	for _, term := range terms {
		tm, _, ok := pm.matchTerm(term)
		same := func(o termMatch) bool {
			return slices.Equal(o.openLabels, tm.openLabels) && slices.Equal(o.offerings, tm.offerings)
		}
		if ok && tm.offerings.Any() && !slices.ContainsFunc(out, same) {
			out = append(out, tm)
		}
	}
	return out
}

// matchTerm resolves each demand where it is decided: by the pool, by the catalog, or by the pods themselves. If the
// pool rules the term out altogether, miss is the entry that does it.
func (pm *poolMarket) matchTerm(term require.Set) (tm termMatch, miss require.Entry, ok bool) {
	tm = termMatch{offerings: pm.offered, term: term}
	index := pm.pool.Catalog.Index()
	for _, e := range term {
		if value, decided := pm.fixedLabels.Get(e.Key); decided {
			if !e.Values.Matches(value, true) {
				return termMatch{}, e, false
			}
			continue
		}
		if index.Knows(e.Key) {
			tm.offerings = tm.offerings.And(index.Match(e.Key, e.Values))
			continue
		}
		have, open := pm.openRequirements.Get(e.Key)
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
		tm.openLabels = tm.openLabels.With(e.Key, value)
	}
	return tm, require.Entry{}, true
}
