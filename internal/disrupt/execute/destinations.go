package execute

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// assignDestinations tells each move where its pods go. Of pods between which nobody sees a difference each move's get
// the places that were made for it, and those of the oldest move what is there beside, lest it is overtaken by others
// again and again; and before all come pods that have no node now, because kube-scheduler will not wait with them: to
// which hosts those go is the answer.
func (vf *verifier) assignDestinations(moves []*activeMove, p *schedule.Placement) (others []string) {
	owner := make(map[string]*activeMove)
	for _, m := range moves {
		m.destinations = nil
		for _, pod := range m.expectedPods {
			owner[pod.UID] = m
		}
		for i := range m.nodes {
			for _, pod := range vf.s.PodsOn(m.nodes[i].Node.Name) {
				if vf.needsPlace(pod) {
					owner[pod.UID] = m
				}
			}
		}
	}
	order := make(map[*activeMove]int, len(moves)) // nobody's pods come first
	for i, m := range moves {
		order[m] = i + 1
	}
	alike := make(map[cluster.InterchangeKey][]destination)
	var kinds []cluster.InterchangeKey
	add := func(dest destination) {
		t := cluster.InterchangeKeyOf(dest.pod)
		if alike[t] == nil {
			kinds = append(kinds, t)
		}
		alike[t] = append(alike[t], dest)
	}
	for _, a := range p.Assigned {
		add(destination{pod: a.Pod, distance: vf.distanceOf(a.Host), host: a.Host})
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			add(destination{pod: pod, distance: atNewNode, bin: i})
		}
	}
	for i := range p.Unplaced {
		add(destination{pod: p.Unplaced[i].Pod, distance: nowhere})
	}
	own := vf.ownHosts(moves, p)
	for _, t := range kinds {
		others = append(others, shareDestinations(alike[t], owner, order, own)...)
	}
	return others
}

// ownHosts says of the hosts to which pods go for which of the moves they were made.
func (vf *verifier) ownHosts(moves []*activeMove, p *schedule.Placement) map[string]*activeMove {
	byID := make(map[string]*activeMove, len(moves))
	for _, m := range moves {
		byID[m.id] = m
	}
	out := make(map[string]*activeMove)
	for _, a := range p.Assigned {
		if c := vf.destinationClaim(destination{host: a.Host}); c != nil && vf.s.IsReplacement(c) {
			out[a.Host] = byID[c.Replaces]
		}
	}
	return out
}

// shareDestinations gives pods between which nobody sees a difference their places: those of no move first, then each
// move's those that were made for it, then what is left in the order of the moves. others are the hosts of those that
// are of none.
func shareDestinations(destinations []destination, owner map[string]*activeMove, order map[*activeMove]int,
	own map[string]*activeMove) (others []string) {
	pods := make([]*cluster.Pod, len(destinations))
	for i := range destinations {
		pods[i] = destinations[i].pod
	}
	slices.SortStableFunc(pods, func(a, b *cluster.Pod) int {
		return cmp.Or(order[owner[a.UID]]-order[owner[b.UID]], strings.Compare(a.UID, b.UID))
	})
	slices.SortStableFunc(destinations, func(a, b destination) int { return int(a.distance - b.distance) })
	for len(pods) > 0 && owner[pods[0].UID] == nil {
		if destinations[0].host != "" {
			others = append(others, destinations[0].host)
		}
		pods, destinations = pods[1:], destinations[1:]
	}
	pods, destinations = takeOwnDestinations(pods, destinations, owner, own)
	for i, dest := range destinations {
		dest.pod = pods[i]
		owner[dest.pod.UID].destinations = append(owner[dest.pod.UID].destinations, dest)
	}
	return others
}

// takeOwnDestinations gives pods the places that were made for their moves, and returns who and what is left.
func takeOwnDestinations(pods []*cluster.Pod, destinations []destination, owner,
	own map[string]*activeMove) ([]*cluster.Pod, []destination) {
	wait := make(map[*activeMove][]*cluster.Pod) // the pods of moves that have places of their own
	for _, dest := range destinations {
		if m := own[dest.host]; m != nil {
			wait[m] = nil
		}
	}
	for _, p := range pods {
		if list, has := wait[owner[p.UID]]; has {
			wait[owner[p.UID]] = append(list, p)
		}
	}
	seated := make(map[string]bool)
	destinations = slices.DeleteFunc(destinations, func(dest destination) bool {
		m := own[dest.host]
		if len(wait[m]) == 0 {
			return false
		}
		dest.pod, wait[m] = wait[m][0], wait[m][1:]
		seated[dest.pod.UID] = true
		m.destinations = append(m.destinations, dest)
		return true
	})
	return slices.DeleteFunc(pods, func(p *cluster.Pod) bool { return seated[p.UID] }), destinations
}
