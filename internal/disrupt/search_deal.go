package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// deal is a step of the search that pays: nodes that go, and what takes their place.
//
// A later deal may take away a node to which pods of an earlier one were to go. Then they go further before they have come, so
// that each pod is evicted only once, and the two deals are one move.
type deal struct {
	places []int
	Appraisal
}

// mostJoined bounds how many nodes are in a move.
const mostJoined = 4 * mostNodes

// accept makes a deal of what is on the stage.
func (sr *searcher) accept(places []int, a Appraisal) {
	chosen := sr.chosen(places)
	for _, i := range places {
		sr.all[i].taken = true
		for _, j := range sr.guestsOf(i) {
			sr.join(i, j)
		}
		sr.join(places[0], i)
	}
	sr.budgets.TakeAll(chosen, command.Underutilized)
	sr.patience.Take(chosen...)
	for _, at := range sr.stage.Keep() {
		sr.homes[at.Pod.UID] = at
	}
	for i := range a.Bins {
		for _, p := range a.Bins[i].Pods {
			delete(sr.homes, p.UID)
		}
	}
	sr.deals = append(sr.deals, deal{places, a})
}

// guestsOf are the candidates whose pods are to go to the candidate's node.
func (sr *searcher) guestsOf(i int) []int {
	var out []int
	for p := range sr.stage.Guests(i) {
		if j := sr.byNode[p.Node]; !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	return out
}

// root finds the candidate that stands for all who are in one move with this one.
func (sr *searcher) root(i int) int {
	for sr.party[i] != i {
		sr.party[i] = sr.party[sr.party[i]]
		i = sr.party[i]
	}
	return i
}

func (sr *searcher) join(i, j int) {
	a, b := sr.root(i), sr.root(j)
	if a != b {
		sr.party[max(a, b)] = min(a, b)
		sr.crowd[min(a, b)] += sr.crowd[max(a, b)]
	}
}

// joinable reports whether the candidates may be in one move, together with those whose pods are to go to their nodes: they must
// not be too many, nor belong to pools that have different words about moves.
func (sr *searcher) joinable(places []int) bool {
	first, size := sr.all[places[0]].Pool, 0
	var seen []int
	for _, i := range places {
		for _, j := range append(sr.guestsOf(i), i) {
			p := sr.all[j].Pool
			if p != first && (p.Care.DryRun != first.Care.DryRun || ownThreshold(p) || ownThreshold(first)) {
				return false
			}
			if r := sr.root(j); !slices.Contains(seen, r) {
				seen = append(seen, r)
				size += sr.crowd[r]
			}
		}
	}
	return size <= mostJoined
}

// ownThreshold reports whether the pool says itself what a move must save: then its nodes go only with others of the pool, because
// a move is judged as a whole when it begins.
func ownThreshold(p *cluster.Pool) bool {
	return p.Care.MinSaving != nil || p.Care.MinSavingPerPod != nil || p.Policy == cluster.Balanced
}

// moves puts the deals together that hang together.
func (sr *searcher) moves() []Move {
	var out []Move
	at := make(map[int]int)
	members := make(map[int][]int)
	for _, d := range sr.deals {
		root := sr.root(d.places[0])
		n, known := at[root]
		if !known {
			n = len(out)
			at[root] = n
			out = append(out, Move{Reason: command.Underutilized})
		}
		m := &out[n]
		m.Bins = append(m.Bins, d.Bins...)
		m.Before, m.After, m.Needed = m.Before+d.Before, m.After+d.After, m.Needed+d.Needed
		members[n] = append(members[n], d.places...)
	}
	for n := range out {
		sr.describe(&out[n], members[n])
	}
	return out
}

// describe says who goes in the move, and where their pods go that need no new node.
func (sr *searcher) describe(m *Move, places []int) {
	slices.Sort(places)
	var assigned []schedule.Assignment
	var ids []string
	for _, i := range places {
		c := &sr.all[i]
		m.Claims, ids = append(m.Claims, c.Claim.Name), append(ids, Identity(c.Claim))
		m.Evicted += c.Evicted
		m.Cost += c.Cost
		for _, p := range c.Pods {
			if at, there := sr.homes[p.UID]; there {
				assigned = append(assigned, at)
			}
		}
	}
	slices.Sort(m.Claims)
	m.ID, m.Assigned = MoveID(m.Reason, ids), assigned
}
