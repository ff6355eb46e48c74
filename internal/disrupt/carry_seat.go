package disrupt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// seat tells each move where its pods go. Of pods between which nobody sees a difference each move's get the places that were made
// for it, and those of the oldest move what is there beside, lest it is overtaken by others again and again; and before all come
// pods that have no node now, because kube-scheduler will not wait with them: to which hosts those go is the answer.
func (d *desk) seat(groups []*group, p *schedule.Placement) (others []string) {
	owner := make(map[string]*group)
	for _, g := range groups {
		g.seats = nil
		for _, pod := range g.guests {
			owner[pod.UID] = g
		}
		for i := range g.nodes {
			for _, pod := range d.s.PodsOn(g.nodes[i].Node.Name) {
				if d.moves(pod) {
					owner[pod.UID] = g
				}
			}
		}
	}
	order := make(map[*group]int, len(groups)) // nobody's pods come first
	for i, g := range groups {
		order[g] = i + 1
	}
	alike := make(map[cluster.Twins][]seat)
	var kinds []cluster.Twins
	add := func(st seat) {
		t := cluster.TwinsOf(st.pod)
		if alike[t] == nil {
			kinds = append(kinds, t)
		}
		alike[t] = append(alike[t], st)
	}
	for _, a := range p.Assigned {
		add(seat{pod: a.Pod, rank: d.rankOf(a.Host), host: a.Host})
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			add(seat{pod: pod, rank: wished, bin: i})
		}
	}
	for i := range p.Unplaced {
		add(seat{pod: p.Unplaced[i].Pod, rank: none})
	}
	own := d.ownPlaces(groups, p)
	for _, t := range kinds {
		others = append(others, allot(alike[t], owner, order, own)...)
	}
	return others
}

// ownPlaces says of the hosts to which pods go for which of the moves they were made.
func (d *desk) ownPlaces(groups []*group, p *schedule.Placement) map[string]*group {
	byID := make(map[string]*group, len(groups))
	for _, g := range groups {
		byID[g.id] = g
	}
	out := make(map[string]*group)
	for _, a := range p.Assigned {
		if c := d.claimOf(seat{host: a.Host}); c != nil && d.s.Replacing(c) {
			out[a.Host] = byID[c.Replaces]
		}
	}
	return out
}

// allot gives pods between which nobody sees a difference their places: those of no move first, then each move's those that were
// made for it, then what is left in the order of the moves. others are the hosts of those that are of none.
func allot(seats []seat, owner map[string]*group, order map[*group]int, own map[string]*group) (others []string) {
	pods := make([]*cluster.Pod, len(seats))
	for i := range seats {
		pods[i] = seats[i].pod
	}
	slices.SortStableFunc(pods, func(a, b *cluster.Pod) int {
		return cmp.Or(order[owner[a.UID]]-order[owner[b.UID]], strings.Compare(a.UID, b.UID))
	})
	slices.SortStableFunc(seats, func(a, b seat) int { return int(a.rank - b.rank) })
	for len(pods) > 0 && owner[pods[0].UID] == nil {
		if seats[0].host != "" {
			others = append(others, seats[0].host)
		}
		pods, seats = pods[1:], seats[1:]
	}
	pods, seats = atHome(pods, seats, owner, own)
	for i, st := range seats {
		st.pod = pods[i]
		owner[st.pod.UID].seats = append(owner[st.pod.UID].seats, st)
	}
	return others
}

// atHome gives pods the places that were made for their moves, and returns who and what is left.
func atHome(pods []*cluster.Pod, seats []seat, owner, own map[string]*group) ([]*cluster.Pod, []seat) {
	wait := make(map[*group][]*cluster.Pod) // the pods of moves that have places of their own
	for _, st := range seats {
		if g := own[st.host]; g != nil {
			wait[g] = nil
		}
	}
	for _, p := range pods {
		if list, has := wait[owner[p.UID]]; has {
			wait[owner[p.UID]] = append(list, p)
		}
	}
	seated := make(map[string]bool)
	seats = slices.DeleteFunc(seats, func(st seat) bool {
		g := own[st.host]
		if len(wait[g]) == 0 {
			return false
		}
		st.pod, wait[g] = wait[g][0], wait[g][1:]
		seated[st.pod.UID] = true
		g.seats = append(g.seats, st)
		return true
	})
	return slices.DeleteFunc(pods, func(p *cluster.Pod) bool { return seated[p.UID] }), seats
}

// worst is the farthest place of the move's pods; ready if it has none.
func (g *group) worst() rank {
	out := ready
	for i := range g.seats {
		out = max(out, g.seats[i].rank)
	}
	return out
}
