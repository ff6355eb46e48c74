package plan

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// place is room on a node for pods that are twins.
type place struct {
	cluster.Twins
	node string
}

// seating says which pod goes to which node, by the pod's UID. It is the placement, but for which of several twins goes
// where: a pod that has been told a node keeps it as long as the placement sends one of its twins there, so that a new pod
// does not move all the others about.
func seating(s *cluster.Snapshot, placement *schedule.Placement) map[string]string {
	places := make(map[place]int)
	for _, a := range placement.Assigned {
		if s.Node(a.Host) != nil {
			places[place{cluster.TwinsOf(a.Pod), a.Host}]++
		}
	}
	home := make(map[string]string, len(placement.Assigned))
	take := func(p *cluster.Pod, node string) bool {
		at := place{cluster.TwinsOf(p), node}
		if places[at] == 0 {
			return false
		}
		places[at]--
		home[p.UID] = node
		return true
	}
	for _, p := range s.Pending() {
		if p.Nominated != "" {
			take(p, p.Nominated)
		}
	}
	var rest []*cluster.Pod
	for _, a := range placement.Assigned {
		if s.Node(a.Host) == nil || home[a.Pod.UID] != "" || a.Pod.Node != "" {
			continue
		}
		if !take(a.Pod, a.Host) {
			rest = append(rest, a.Pod)
		}
	}
	if len(rest) == 0 {
		return home
	}
	left := make(map[cluster.Twins][]string)
	for _, a := range placement.Assigned {
		if at := (place{cluster.TwinsOf(a.Pod), a.Host}); places[at] > 0 && a.Pod.Node == "" {
			places[at]--
			left[at.Twins] = append(left[at.Twins], a.Host)
		}
	}
	for _, p := range rest {
		if nodes := left[cluster.TwinsOf(p)]; len(nodes) > 0 {
			home[p.UID], left[cluster.TwinsOf(p)] = nodes[0], nodes[1:]
		}
	}
	return home
}
