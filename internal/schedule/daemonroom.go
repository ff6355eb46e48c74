package schedule

import (
	"math"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// daemonOfferings is where a daemonset's pods go.
type daemonOfferings struct {
	daemon    *cluster.Daemon
	offerings require.Bits
}

// daemonRoomRule says which DaemonSets a market keeps room for.
type daemonRoomRule struct {
	// perOffering asks every offering by itself: a DaemonSet that is too large for one is not awaited there, and the
	// offering is for sale all the same.
	perOffering bool
	// abovePriority is the priority beyond which DaemonSets are awaited at all.
	abovePriority int64
	// fitElsewhere are DaemonSets that fit in some pool: where they don't, nothing is for sale on which they would run.
	fitElsewhere map[*cluster.Daemon]bool
}

// requireAllDaemons is the rule: all that fit on some offering of the pool are awaited on each, so that a node which is
// too small for one is not bought.
func requireAllDaemons() daemonRoomRule { return daemonRoomRule{abovePriority: math.MinInt64} }

// requireDaemonsOfAnyPool is the rule as long as there is choice among pools: a node that is too small for a DaemonSet
// which fits in another pool is not bought.
func requireDaemonsOfAnyPool(elsewhere map[*cluster.Daemon]bool) daemonRoomRule {
	return daemonRoomRule{abovePriority: math.MinInt64, fitElsewhere: elsewhere}
}

// requireFittingDaemons leaves those out of an offering that find no room there even on an empty node.
func requireFittingDaemons() daemonRoomRule {
	return daemonRoomRule{perOffering: true, abovePriority: math.MinInt64}
}

// requirePreemptingDaemons awaits only those that would take the place of a pod of the priority.
func requirePreemptingDaemons(priority int32) daemonRoomRule {
	return daemonRoomRule{perOffering: true, abovePriority: int64(priority)}
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
func (pm *poolMarket) findDaemonOfferings(daemons []*cluster.Daemon) {
	for _, d := range daemons {
		if _, tainted := cluster.Untolerated(d.Class.Tolerations, pm.pool.Template.Taints); tainted {
			continue
		}
		lands := require.NewBits(len(pm.pool.Catalog.Offerings))
		for _, term := range d.Class.Terms {
			if tm, _, ok := pm.matchTerm(term); ok {
				lands = lands.Or(tm.offerings)
			}
		}
		if lands.Any() {
			pm.daemonOfferings = append(pm.daemonOfferings, daemonOfferings{d, lands})
		}
	}
}

// takeDaemonShare takes the share of the DaemonSets that are awaited off every offering, and finds what is for sale
// then. They come in the order of their priority, as kube-scheduler lets them in; among equals nobody knows the order.
func (pm *poolMarket) takeDaemonShare(which daemonRoomRule) {
	c := pm.pool.Catalog
	pm.room, pm.daemons, pm.omitted, pm.offeringsByPrice = make([]resource.Vector, len(c.Offerings)), nil, nil, nil
	for i := range c.Offerings {
		pm.room[i] = c.Types[c.Offerings[i].Type].Allocatable
	}
	a := &daemonAdmission{market: pm, rule: which, maxLeft: pm.room}
	for rest := pm.daemonOfferings; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].daemon.Class.Priority == rest[0].daemon.Class.Priority {
			n++
		}
		if int64(rest[0].daemon.Class.Priority) > which.abovePriority {
			a.admit(rest[:n])
		}
		rest = rest[n:]
	}
	pm.uniform = true
	last := -1
	for i := range pm.offered.All {
		if last >= 0 && c.Offerings[last].Type == c.Offerings[i].Type && pm.room[last] != pm.room[i] {
			pm.uniform = false
		}
		last = i
	}
	pm.forSale = pm.fitting(pm.offered.And(c.Available()), resource.Vector{})
}

// addOmitted notes that a DaemonSet finds room nowhere, of what is left at most.
func (pm *poolMarket) addOmitted(l daemonOfferings, high []resource.Vector) {
	var most, whole resource.Vector
	c := pm.pool.Catalog
	for i := range l.offerings.All {
		most = most.Max(high[i])
		whole = whole.Max(c.Types[c.Offerings[i].Type].Allocatable)
	}
	o, need := OmittedDaemon{Pool: pm.pool.Name, Daemon: l.daemon}, l.daemon.Class.Requests
	if dim := need.FirstShort(most); dim >= 0 {
		o.Resource, o.Requested, o.Most = pm.names.Name(dim), resource.Format(dim, need[dim]),
			resource.Format(dim, most[dim])
		o.TakenByHigher = most[dim] < whole[dim]
	}
	pm.omitted = append(pm.omitted, o)
}
