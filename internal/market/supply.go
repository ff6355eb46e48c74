package market

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Supply is what limits and reservations leave.
type Supply struct {
	limits       []Headroom
	reservations map[string]int
}

// SaveSupply notes what is left, for Restore.
func (mk *Market) SaveSupply() *Supply {
	out := &Supply{reservations: maps.Clone(mk.Reservations)}
	for _, pm := range mk.Pools {
		out.limits = append(out.limits, pm.Headroom)
	}
	return out
}

// Restore takes back what was bought since.
func (s *Supply) Restore(mk *Market) {
	for i, pm := range mk.Pools {
		pm.Headroom = s.limits[i]
	}
	mk.Reservations = s.reservations
	mk.Refresh()
}

// RefreshWithoutLimits forgets limits: they never make anything cheaper.
func (mk *Market) RefreshWithoutLimits() {
	for _, pm := range mk.Pools {
		pm.Buyable = pm.ForSale
	}
	mk.forgetSets()
}

// Refresh looks again at what can be bought, if limits or reservations bound that. Feasible sets are made anew then.
func (mk *Market) Refresh() {
	if len(mk.Reservations) > 0 || slices.ContainsFunc(mk.Pools, func(pm *Pool) bool {
		return pm.Spec.Limits.Any()
	}) {
		mk.refreshAll()
	}
}

// refreshAll looks again at what can be bought in any case.
func (mk *Market) refreshAll() {
	for _, pm := range mk.Pools {
		pm.RefreshBuyable(mk.Reservations)
	}
	mk.forgetSets()
}

// mostRankings bounds how many rankings of types are kept from one purchase to the next.
const mostRankings = 64

// TrimRankings drops the rankings of types that have become too many.
func (mk *Market) TrimRankings() {
	for _, pm := range mk.Pools {
		if len(pm.rankings) > mostRankings {
			pm.rankings = nil
		}
	}
}

// forgetSets drops the feasible sets, and what was kept for them.
func (mk *Market) forgetSets() {
	clear(mk.feasibleSets)
	clear(mk.appraisedSets)
	mk.setList = nil
	for _, pm := range mk.Pools {
		pm.rankings = nil
	}
}

// Headroom is what a pool's limits still allow.
type Headroom struct {
	Limits *cluster.Limits
	Used   resource.Vector
	Nodes  int64
}

// HeadroomOf counts what the limits of a pool leave beside the claims that it has.
func HeadroomOf(s *cluster.Snapshot, p *cluster.Pool) *Headroom {
	l := &Headroom{Limits: &p.Limits}
	for _, c := range s.ClaimsOf(p.Name) {
		l.Nodes++
		l.Used = l.Used.Add(ChargeOf(s, p, c))
	}
	return l
}

// Take reports whether one more node of that capacity is within the limits, and counts it if so.
func (l *Headroom) Take(capacity resource.Vector) bool {
	if !l.Fits(capacity) {
		return false
	}
	l.Charge(capacity, 1)
	return true
}

// Fits reports whether one more node of that capacity is within the limits.
func (l *Headroom) Fits(capacity resource.Vector) bool {
	n, _ := l.Allows(capacity, 1)
	return n == 1
}

// ChargeOf is what a claim counts for against its pool's limits: what its node has or, until that is known, the most
// that it may turn out to have.
func ChargeOf(s *cluster.Snapshot, p *cluster.Pool, c *cluster.Claim) resource.Vector {
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

// Allows says how many more nodes with the capacity the limits allow, at most n, and which resource binds if it is
// fewer.
func (l *Headroom) Allows(capacity resource.Vector, n int) (count int, binds int) {
	count, binds = n, -1
	if l.Limits.Broken != "" {
		return 0, resource.Size
	}
	if l.Limits.HasNodes && l.Limits.Nodes-l.Nodes < int64(count) {
		count, binds = int(max(l.Limits.Nodes-l.Nodes, 0)), resource.Size
	}
	for dim, set := range l.Limits.Set {
		if !set || capacity[dim] <= 0 {
			continue
		}
		if more := max(l.Limits.Amount[dim]-l.Used[dim], 0) / capacity[dim]; more < int64(count) {
			count, binds = int(more), dim
		}
	}
	return count, binds
}

func (l *Headroom) Charge(capacity resource.Vector, n int) {
	l.Nodes += int64(n)
	l.Used = l.Used.Add(capacity.Times(int64(n)))
}

// RefreshBuyable finds what limits and reservations let the pool buy now.
func (pm *Pool) RefreshBuyable(stocks map[string]int) {
	if !pm.Spec.Limits.Any() && len(stocks) == 0 {
		pm.Buyable = pm.ForSale
		return
	}
	pm.Buyable = require.NewBits(len(pm.Room))
	kind, allowed := -1, 0
	for i := range pm.ForSale.All {
		o := &pm.Spec.Catalog.Offerings[i]
		if o.Type != kind {
			kind = o.Type
			allowed, _ = pm.Headroom.Allows(pm.Spec.Catalog.Types[o.Type].Capacity, 1)
		}
		if allowed > 0 && (o.Reservation == "" || stocks[o.Reservation] > 0) {
			pm.Buyable.Set(i)
		}
	}
}

// HasUnlaunchedClaim reports whether the pool has a claim that is yet to be launched: of a pool being probed it is the
// one that finds out whether launches go well again.
func HasUnlaunchedClaim(s *cluster.Snapshot, p *cluster.Pool) bool {
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Deleting.IsZero() && c.Condition(cluster.Launched).Status == cluster.Unknown {
			return true
		}
	}
	return false
}
