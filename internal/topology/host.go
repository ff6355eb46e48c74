package topology

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Host is a host with its place in the topology counts.
type Host struct {
	*cluster.Host
	*Position
	// meetsCache remembers, by demands on a node, whether the host meets them: 1 yes, −1 no, 0 not asked yet.
	meetsCache []int8
}

// AddHosts takes the hosts and their pods into the topology counts.
func (tc *Counts) AddHosts(hosts []cluster.Host) []*Host {
	out := make([]*Host, len(hosts))
	for i := range hosts {
		out[i] = &Host{Host: &hosts[i], Position: tc.AddNode(&hosts[i])}
	}
	for _, h := range out {
		if !h.Initialized { // its daemons will be there before anybody else
			tc.AddDaemons(h.Position, func(d *cluster.Daemon) bool {
				return !slices.ContainsFunc(h.Pods, d.Owns) && h.Allows(d.Class)
			})
		}
		for _, p := range h.Pods {
			tc.Volumes.Hold(p.ExclusiveVolumes, true)
			if len(tc.Rules) == 0 {
				continue
			}
			required, _ := tc.rulesOf(p.Class)
			tc.addToRules(h.Position, required, tc.matcher.pendingRulesSelecting(p), 1, !p.Deleting.IsZero())
		}
	}
	return out
}

// Takes reports whether the host takes one more pod of the pod set, as far as room, ports and attachments go.
func (h *Host) Takes(p *PodSet) bool { return !h.Closed && !h.Reserved && h.HoldsSeated(p) }

// MeetsDemands reports whether the host's labels and taints suit the class. number is that of what it asks of a node:
// the answer is the same for all classes with the same demands, and kept.
func (h *Host) MeetsDemands(c *cluster.PodClass, number int) bool {
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

// HoldsSeated is takes for a pod that has a seat there.
func (h *Host) HoldsSeated(p *PodSet) bool {
	need := p.Class.Requests
	for _, v := range p.Volumes {
		if _, there := slices.BinarySearch(h.AttachedVolumes, v.Handle); there {
			need[v.Dim]--
		}
	}
	return need.Fits(h.Free) && !PortsClash(p.Class.Ports, h.Ports)
}

// Occupy takes the room, the ports and the attachments that n pods of the pod set need.
func (h *Host) Occupy(p *PodSet, n int) {
	h.Free = h.Free.Sub(p.Class.Requests.Times(int64(n)))
	h.Ports = append(h.Ports, p.Class.Ports...)
	for _, v := range p.Volumes {
		i, there := slices.BinarySearch(h.AttachedVolumes, v.Handle)
		if there {
			h.Free[v.Dim]++
			continue
		}
		h.AttachedVolumes = slices.Insert(h.AttachedVolumes, i, v.Handle)
	}
}

// CountSeated counts the pods of a class that have taken their seats already.
func (h *Host) CountSeated(class string) int {
	n := 0
	for _, p := range h.Pods {
		if p.Class.Key == class {
			n++
		}
	}
	return n
}

// HasSeatFor reports whether the host keeps a seat for pods of the pod set.
func (h *Host) HasSeatFor(p *PodSet) bool {
	return slices.ContainsFunc(h.Seats, func(seat cluster.Seat) bool { return seat.Class == p.Class.Key })
}

// MayUse is how many of the pod set's pods may take room on the host. Those that are held take none of a node that is
// on its way, but for their seats: it is for others, and what they take of it would be bought again for these.
func (p *PodSet) MayUse(h *Host) int {
	if h.Initialized {
		return len(p.Pods)
	}
	return p.notHeld()
}

// MaySit is how many of the pod set's pods may take seats on the host; they come first then. While a node is on its
// way, or what it is to replace waits for it, those that are held take no seats of another workload, be its pods like
// them in everything: these would be given another node, and the held ones would take that, too.
func (p *PodSet) MaySit(h *Host) int {
	if h.Initialized && !h.Reserved || len(h.MadeFor) == 0 {
		return len(p.Pods)
	}
	may := p.notHeld()
	for i := may; i < len(p.Pods); i++ {
		at := i - p.notHeld()
		if !slices.ContainsFunc(h.MadeFor, func(m cluster.MadeFor) bool { return m.Owner == p.held[at] }) {
			continue
		}
		to := may - p.notHeld()
		p.Pods[may], p.Pods[i] = p.Pods[i], p.Pods[may]
		p.held[to], p.held[at] = p.held[at], p.held[to]
		may++
	}
	return may
}

// fewPorts are compared faster one by one.
const fewPorts = 8

// PortsClash reports whether two lists of ports can't be on one host. A class has its ports sorted by number; a host
// need not.
func PortsClash(class, others []cluster.Port) bool {
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
