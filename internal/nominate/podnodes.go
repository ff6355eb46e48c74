package nominate

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// nodePlace is room on a node for pods that are interchangeable.
type nodePlace struct {
	cluster.InterchangeKey
	node string
}

// podNodes says which pod goes to which node, by the pod's UID. It is the placement, but for which of several
// interchangeable pods goes where: a pod that has been told a node keeps it as long as the placement sends one that is
// interchangeable with it there, so that a new pod does not move all the others about.
func podNodes(s *cluster.Snapshot, placement *schedule.Placement) map[string]string {
	places := make(map[nodePlace]int)
	for _, a := range placement.Assigned {
		if s.Node(a.Host) != nil {
			places[nodePlace{cluster.InterchangeKeyOf(a.Pod), a.Host}]++
		}
	}
	targetNode := make(map[string]string, len(placement.Assigned))
	take := func(p *cluster.Pod, node string) bool {
		at := nodePlace{cluster.InterchangeKeyOf(p), node}
		if places[at] == 0 {
			return false
		}
		places[at]--
		targetNode[p.UID] = node
		return true
	}
	for _, p := range s.Pending() {
		if p.Nominated != "" {
			take(p, p.Nominated)
		}
	}
	var rest []*cluster.Pod
	for _, a := range placement.Assigned {
		if s.Node(a.Host) == nil || targetNode[a.Pod.UID] != "" || a.Pod.Node != "" {
			continue
		}
		if !take(a.Pod, a.Host) {
			rest = append(rest, a.Pod)
		}
	}
	if len(rest) == 0 {
		return targetNode
	}
	left := make(map[cluster.InterchangeKey][]string)
	for _, a := range placement.Assigned {
		if at := (nodePlace{cluster.InterchangeKeyOf(a.Pod), a.Host}); places[at] > 0 && a.Pod.Node == "" {
			places[at]--
			left[at.InterchangeKey] = append(left[at.InterchangeKey], a.Host)
		}
	}
	for _, p := range rest {
		if nodes := left[cluster.InterchangeKeyOf(p)]; len(nodes) > 0 {
			targetNode[p.UID], left[cluster.InterchangeKeyOf(p)] = nodes[0], nodes[1:]
		}
	}
	return targetNode
}
