package destination

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// AssignDestinations tells each move where its pods go. Of pods between which nobody sees a difference each move's get
// the places that were made for it, and those of the oldest move what is there beside, lest it is overtaken by others
// again and again; and before all come pods that have no node now, because kube-scheduler will not wait with them: to
// which hosts those go is the answer.
func (vf *Verifier) AssignDestinations(moves []*Move, p *schedule.Placement) (others []string) {
	owner := make(map[string]*Move)
	for _, m := range moves {
		m.Destinations = nil
		for _, pod := range m.ExpectedPods {
			owner[pod.UID] = m
		}
		for i := range m.Nodes {
			for _, pod := range vf.s.PodsOn(m.Nodes[i].Node.Name) {
				if vf.NeedsPlace(pod) {
					owner[pod.UID] = m
				}
			}
		}
	}
	order := make(map[*Move]int, len(moves)) // nobody's pods come first
	for i, m := range moves {
		order[m] = i + 1
	}
	alike := make(map[cluster.InterchangeKey][]Place)
	var kinds []cluster.InterchangeKey
	add := func(dest Place) {
		t := cluster.InterchangeKeyOf(dest.Pod)
		if alike[t] == nil {
			kinds = append(kinds, t)
		}
		alike[t] = append(alike[t], dest)
	}
	for _, a := range p.Assigned {
		add(Place{Pod: a.Pod, Distance: vf.DistanceOf(a.Host), Host: a.Host})
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			add(Place{Pod: pod, Distance: AtNewNode, Bin: i})
		}
	}
	for i := range p.Unplaced {
		add(Place{Pod: p.Unplaced[i].Pod, Distance: Nowhere})
	}
	own := vf.ownHosts(moves, p)
	for _, t := range kinds {
		others = append(others, shareDestinations(alike[t], owner, order, own)...)
	}
	return others
}

// ownHosts says of the hosts to which pods go for which of the moves they were made.
func (vf *Verifier) ownHosts(moves []*Move, p *schedule.Placement) map[string]*Move {
	byID := make(map[string]*Move, len(moves))
	for _, m := range moves {
		byID[m.ID] = m
	}
	out := make(map[string]*Move)
	for _, a := range p.Assigned {
		if c := vf.ClaimAt(Place{Host: a.Host}); c != nil && vf.s.IsReplacement(c) {
			out[a.Host] = byID[c.Replaces]
		}
	}
	return out
}

// shareDestinations gives pods between which nobody sees a difference their places: those of no move first, then each
// move's those that were made for it, then what is left in the order of the moves. others are the hosts of those that
// are of none.
func shareDestinations(destinations []Place, owner map[string]*Move, order map[*Move]int,
	own map[string]*Move) (others []string) {
	pods := make([]*cluster.Pod, len(destinations))
	for i := range destinations {
		pods[i] = destinations[i].Pod
	}
	slices.SortStableFunc(pods, func(a, b *cluster.Pod) int {
		return cmp.Or(order[owner[a.UID]]-order[owner[b.UID]], strings.Compare(a.UID, b.UID))
	})
	slices.SortStableFunc(destinations, func(a, b Place) int { return int(a.Distance - b.Distance) })
	for len(pods) > 0 && owner[pods[0].UID] == nil {
		if destinations[0].Host != "" {
			others = append(others, destinations[0].Host)
		}
		pods, destinations = pods[1:], destinations[1:]
	}
	pods, destinations = takeOwnDestinations(pods, destinations, owner, own)
	for i, dest := range destinations {
		dest.Pod = pods[i]
		owner[dest.Pod.UID].Destinations = append(owner[dest.Pod.UID].Destinations, dest)
	}
	return others
}

// takeOwnDestinations gives pods the places that were made for their moves, and returns who and what is left.
func takeOwnDestinations(pods []*cluster.Pod, destinations []Place, owner,
	own map[string]*Move) ([]*cluster.Pod, []Place) {
	wait := make(map[*Move][]*cluster.Pod) // the pods of moves that have places of their own
	for _, dest := range destinations {
		if m := own[dest.Host]; m != nil {
			wait[m] = nil
		}
	}
	for _, p := range pods {
		if list, has := wait[owner[p.UID]]; has {
			wait[owner[p.UID]] = append(list, p)
		}
	}
	seated := make(map[string]bool)
	destinations = slices.DeleteFunc(destinations, func(dest Place) bool {
		m := own[dest.Host]
		if len(wait[m]) == 0 {
			return false
		}
		dest.Pod, wait[m] = wait[m][0], wait[m][1:]
		seated[dest.Pod.UID] = true
		m.Destinations = append(m.Destinations, dest)
		return true
	})
	return slices.DeleteFunc(pods, func(p *cluster.Pod) bool { return seated[p.UID] }), destinations
}
