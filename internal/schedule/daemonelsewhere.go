package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/topology"
)

// findDaemonsElsewhere finds the DaemonSets that fit on no instance type of one pool and on some of another. As long as
// a pod has the choice it goes where both have room, so nothing is for sale at first on which one of them would run and
// can't.
func (mk *market) findDaemonsElsewhere() {
	omitted := make(map[*cluster.Daemon]bool)
	for _, pm := range mk.markets {
		for i := range pm.omitted {
			omitted[pm.omitted[i].Daemon] = true
		}
	}
	if len(omitted) == 0 {
		return
	}
	for _, pm := range mk.markets {
		for _, l := range pm.daemons {
			if !omitted[l.daemon] {
				continue
			}
			if mk.daemonsElsewhere == nil {
				mk.daemonsElsewhere = make(map[*cluster.Daemon]bool)
			}
			mk.daemonsElsewhere[l.daemon] = true
		}
	}
	if mk.daemonsElsewhere == nil {
		return
	}
	for _, pm := range mk.markets {
		if slices.ContainsFunc(pm.omitted, func(o OmittedDaemon) bool { return mk.daemonsElsewhere[o.Daemon] }) {
			pm.takeDaemonShare(requireDaemonsOfAnyPool(mk.daemonsElsewhere))
		}
	}
}

// buyWithoutForeignDaemons buys nodes without DaemonSets that fit in other pools only, for pods that no pool holds
// together with all DaemonSets. The pod sets of these pods are returned; what is for sale is left to each pool's own
// rule.
func (p *Placement) buyWithoutForeignDaemons(b *buyer, podSets []*topology.PodSet) (bins []*openBin,
	settled []*topology.PodSet) {
	mk := b.market
	if mk.daemonsElsewhere == nil {
		return nil, nil
	}
	podSets = slices.DeleteFunc(slices.Clone(podSets), func(p *topology.PodSet) bool {
		return len(p.Pods) == 0 || slices.ContainsFunc(mk.markets, func(pm *poolMarket) bool {
			return pm.fitsSome(p.Class)
		})
	})
	if len(podSets) == 0 {
		return nil, nil
	}
	for _, p := range podSets {
		p.Hopeless = false // what there is for it depends on who else is there
	}
	mk.requireDaemons(requireAllDaemons())
	bins = b.buy(podSets)
	for _, pm := range mk.markets {
		if !slices.ContainsFunc(bins, func(b *openBin) bool { return b.host == nil && b.market == pm }) {
			continue
		}
		for _, o := range pm.omitted {
			if o.Elsewhere = mk.daemonsElsewhere[o.Daemon]; o.Elsewhere {
				p.Omitted = append(p.Omitted, o)
			}
		}
	}
	return bins, podSets
}

// fitsSome reports whether a pod of the class may go to some offering of the pool and fits on it beside the DaemonSets,
// whether or not it can be bought now.
func (pm *poolMarket) fitsSome(class *cluster.PodClass) bool {
	if _, tainted := cluster.Untolerated(class.Tolerations, pm.pool.Template.Taints); tainted {
		return false
	}
	for _, tm := range pm.matchTerms(class.Terms) {
		for i := range tm.offerings.All {
			if pm.fits(i, &class.Requests) {
				return true
			}
		}
	}
	return false
}
