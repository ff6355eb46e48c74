package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/topology"
)

// separateOversized parts pods from the rest that have a place nowhere, whatever others do: no host has room for one
// and nothing for sale is large enough. Zones are assigned by the rules of all who wait, and steps are counted for all
// of them, so such a pod would cost others choice and money in vain.
func separateOversized(mk *market.Market, hosts []cluster.Host, pending []*cluster.Pod) (rest,
	oversized []*cluster.Pod) {
	known := make(map[*cluster.PodClass]bool)
	for i, pod := range pending {
		c := pod.Class
		giant, seen := known[c]
		if !seen {
			giant = isOversized(mk, hosts, c)
			known[c] = giant
		}
		giant = giant && len(pod.Volumes) == 0 && len(pod.ExclusiveVolumes) == 0
		switch {
		case giant && oversized == nil:
			rest, oversized = slices.Clone(pending[:i]), []*cluster.Pod{pod}
		case giant:
			oversized = append(oversized, pod)
		case oversized != nil:
			rest = append(rest, pod)
		}
	}
	if oversized == nil {
		return pending, nil
	}
	return rest, oversized
}

// isOversized reports whether pods of the class fit nowhere. What depends on volumes, on daemons or on seats that are
// kept is left to be found out later.
func isOversized(mk *market.Market, hosts []cluster.Host, c *cluster.PodClass) bool {
	befriended := func(d *cluster.Daemon) bool { return topology.DaemonMeetsAffinity(mk.Snapshot, c, d) }
	if len(c.Unsupported) > 0 || slices.ContainsFunc(mk.Snapshot.Daemons, befriended) {
		return false
	}
	if mk.FeasibleSet([]*cluster.PodClass{c}, nil).Fits(&c.Requests) || fitsWithoutDaemons(mk, c) {
		return false
	}
	hasSeat := func(seat cluster.Seat) bool { return seat.Class == c.Key }
	return !slices.ContainsFunc(hosts, func(h cluster.Host) bool {
		return h.Holds(c) || slices.ContainsFunc(h.Seats, hasSeat)
	})
}

// fitsWithoutDaemons reports whether DaemonSets may be all that keeps pods of the class from an instance type: some of
// them may be left out.
func fitsWithoutDaemons(mk *market.Market, c *cluster.PodClass) bool {
	holds := func(t cluster.Type) bool { return c.Requests.Fits(t.Allocatable) }
	return slices.ContainsFunc(mk.Pools, func(pm *market.Pool) bool {
		return len(pm.Daemons) > 0 && slices.ContainsFunc(pm.Spec.Catalog.Types, holds)
	})
}

// explainOversized says why they have no place. Nobody's rules are to blame. What was said before is said again.
func (ex *explainer) explainOversized(oversized []*cluster.Pod, settings *Settings) {
	if len(oversized) == 0 {
		return
	}
	counts := topology.NewCounts(ex.s, oversized, !settings.IgnorePreferences)
	podSets := topology.PodSetsOf(oversized, counts)
	putHeldLast(podSets, settings.HeldPods)
	ex.out.reuseHopeless(settings.LastPlacement, podSets)
	ex.out.takeOutHeld(podSets, settings.HeldPods)
	for _, p := range podSets {
		p.Hopeless = p.IsIndependent()
	}
	ex.explain(counts, podSets)
}
