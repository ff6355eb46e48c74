package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// explainKinds says of the pod sets' pods that are left why they found no place.
func (p *Placement) explainKinds(s *cluster.Snapshot, mk *market, t *topology.Counts, podSets []*topology.PodSet) {
	for _, set := range podSets {
		explain(s, mk, t, set, p)
	}
}

// explain records why the pods that are left of the pod set found no place. The reasons are worked out once a pod set.
func explain(s *cluster.Snapshot, mk *market, t *topology.Counts, set *topology.PodSet, out *Placement) {
	if len(set.Pods) == 0 {
		return
	}
	taken := t.Volumes.Holder(set.Exclusive)
	var misses []PoolMiss
	for _, p := range s.Pools {
		if i := slices.IndexFunc(mk.markets, func(pm *poolMarket) bool { return pm.pool == p }); i >= 0 {
			misses = append(misses, mk.markets[i].explainMiss(t, set))
			continue
		}
		misses = append(misses, PoolMiss{Pool: p.Name, NotUsable: unusableReason(p)})
	}
	others := len(s.OtherPools)
	out.rememberHopeless(set, Unplaced{TakenVolume: taken, Pools: misses, OtherPools: others})
	for _, pod := range set.Pods {
		out.Unplaced = append(out.Unplaced, Unplaced{Pod: pod, TakenVolume: taken, Pools: misses, OtherPools: others})
	}
	set.Pods = nil
}

// unusableReason is why the pool takes no part in the placement.
func unusableReason(p *cluster.Pool) reason.Text {
	switch {
	case p.Deleting:
		return reason.Of(reason.PoolDeleting)
	case p.Static:
		return reason.Of(reason.PoolStatic)
	case len(p.Problems) > 0:
		return reason.Of(reason.PoolInvalid, p.Problems[0].Field, p.Problems[0].Text)
	case !p.NodeClass.Ready:
		return reason.Of(reason.ClassNotReady, p.NodeClass.Message)
	case p.InBackoff:
		return reason.Of(reason.LaunchesRefusedUntil, reason.Clock(p.BackoffUntil))
	case p.CatalogError != "":
		return reason.Of(reason.TypesUnknownBecause, p.CatalogError)
	}
	return reason.Of(reason.TypesUnknown)
}

// explainMiss counts what ruled out the pool's types for the pod set. A type counts under the rule conflict at which
// the last of its offerings fell.
func (pm *poolMarket) explainMiss(t *topology.Counts, p *topology.PodSet) PoolMiss {
	out, class := PoolMiss{Pool: pm.pool.Name}, p.Class
	if taint, tainted := cluster.Untolerated(class.Tolerations, pm.pool.Template.Taints); tainted {
		out.Taint = &taint
		return out
	}
	matches := pm.matchTerms(class.Terms)
	if len(matches) == 0 && pm.missByLabel(&out, class) {
		return out
	}
	matched := require.NewBits(len(pm.room))
	for _, m := range matches {
		matched = matched.Or(m.offerings)
	}
	fits := pm.fitting(matched, class.Requests)
	sold := fits.And(pm.forSale)
	out.Types = pm.countTypes(pm.offered)
	out.ByRequirement = out.Types - pm.countTypes(matched)
	out.ByResources = pm.countTypes(matched) - pm.countTypes(fits)
	if out.ByOffering = pm.countTypes(fits) - pm.countTypes(sold); out.ByOffering > 0 {
		out.Advice = pm.adviceOf(fits, sold)
	}
	if out.ByRequirement > 0 {
		pm.missByKey(&out, class)
	}
	if out.ByResources > 0 {
		pm.nearestMiss(&out, matched, class.Requests)
	}
	free := pm.missByPort(&out, p, sold)
	allowed := pm.missByLimit(&out, free)
	if p.LastConflict != nil && allowed.Any() {
		out.ByTopology, out.Rule, out.Inverse, out.Waits = pm.countTypes(allowed), p.LastConflict.Rule,
			p.LastConflict.Inverse, p.LastConflict.Undecided
		out.Unlabelled = !pm.hasLabel(p.LastConflict.Rule.TopologyKey)
		return out
	}
	for _, tm := range matches {
		if rows := allowed.And(tm.offerings); rows.Any() {
			out.MinValues = pm.shortOfValues(rows)
		}
	}
	if out.MinValues == "" && out.ByLimit == 0 && sold.Any() {
		out.MinValues = pm.firstMinValuesKey() // nothing else can have kept the pod out
	}
	return out
}

