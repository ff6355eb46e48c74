package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// explainer says why pods found no place.
type explainer struct {
	s     *cluster.Snapshot
	out   *Placement
	pools map[*cluster.Pool]*poolExplainer // those that take part
}

func newExplainer(s *cluster.Snapshot, mk *market.Market, out *Placement) *explainer {
	ex := &explainer{s: s, out: out, pools: make(map[*cluster.Pool]*poolExplainer)}
	for _, pm := range mk.Pools {
		ex.pools[pm.Spec] = &poolExplainer{Pool: pm}
	}
	return ex
}

// explain records why the pods that are left of the pod sets found no place. The reasons are worked out once a pod set.
func (ex *explainer) explain(t *topology.Counts, podSets []*topology.PodSet) {
	for _, set := range podSets {
		if len(set.Pods) > 0 {
			ex.explainSet(t, set)
		}
	}
}

func (ex *explainer) explainSet(t *topology.Counts, set *topology.PodSet) {
	s, out := ex.s, ex.out
	taken := t.Volumes.Holder(set.Exclusive)
	var misses []PoolMiss
	for _, p := range s.Pools {
		if pm := ex.pools[p]; pm != nil {
			misses = append(misses, pm.explainMiss(set))
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
func (pm *poolExplainer) explainMiss(p *topology.PodSet) PoolMiss {
	out, class := PoolMiss{Pool: pm.Spec.Name}, p.Class
	if taint, tainted := cluster.Untolerated(class.Tolerations, pm.Spec.Template.Taints); tainted {
		out.Taint = &taint
		return out
	}
	matches := pm.MatchTerms(class.Terms)
	if len(matches) == 0 && pm.missByLabel(&out, class) {
		return out
	}
	matched := require.NewBits(len(pm.Room))
	for _, m := range matches {
		matched = matched.Or(m.Offerings)
	}
	fits := pm.Fitting(matched, class.Requests)
	sold := fits.And(pm.ForSale)
	out.Types = pm.CountTypes(pm.Offered)
	out.ByRequirement = out.Types - pm.CountTypes(matched)
	out.ByResources = pm.CountTypes(matched) - pm.CountTypes(fits)
	if out.ByOffering = pm.CountTypes(fits) - pm.CountTypes(sold); out.ByOffering > 0 {
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
		c := p.LastConflict
		out.ByTopology, out.RuleMiss = pm.CountTypes(allowed), RuleMiss{Rule: c.Rule, Inverse: c.Inverse,
			Waits: c.Undecided, Unlabelled: !pm.HasLabel(c.Rule.TopologyKey)}
		return out
	}
	for _, tm := range matches {
		if rows := allowed.And(tm.Offerings); rows.Any() {
			out.MinValues = pm.ShortOfValues(rows)
		}
	}
	if out.MinValues == "" && out.ByLimit == 0 && sold.Any() {
		out.MinValues = pm.FirstMinValuesKey() // nothing else can have kept the pod out
	}
	return out
}

// adviceOf is what people could do about types of which nothing is for sale; none if they can only wait.
func (pm *poolExplainer) adviceOf(fits, sold require.Bits) []string {
	open := map[int]bool{}
	for i := range sold.All {
		open[pm.Spec.Catalog.Offerings[i].Type] = true
	}
	var out []string
	for i := range fits.AndNot(sold).All {
		if o := &pm.Spec.Catalog.Offerings[i]; o.Advice != "" && !open[o.Type] && !slices.Contains(out, o.Advice) {
			out = append(out, o.Advice)
		}
	}
	slices.Sort(out)
	return out
}

// missByPort counts the types on which a daemonset occupies a port that the pod needs.
func (pm *poolExplainer) missByPort(out *PoolMiss, p *topology.PodSet, sold require.Bits) require.Bits {
	free := sold
	for _, d := range pm.Daemons {
		if topology.PortsClash(p.Class.Ports, d.Daemon.Class.Ports) {
			free = free.AndNot(d.Offerings)
		}
	}
	out.ByPort = pm.CountTypes(sold) - pm.CountTypes(free)
	return free
}

// missByLimit counts the types that the limits rule out, and returns the offerings that they leave.
func (pm *poolExplainer) missByLimit(out *PoolMiss, sold require.Bits) (allowed require.Bits) {
	if !pm.Spec.Limits.Any() {
		return sold
	}
	allowed = require.NewBits(len(pm.Room))
	last := -1
	for i := range sold.All {
		t := pm.Spec.Catalog.Offerings[i].Type
		n, binds := pm.Headroom.Allows(pm.Spec.Catalog.Types[t].Capacity, 1)
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
		case pm.Spec.Limits.Broken != "":
			out.Limit = pm.Spec.Limits.Broken
		case binds == resource.Size:
			out.Limit = "nodes " + resource.Format(resource.Pods, pm.Spec.Limits.Nodes)
		default:
			out.Limit = pm.Names.Name(binds) + " " + resource.Format(binds, pm.Spec.Limits.Amount[binds])
		}
	}
	return allowed
}

// nearestMiss finds, among the offerings that are too small, the dimension in which even the largest falls short; if
// each dimension is met by some offering, the one in which an offering with enough of everything else comes closest.
func (pm *poolExplainer) nearestMiss(out *PoolMiss, rows require.Bits, need resource.Vector) {
	var best, alone resource.Vector
	crowded, overdrawn := -1, int64(0)
	for i := range rows.All {
		room := pm.Room[i]
		if pm.Fits(i, &need) {
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
		out.shortage(pm.Names, dim, need[dim], best[dim])
	case crowded >= 0 && alone.IsZero():
		out.shortage(pm.Names, crowded, need[crowded], overdrawn)
		out.Crowded = true
	default:
		dim = scarcestDimension(need, alone)
		out.shortage(pm.Names, dim, need[dim], alone[dim])
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
