package schedule

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// hostState is a host with its place in the topology counts.
type hostState struct {
	*cluster.Host
	*position
	// meetsCache remembers, by demands on a node, whether the host meets them: 1 yes, −1 no, 0 not asked yet.
	meetsCache []int8
}

// addHosts takes the hosts and their pods into the topology counts.
func (tc *topologyCounts) addHosts(hosts []cluster.Host) []*hostState {
	out := make([]*hostState, len(hosts))
	for i := range hosts {
		out[i] = &hostState{Host: &hosts[i], position: tc.addNode(&hosts[i])}
	}
	for _, h := range out {
		if !h.Initialized { // its daemons will be there before anybody else
			tc.addDaemons(h.position, func(d *cluster.Daemon) bool {
				return !slices.ContainsFunc(h.Pods, d.Owns) && h.Allows(d.Class)
			})
		}
		for _, p := range h.Pods {
			tc.volumes.hold(p.ExclusiveVolumes, true)
			if len(tc.rules) == 0 {
				continue
			}
			required, _ := tc.rulesOf(p.Class)
			tc.addToRules(h.position, required, tc.matcher.pendingRulesSelecting(p), 1, !p.Deleting.IsZero())
		}
	}
	return out
}

// takes reports whether the host takes one more pod of the pod set, as far as room, ports and attachments go.
func (h *hostState) takes(p *podSet) bool { return !h.Closed && !h.Reserved && h.holdsSeated(p) }

// meetsDemands reports whether the host's labels and taints suit the class. number is that of what it asks of a node:
// the answer is the same for all classes with the same demands, and kept.
func (h *hostState) meetsDemands(c *cluster.PodClass, number int) bool {
	for number >= len(h.meetsCache) {
		h.meetsCache = append(h.meetsCache, 0)
	}
	if h.meetsCache[number] == 0 {
		h.meetsCache[number] = -1
		if h.Allows(c) {
			h.meetsCache[number] = 1
		}
	}
	return h.meetsCache[number] > 0
}

// holdsSeated is takes for a pod that has a seat there.
func (h *hostState) holdsSeated(p *podSet) bool {
	need := p.class.Requests
	for _, v := range p.volumes {
		if _, there := slices.BinarySearch(h.AttachedVolumes, v.Handle); there {
			need[v.Dim]--
		}
	}
	return need.Fits(h.Free) && !portsClash(p.class.Ports, h.Ports)
}

// occupy takes the room, the ports and the attachments that n pods of the pod set need.
func (h *hostState) occupy(p *podSet, n int) {
	h.Free = h.Free.Sub(p.class.Requests.Times(int64(n)))
	h.Ports = append(h.Ports, p.class.Ports...)
	for _, v := range p.volumes {
		i, there := slices.BinarySearch(h.AttachedVolumes, v.Handle)
		if there {
			h.Free[v.Dim]++
			continue
		}
		h.AttachedVolumes = slices.Insert(h.AttachedVolumes, i, v.Handle)
	}
}

// countSeated counts the pods of a class that have taken their seats already.
func (h *hostState) countSeated(class string) int {
	n := 0
	for _, p := range h.Pods {
		if p.Class.Key == class {
			n++
		}
	}
	return n
}

// hasSeatFor reports whether the host keeps a seat for pods of the pod set.
func (h *hostState) hasSeatFor(p *podSet) bool {
	return slices.ContainsFunc(h.Seats, func(seat cluster.Seat) bool { return seat.Class == p.class.Key })
}

// mayUse is how many of the pod set's pods may take room on the host. Those that are held take none of a node that is
// on its way, but for their seats: it is for others, and what they take of it would be bought again for these.
func (p *podSet) mayUse(h *hostState) int {
	if h.Initialized {
		return len(p.pods)
	}
	return p.notHeld()
}

// maySit is how many of the pod set's pods may take seats on the host; they come first then. While a node is on its
// way, or what it is to replace waits for it, those that are held take no seats of another workload, be its pods like
// them in everything: these would be given another node, and the held ones would take that, too.
func (p *podSet) maySit(h *hostState) int {
	if h.Initialized && !h.Reserved || len(h.MadeFor) == 0 {
		return len(p.pods)
	}
	may := p.notHeld()
	for i := may; i < len(p.pods); i++ {
		at := i - p.notHeld()
		if !slices.ContainsFunc(h.MadeFor, func(m cluster.MadeFor) bool { return m.Owner == p.held[at] }) {
			continue
		}
		to := may - p.notHeld()
		p.pods[may], p.pods[i] = p.pods[i], p.pods[may]
		p.held[to], p.held[at] = p.held[at], p.held[to]
		may++
	}
	return may
}

// fewPorts are compared faster one by one.
const fewPorts = 8

// portsClash reports whether two lists of ports can't be on one host. A class has its ports sorted by number; a host
// need not.
func portsClash(class, others []cluster.Port) bool {
	if len(class) <= fewPorts {
		return slices.ContainsFunc(class, func(p cluster.Port) bool { return slices.ContainsFunc(others, p.Conflicts) })
	}
	for _, q := range others {
		i, _ := slices.BinarySearchFunc(class, q.Number, func(p cluster.Port, number int32) int {
			return cmp.Compare(p.Number, number)
		})
		for ; i < len(class) && class[i].Number == q.Number; i++ {
			if class[i].Conflicts(q) {
				return true
			}
		}
	}
	return false
}
