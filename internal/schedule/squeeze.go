package schedule

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
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

// omitted lists the DaemonSets that find room nowhere, pool by pool.
func (sh *shop) omitted() []Omission {
	var out []Omission
	for _, m := range sh.markets {
		out = append(out, m.omitted...)
	}
	return out
}

// await makes room anew for the DaemonSets that are awaited. What has been bought stays charged.
func (sh *shop) await(which awaited) {
	for _, m := range sh.markets {
		m.makeRoom(which)
	}
	sh.restock()
}

// squeeze buys nodes for pods that have no place on any suitable instance type because DaemonSets take most of it. It
// first leaves those out that are too large for the instance type: they never get a pod there. If that does not help,
// DaemonSets that could not preempt the pod are left out too: very many small ones would otherwise keep all pods from
// their nodes. A DaemonSet of higher priority than the pod is always counted, for it would take the pod's place on each
// node that is bought. It reports whether it did anything; the shop is left without any DaemonSet then.
func (p *Placement) squeeze(book *ledger, sh *shop, kinds []*kind, settler *settler, crates []*crate) ([]*crate, bool) {
	kinds = sh.overrun(kinds)
	if len(kinds) == 0 {
		return crates, false
	}
	defer setAsideRunning(kinds)()
	for _, k := range kinds {
		k.doomed = false // what there is for it depends on others' priorities now
	}
	first := len(crates)
	sh.await(whoFits())
	crates = buyAll(book, sh, kinds, settler, crates)
	for _, same := range sh.byWhoPreempts(kinds) {
		sh.await(whoPreempts(same[len(same)-1].class.Priority))
		crates = buyAll(book, sh, same, settler, crates)
	}
	for _, c := range crates[first:] {
		p.noteSqueeze(c)
	}
	sh.await(whoPreempts(math.MaxInt32))
	return crates, true
}

// setAsideRunning takes the pods out of the kinds that are still on a node, which goes, and returns what puts them
// back.
func setAsideRunning(kinds []*kind) (putBack func()) {
	running := make([][]*cluster.Pod, len(kinds))
	for i, k := range kinds {
		var waiting []*cluster.Pod
		for _, p := range k.pods {
			if p.Node == "" {
				waiting = append(waiting, p)
			} else {
				running[i] = append(running[i], p)
			}
		}
		k.pods = waiting
	}
	return func() {
		for i, k := range kinds {
			k.pods = append(k.pods, running[i]...)
		}
	}
}

// noteSqueeze counts a node on which not all DaemonSets find room.
func (p *Placement) noteSqueeze(c *crate) {
	if c.house != nil || len(c.loads) == 0 {
		return
	}
	i := slices.IndexFunc(p.Squeezed, func(s Squeeze) bool { return s.Pool == c.m.pool.Name })
	if i < 0 {
		i = len(p.Squeezed)
		p.Squeezed = append(p.Squeezed, Squeeze{Pool: c.m.pool.Name, Pod: c.loads[0].pods[0]})
	}
	p.Squeezed[i].Nodes++
}

// byWhoPreempts groups the kinds with pods that have no place yet by the DaemonSets that would preempt them, the
// highest priority first and last of a group the lowest. If there are too many groups, neighbours are put together:
// then DaemonSets count that would preempt some of them only.
func (sh *shop) byWhoPreempts(kinds []*kind) [][]*kind {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool { return len(k.pods) == 0 })
	slices.SortStableFunc(kinds, func(a, b *kind) int { return cmp.Compare(b.class.Priority, a.class.Priority) })
	var groups [][]*kind
	last := -1
	for _, k := range kinds {
		above, _ := slices.BinarySearchFunc(sh.s.Daemons, k.class.Priority, func(d *cluster.Daemon, priority int32) int {
			if d.Class.Priority > priority {
				return -1
			}
			return 1
		})
		if above != last {
			groups, last = append(groups, nil), above
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], k)
	}
	return joined(groups, mostSqueezes)
}

// joined puts neighbours together until there are at most so many groups.
func joined(groups [][]*kind, most int) [][]*kind {
	if len(groups) <= most {
		return groups
	}
	out := make([][]*kind, most)
	for i, g := range groups {
		at := i * most / len(groups)
		out[at] = append(out[at], g...)
	}
	return out
}

// overrun are the kinds with pods that wait and that DaemonSets keep from every instance type that would do without
// them.
func (sh *shop) overrun(kinds []*kind) []*kind {
	if !slices.ContainsFunc(sh.markets, func(m *market) bool { return len(m.daemons) > 0 }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool {
		if !slices.ContainsFunc(k.pods, func(p *cluster.Pod) bool { return p.Node == "" }) {
			return true
		}
		any := false
		for _, m := range sh.markets {
			over, helps := m.overrun(k.class)
			if !over {
				return true
			}
			any = any || helps
		}
		return !any
	})
}

// overrun reports whether DaemonSets leave a pod of the class too little on every offering that would hold it without
// them, and take more than half of something that it lacks there. helps says whether there is such an offering at all.
func (m *market) overrun(class *cluster.PodClass) (overrun, helps bool) {
	if _, tainted := cluster.Untolerated(class.Tolerations, m.pool.Template.Taints); tainted {
		return true, false
	}
	for _, w := range m.match(class.Terms) {
		for i := range w.bits.All {
			all := &m.pool.Catalog.Types[m.pool.Catalog.Offerings[i].Type].Allocatable
			switch {
			case m.holds(i, &class.Requests):
				return false, false
			case !class.Requests.Fits(*all):
			case !mostlyTaken(all, &m.room[i], &class.Requests):
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