// adviceOf is what people could do about types of which nothing is for sale; none if they can only wait.
func (pm *poolMarket) adviceOf(fits, sold require.Bits) []string {
	open := map[int]bool{}
	for i := range sold.All {
		open[pm.pool.Catalog.Offerings[i].Type] = true
	}
	var out []string
	for i := range fits.AndNot(sold).All {
		if o := &pm.pool.Catalog.Offerings[i]; o.Advice != "" && !open[o.Type] && !slices.Contains(out, o.Advice) {
			out = append(out, o.Advice)
		}
	}
	slices.Sort(out)
	return out
}

// missByPort counts the types on which a daemonset occupies a port that the pod needs.
func (pm *poolMarket) missByPort(out *PoolMiss, p *topology.PodSet, sold require.Bits) require.Bits {
	free := sold
	for _, d := range pm.daemons {
		if topology.PortsClash(p.Class.Ports, d.daemon.Class.Ports) {
			free = free.AndNot(d.offerings)
		}
	}
	out.ByPort = pm.countTypes(sold) - pm.countTypes(free)
	return free
}

func (pm *poolMarket) fitting(rows require.Bits, need resource.Vector) require.Bits {
	out := require.NewBits(len(pm.room))
	for i := range rows.All {
		if pm.fits(i, &need) {
			out.Set(i)
		}
	}
	return out
}

// missByLimit counts the types that the limits rule out, and returns the offerings that they leave.
func (pm *poolMarket) missByLimit(out *PoolMiss, sold require.Bits) (allowed require.Bits) {
	if !pm.pool.Limits.Any() {
		return sold
	}
	allowed = require.NewBits(len(pm.room))
	last := -1
	for i := range sold.All {
		t := pm.pool.Catalog.Offerings[i].Type
		n, binds := pm.limits.allows(pm.pool.Catalog.Types[t].Capacity, 1)
		if n > 0 {
			allowed.Set(i)
			continue
		}
		if t == last {
			continue
		}
		last = t
		out.ByLimit++
		switch {
		case pm.pool.Limits.Broken != "":
			out.Limit = pm.pool.Limits.Broken
		case binds == resource.Size:
			out.Limit = "nodes " + resource.Format(resource.Pods, pm.pool.Limits.Nodes)
		default:
			out.Limit = pm.names.Name(binds) + " " + resource.Format(binds, pm.pool.Limits.Amount[binds])
		}
	}
	return allowed
}

func (pm *poolMarket) countTypes(rows require.Bits) int {
	n, last := 0, -1
	for i := range rows.All {
		if t := pm.pool.Catalog.Offerings[i].Type; t != last {
			n, last = n+1, t
		}
	}
	return n
}

// nearestMiss finds, among the offerings that are too small, the dimension in which even the largest falls short; if
// each dimension is met by some offering, the one in which an offering with enough of everything else comes closest.
func (pm *poolMarket) nearestMiss(out *PoolMiss, rows require.Bits, need resource.Vector) {
	var best, alone resource.Vector
	crowded, overdrawn := -1, int64(0)
	for i := range rows.All {
		room := pm.room[i]
		if pm.fits(i, &need) {
			continue
		}
		best = best.Max(room)
		dim := need.FirstShort(room)
		if dim < 0 { // its daemons alone are too much
			crowded = room.Times(-1).FirstShort(resource.Vector{})
			overdrawn = room[crowded]
			continue
		}
		rest := need
		rest[dim] = 0
		if rest.Fits(room) {
			alone[dim] = max(alone[dim], room[dim])
		}
	}
	dim := need.FirstShort(best)
	switch {
	case dim >= 0:
		out.shortage(pm.names, dim, need[dim], best[dim])
	case crowded >= 0 && alone.IsZero():
		out.shortage(pm.names, crowded, need[crowded], overdrawn)
		out.Crowded = true
	default:
		dim = scarcestDimension(need, alone)
		out.shortage(pm.names, dim, need[dim], alone[dim])
	}
}

// scarcestDimension is the needed dimension of which there is the largest part.
func scarcestDimension(need, have resource.Vector) int {
	closest, most := -1, -1.0
	for dim := range need {
		if need[dim] <= 0 {
			continue
		}
		if part := float64(have[dim]) / float64(need[dim]); part > most {
			closest, most = dim, part
		}
	}
	return closest
}
