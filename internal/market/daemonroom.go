package market

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// DaemonOfferings is where a daemonset's pods go.
type DaemonOfferings struct {
	Daemon    *cluster.Daemon
	Offerings require.Bits
}

// DaemonRule says which DaemonSets a market keeps room for.
type DaemonRule struct {
	// perOffering asks every offering by itself: a DaemonSet that is too large for one is not awaited there, and the
	// offering is for sale all the same.
	perOffering bool
	// abovePriority is the priority beyond which DaemonSets are awaited at all.
	abovePriority int64
	// fitElsewhere are DaemonSets that fit in some pool: where they don't, nothing is for sale on which they would run.
	fitElsewhere map[*cluster.Daemon]bool
}

// AllDaemons is the rule: all that fit on some offering of the pool are awaited on each, so that a node which is
// too small for one is not bought.
func AllDaemons() DaemonRule { return DaemonRule{abovePriority: math.MinInt64} }

// DaemonsOfAnyPool is the rule as long as there is choice among pools: a node that is too small for a DaemonSet
// which fits in another pool is not bought.
func DaemonsOfAnyPool(elsewhere map[*cluster.Daemon]bool) DaemonRule {
	return DaemonRule{abovePriority: math.MinInt64, fitElsewhere: elsewhere}
}

// FittingDaemons leaves those out of an offering that find no room there even on an empty node.
func FittingDaemons() DaemonRule {
	return DaemonRule{perOffering: true, abovePriority: math.MinInt64}
}

// PreemptingDaemons awaits only those that would take the place of a pod of the priority.
func PreemptingDaemons(priority int32) DaemonRule {
	return DaemonRule{perOffering: true, abovePriority: int64(priority)}
}

// OmittedDaemon is a DaemonSet that new nodes of a pool are planned without, because no instance type of the pool has
// room for it.
type OmittedDaemon struct {
	Pool   string
	Daemon *cluster.Daemon
	// Elsewhere says that another pool has room for it: only a pod that can't go there is given a node of this one.
	Elsewhere bool
	// Resource is what there is too little of, for DaemonSets of its priority; Requested is how much of it a pod asks
	// for, and Most what some instance type has beside the DaemonSets that come first. Empty if one lacks this and
	// another that.
	Resource, Requested, Most string
	// TakenByHigher says that DaemonSets of higher priority take some of it: without them there would be more than
	// Most.
	TakenByHigher bool
}

// findDaemonOfferings finds where the DaemonSets' pods may go, room aside.
func (pm *Pool) findDaemonOfferings(daemons []*cluster.Daemon) {
	for _, d := range daemons {
		if _, tainted := cluster.Untolerated(d.Class.Tolerations, pm.Spec.Template.Taints); tainted {
			continue
		}
		lands := require.NewBits(len(pm.Spec.Catalog.Offerings))
		for _, term := range d.Class.Terms {
			if tm, _, ok := pm.MatchTerm(term); ok {
				lands = lands.Or(tm.Offerings)
			}
		}
		if lands.Any() {
			pm.daemonOfferings = append(pm.daemonOfferings, DaemonOfferings{d, lands})
		}
	}
}

// takeDaemonShare takes the share of the DaemonSets that are awaited off every offering, and finds what is for sale
// then. They come in the order of their priority, as kube-scheduler lets them in; among equals nobody knows the order.
func (pm *Pool) takeDaemonShare(which DaemonRule) {
	c := pm.Spec.Catalog
	pm.Room, pm.Daemons, pm.Omitted, pm.offeringsByPrice = make([]resource.Vector, len(c.Offerings)), nil, nil, nil
	for i := range c.Offerings {
		pm.Room[i] = c.Types[c.Offerings[i].Type].Allocatable
	}
	a := &daemonAdmission{market: pm, rule: which, maxLeft: pm.Room}
	for rest := pm.daemonOfferings; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Daemon.Class.Priority == rest[0].Daemon.Class.Priority {
			n++
		}
		if int64(rest[0].Daemon.Class.Priority) > which.abovePriority {
			a.admit(rest[:n])
		}
		rest = rest[n:]
	}
	pm.uniform = true
	last := -1
	for i := range pm.Offered.All {
		if last >= 0 && c.Offerings[last].Type == c.Offerings[i].Type && pm.Room[last] != pm.Room[i] {
			pm.uniform = false
		}
		last = i
	}
	pm.ForSale = pm.Fitting(pm.Offered.And(c.Available()), resource.Vector{})
}

// addOmitted notes that a DaemonSet finds room nowhere, of what is left at most.
func (pm *Pool) addOmitted(l DaemonOfferings, high []resource.Vector) {
	var most, whole resource.Vector
	c := pm.Spec.Catalog
	for i := range l.Offerings.All {
		most = most.Max(high[i])
		whole = whole.Max(c.Types[c.Offerings[i].Type].Allocatable)
	}
	o, need := OmittedDaemon{Pool: pm.Spec.Name, Daemon: l.Daemon}, l.Daemon.Class.Requests
	if dim := need.FirstShort(most); dim >= 0 {
		o.Resource, o.Requested, o.Most = pm.Names.Name(dim), resource.Format(dim, need[dim]),
			resource.Format(dim, most[dim])
		o.TakenByHigher = most[dim] < whole[dim]
	}
	pm.Omitted = append(pm.Omitted, o)
}

// Omitted lists the DaemonSets that find room nowhere, pool by pool.
func (mk *Market) Omitted() []OmittedDaemon {
	var out []OmittedDaemon
	for _, pm := range mk.Pools {
		out = append(out, pm.Omitted...)
	}
	return out
}

// RequireDaemons makes room anew for the DaemonSets that are awaited. What has been bought stays charged.
func (mk *Market) RequireDaemons(which DaemonRule) {
	for _, pm := range mk.Pools {
		pm.takeDaemonShare(which)
	}
	mk.refreshAll()
}

// findDaemonsElsewhere finds the DaemonSets that fit on no instance type of one pool and on some of another. As long as
// a pod has the choice it goes where both have room, so nothing is for sale at first on which one of them would run and
// can't.
func (mk *Market) findDaemonsElsewhere() {
	omitted := make(map[*cluster.Daemon]bool)
	for _, pm := range mk.Pools {
		for i := range pm.Omitted {
			omitted[pm.Omitted[i].Daemon] = true
		}
	}
	if len(omitted) == 0 {
		return
	}
	for _, pm := range mk.Pools {
		for _, l := range pm.Daemons {
			if !omitted[l.Daemon] {
				continue
			}
			if mk.DaemonsElsewhere == nil {
				mk.DaemonsElsewhere = make(map[*cluster.Daemon]bool)
			}
			mk.DaemonsElsewhere[l.Daemon] = true
		}
	}
	if mk.DaemonsElsewhere == nil {
		return
	}
	for _, pm := range mk.Pools {
		if slices.ContainsFunc(pm.Omitted, func(o OmittedDaemon) bool { return mk.DaemonsElsewhere[o.Daemon] }) {
			pm.takeDaemonShare(DaemonsOfAnyPool(mk.DaemonsElsewhere))
		}
	}
}
