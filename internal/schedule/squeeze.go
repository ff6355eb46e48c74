package schedule

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// mostSqueezes is how often nodes are looked for on which not all DaemonSets find room: once for all pods that the same
// DaemonSets would preempt.
const mostSqueezes = 8

// Squeeze says that nodes of a pool are made although not all DaemonSets find room on them: all together leave none for
// a pod.
type Squeeze struct {
	Pool  string
	Nodes int
	Pod   *cluster.Pod // one of those that they are made for
}

// squeeze buys nodes for pods that have no place on any suitable instance type because DaemonSets take most of it. It
// first leaves those out that are too large for the instance type: they never get a pod there. If that does not help,
// DaemonSets that could not preempt the pod are left out too: very many small ones would otherwise keep all pods from
// their nodes. A DaemonSet of higher priority than the pod is always counted, for it would take the pod's place on each
// node that is bought. It reports whether it did anything; the market is left without any DaemonSet then.
func (p *Placement) squeeze(b *purchase.Buyer, podSets []*topology.PodSet) (bins []*purchase.OpenBin, squeezed bool) {
	mk := b.Market
	podSets = overrunPodSets(mk, podSets)
	if len(podSets) == 0 {
		return nil, false
	}
	defer setAsideRunning(podSets)()
	for _, p := range podSets {
		p.Hopeless = false // what there is for it depends on others' priorities now
	}
	mk.RequireDaemons(market.FittingDaemons())
	bins = b.Buy(podSets)
	for _, same := range groupByPreemptors(mk.Snapshot.Daemons, podSets) {
		mk.RequireDaemons(market.PreemptingDaemons(same[len(same)-1].Class.Priority))
		bins = append(bins, b.Buy(same)...)
	}
	for _, bin := range bins {
		p.noteSqueeze(bin)
	}
	mk.RequireDaemons(market.PreemptingDaemons(math.MaxInt32))
	return bins, true
}

// setAsideRunning takes the pods out of the pod sets that are still on a node, which goes, and returns what puts them
// back.
func setAsideRunning(podSets []*topology.PodSet) (putBack func()) {
	running := make([][]*cluster.Pod, len(podSets))
	for i, set := range podSets {
		var waiting []*cluster.Pod
		for _, p := range set.Pods {
			if p.Node == "" {
				waiting = append(waiting, p)
			} else {
				running[i] = append(running[i], p)
			}
		}
		set.Pods = waiting
	}
	return func() {
		for i, p := range podSets {
			p.Pods = append(p.Pods, running[i]...)
		}
	}
}

// noteSqueeze counts a node on which not all DaemonSets find room.
func (p *Placement) noteSqueeze(b *purchase.OpenBin) {
	if b.Host != nil || len(b.Contents) == 0 {
		return
	}
	i := slices.IndexFunc(p.Squeezed, func(s Squeeze) bool { return s.Pool == b.Pool.Spec.Name })
	if i < 0 {
		i = len(p.Squeezed)
		p.Squeezed = append(p.Squeezed, Squeeze{Pool: b.Pool.Spec.Name, Pod: b.Contents[0].Pods[0]})
	}
	p.Squeezed[i].Nodes++
}

// groupByPreemptors groups the pod sets with pods that have no place yet by the DaemonSets that would preempt them, the
// highest priority first and last of a group the lowest. If there are too many groups, neighbours are put together:
// then DaemonSets count that would preempt some of them only.
func groupByPreemptors(daemons []*cluster.Daemon, podSets []*topology.PodSet) [][]*topology.PodSet {
	podSets = slices.DeleteFunc(slices.Clone(podSets), func(p *topology.PodSet) bool { return len(p.Pods) == 0 })
	slices.SortStableFunc(podSets, func(a, b *topology.PodSet) int {
		return cmp.Compare(b.Class.Priority, a.Class.Priority)
	})
	var groups [][]*topology.PodSet
	last := -1
	for _, p := range podSets {
		above, _ := slices.BinarySearchFunc(daemons, p.Class.Priority, func(d *cluster.Daemon,
			priority int32) int {
			if d.Class.Priority > priority {
				return -1
			}
			return 1
		})
		if above != last {
			groups, last = append(groups, nil), above
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], p)
	}
	return mergeNeighbours(groups, mostSqueezes)
}

// mergeNeighbours puts neighbours together until there are at most so many groups.
func mergeNeighbours(groups [][]*topology.PodSet, most int) [][]*topology.PodSet {
	if len(groups) <= most {
		return groups
	}
	out := make([][]*topology.PodSet, most)
	for i, g := range groups {
		at := i * most / len(groups)
		out[at] = append(out[at], g...)
	}
	return out
}

// overrunPodSets are the pod sets with pods that wait and that DaemonSets keep from every instance type that would do
// without them.
func overrunPodSets(mk *market.Market, podSets []*topology.PodSet) []*topology.PodSet {
	if !slices.ContainsFunc(mk.Pools, func(pm *market.Pool) bool { return len(pm.Daemons) > 0 }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(podSets), func(set *topology.PodSet) bool {
		if !slices.ContainsFunc(set.Pods, func(p *cluster.Pod) bool { return p.Node == "" }) {
			return true
		}
		any := false
		for _, pm := range mk.Pools {
			over, helps := isOverrunByDaemons(pm, set.Class)
			if !over {
				return true
			}
			any = any || helps
		}
		return !any
	})
}

// isOverrunByDaemons reports whether DaemonSets leave a pod of the class too little on every offering that would hold
// it without them, and take more than half of something that it lacks there. helps says whether there is such an
// offering at all.
func isOverrunByDaemons(pm *market.Pool, class *cluster.PodClass) (overrun, helps bool) {
	if _, tainted := cluster.Untolerated(class.Tolerations, pm.Spec.Template.Taints); tainted {
		return true, false
	}
	for _, tm := range pm.MatchTerms(class.Terms) {
		for i := range tm.Offerings.All {
			all := &pm.Spec.Catalog.Types[pm.Spec.Catalog.Offerings[i].Type].Allocatable
			switch {
			case pm.Fits(i, &class.Requests):
				return false, false
			case !class.Requests.Fits(*all):
			case !mostlyTaken(all, &pm.Room[i], &class.Requests):
				return false, false
			default:
				helps = true
			}
		}
	}
	return true, helps
}

// mostlyTaken reports whether less than half is left of a resource of which too little is left for the need. A pod that
// lacks only what DaemonSets take little of would hardly fit beside any.
func mostlyTaken(all, left, need *resource.Vector) bool {
	for dim := range all {
		if (need[dim] > left[dim] || left[dim] < 0) && left[dim] < all[dim]-left[dim] {
			return true
		}
	}
	return false
}
