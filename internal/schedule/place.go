// Package schedule finds places for pods: on the nodes that are there, on nodes that are on their way, and on the
// cheapest new ones.
//
// Floor 2: a pure function of an overlay. The same overlay gives the same placement, byte for byte.
package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Placement says where every pending pod goes.
type Placement struct {
	// Assigned pods go to hosts that are there or on their way.
	Assigned []Assignment
	// Bins are new nodes.
	Bins []Bin
	// Unplaced pods found no place.
	Unplaced []Unplaced
	// Price per hour of the new nodes.
	Price float64
}

// Assignment gives a pod a place on a host.
type Assignment struct {
	Pod  *cluster.Pod
	Host string // name of the node, or of the claim while there is no node
	// Claim is the host's claim, empty if the host is none of ours.
	Claim string
}

// group is the pods of one class that still need a place.
type group struct {
	class *cluster.PodClass
	pods  []*cluster.Pod
}

// take removes the first n pods.
func (g *group) take(n int) []*cluster.Pod {
	taken := g.pods[:n]
	g.pods = g.pods[n:]
	return taken
}

// Place finds a place for each pending pod of the overlay.
func Place(o *cluster.Overlay) Placement {
	groups := groupByClass(o.Pending())
	hosts := o.Hosts()
	var out Placement
	fillSeats(o.Base, groups, hosts, &out)
	fillHosts(groups, hosts, &out)
	refused := setAside(groups)
	tiers := marketTiers(o.Base)
	for _, tier := range tiers {
		pack(tier, groups, &out)
	}
	for _, g := range groups {
		explain(o.Base, tiers, g, &out)
	}
	for _, g := range refused {
		for _, pod := range g.pods {
			out.Unplaced = append(out.Unplaced, Unplaced{Pod: pod, Unsupported: g.class.Unsupported})
		}
	}
	slices.SortFunc(out.Unplaced, func(a, b Unplaced) int { return strings.Compare(a.Pod.UID, b.Pod.UID) })
	for i := range out.Bins {
		out.Price += out.Bins[i].Price
	}
	return out
}

// setAside empties the groups that may not be given new nodes and returns their pods.
func setAside(groups []*group) []*group {
	var out []*group
	for _, g := range groups {
		if len(g.class.Unsupported) > 0 && len(g.pods) > 0 {
			out = append(out, &group{class: g.class, pods: g.take(len(g.pods))})
		}
	}
	return out
}

// groupByClass orders classes so that the important and the large come first.
func groupByClass(pods []*cluster.Pod) []*group {
	byKey := make(map[string]*group)
	var groups []*group
	for _, pod := range pods {
		g := byKey[pod.Class.Key]
		if g == nil {
			g = &group{class: pod.Class}
			byKey[pod.Class.Key] = g
			groups = append(groups, g)
		}
		g.pods = append(g.pods, pod)
	}
	slices.SortFunc(groups, func(a, b *group) int {
		x, y := a.class, b.class
		return cmp.Or(
			cmp.Compare(y.Priority, x.Priority),
			cmp.Compare(y.Requests[resource.CPU], x.Requests[resource.CPU]),
			cmp.Compare(y.Requests[resource.Memory], x.Requests[resource.Memory]),
			strings.Compare(x.Key, y.Key))
	})
	return groups
}

// fillSeats sends pods to the nodes that were made for their kind. This is what makes planning again after a restart
// come to the same nodes.
func fillSeats(s *cluster.Snapshot, groups []*group, hosts []cluster.Host, out *Placement) {
	byKey := make(map[string]*group, len(groups))
	for _, g := range groups {
		byKey[g.class.Key] = g
	}
	for i := range hosts {
		h := &hosts[i]
		for _, seat := range h.Seats {
			g := byKey[seat.Class]
			if g == nil || len(g.pods) == 0 {
				continue
			}
			n := min(seat.Count-seated(s, h.Name, seat.Class), len(g.pods))
			switch {
			case h.Undecided: // whatever it becomes was chosen to hold them
				put(g, h, n, out)
			case cluster.Lands(g.class, h.Labels, h.Taints):
				assign(g, h, n, out)
			}
		}
	}
}

// seated counts the pods of a class that have taken their seats already.
func seated(s *cluster.Snapshot, host, class string) int {
	n := 0
	for _, p := range s.PodsOn(host) {
		if p.Class.Key == class {
			n++
		}
	}
	return n
}

// fillHosts uses the room that is left on hosts.
func fillHosts(groups []*group, hosts []cluster.Host, out *Placement) {
	for _, g := range groups {
		if len(g.class.Unsupported) > 0 {
			continue
		}
		for i := range hosts {
			if len(g.pods) == 0 {
				break
			}
			h := &hosts[i]
			if !g.class.Requests.Fits(h.Free) || !h.Takes(g.class) {
				continue
			}
			assign(g, h, len(g.pods), out)
		}
	}
}

// assign gives up to n pods of the group a place on the host, as far as there is room.
func assign(g *group, h *cluster.Host, n int, out *Placement) {
	put(g, h, g.class.Requests.Count(h.Free, max(n, 0)), out)
}

// put gives n pods of the group a place on the host.
func put(g *group, h *cluster.Host, n int, out *Placement) {
	if n <= 0 {
		return
	}
	for _, pod := range g.take(n) {
		out.Assigned = append(out.Assigned, Assignment{Pod: pod, Host: h.Name, Claim: h.Claim})
	}
	h.Free = h.Free.Sub(g.class.Requests.Times(int64(n)))
}
