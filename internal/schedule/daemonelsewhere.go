package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/topology"
)

// buyWithoutForeignDaemons buys nodes without DaemonSets that fit in other pools only, for pods that no pool holds
// together with all DaemonSets. The pod sets of these pods are returned; what is for sale is left to each pool's own
// rule.
func (p *Placement) buyWithoutForeignDaemons(b *purchase.Buyer, podSets []*topology.PodSet) (bins []*purchase.OpenBin,
	settled []*topology.PodSet) {
	mk := b.Market
	if mk.DaemonsElsewhere == nil {
		return nil, nil
	}
	podSets = slices.DeleteFunc(slices.Clone(podSets), func(p *topology.PodSet) bool {
		return len(p.Pods) == 0 || slices.ContainsFunc(mk.Pools, func(pm *market.Pool) bool {
			return fitsSome(pm, p.Class)
		})
	})
	if len(podSets) == 0 {
		return nil, nil
	}
	for _, p := range podSets {
		p.Hopeless = false // what there is for it depends on who else is there
	}
	mk.RequireDaemons(market.AllDaemons())
	bins = b.Buy(podSets)
	for _, pm := range mk.Pools {
		if !slices.ContainsFunc(bins, func(b *purchase.OpenBin) bool { return b.Host == nil && b.Pool == pm }) {
			continue
		}
		for _, o := range pm.Omitted {
			if o.Elsewhere = mk.DaemonsElsewhere[o.Daemon]; o.Elsewhere {
				p.Omitted = append(p.Omitted, o)
			}
		}
	}
	return bins, podSets
}

// fitsSome reports whether a pod of the class may go to some offering of the pool and fits on it beside the DaemonSets,
// whether or not it can be bought now.
func fitsSome(pm *market.Pool, class *cluster.PodClass) bool {
	if _, tainted := cluster.Untolerated(class.Tolerations, pm.Spec.Template.Taints); tainted {
		return false
	}
	for _, tm := range pm.MatchTerms(class.Terms) {
		for i := range tm.Offerings.All {
			if pm.Fits(i, &class.Requests) {
				return true
			}
		}
	}
	return false
}
