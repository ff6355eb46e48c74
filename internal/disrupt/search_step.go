package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// searchStep is a step of the search that pays: nodes that go, and what takes their place.
//
// A later step may take away a node to which pods of an earlier one were to go. Then they go further before they have
// come, so that each pod is evicted only once, and the two steps are one move.
type searchStep struct {
	indices []int
	Appraisal
}

// mostJoined bounds how many nodes are in a move.
const mostJoined = 4 * mostNodes

// acceptStep makes a step of what is on the what-if.
func (sr *searcher) acceptStep(places []int, a Appraisal) {
	chosen := sr.candidatesAt(places)
	for _, i := range places {
		sr.candidates[i].taken = true
		for _, j := range sr.podSourcesOf(i) {
			sr.union(i, j)
		}
		sr.union(places[0], i)
	}
	sr.budgets.ReserveAll(chosen, command.Underutilized)
	sr.evictionRates.Add(chosen...)
	for _, at := range sr.whatIf.Commit() {
		sr.assigned[at.Pod.UID] = at
	}
	for i := range a.Bins {
		for _, p := range a.Bins[i].Pods {
			delete(sr.assigned, p.UID)
		}
	}
	sr.searchSteps = append(sr.searchSteps, searchStep{places, a})
}

// podSourcesOf are the candidates whose pods are to go to the candidate's node.
func (sr *searcher) podSourcesOf(i int) []int {
	var out []int
	for p := range sr.whatIf.PodsFromOthers(i) {
		if j := sr.byNode[p.Node]; !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	return out
}

// root finds the candidate that stands for all who are in one move with this one.
func (sr *searcher) root(i int) int {
	for sr.unionParent[i] != i {
		sr.unionParent[i] = sr.unionParent[sr.unionParent[i]]
		i = sr.unionParent[i]
	}
	return i
}

func (sr *searcher) union(i, j int) {
	a, b := sr.root(i), sr.root(j)
	if a != b {
		sr.unionParent[max(a, b)] = min(a, b)
		sr.unionSize[min(a, b)] += sr.unionSize[max(a, b)]
	}
}

// mayUnion reports whether the candidates may be in one move, together with those whose pods are to go to their nodes:
// they must not be too many, nor belong to pools that have different words about moves.
func (sr *searcher) mayUnion(places []int) bool {
	first, size := sr.candidates[places[0]].Pool, 0
	var seen []int
	for _, i := range places {
		for _, j := range append(sr.podSourcesOf(i), i) {
			p := sr.candidates[j].Pool
			if p != first && (p.Overrides.DryRun != first.Overrides.DryRun || hasOwnThreshold(p) ||
				hasOwnThreshold(first)) {
				return false
			}
			if r := sr.root(j); !slices.Contains(seen, r) {
				seen = append(seen, r)
				size += sr.unionSize[r]
			}
		}
	}
	return size <= mostJoined
}

// hasOwnThreshold reports whether the pool says itself what a move must save: then its nodes go only with others of the
// pool, because a move is judged as a whole when it begins.
func hasOwnThreshold(p *cluster.Pool) bool {
	return p.Overrides.MinSaving != nil || p.Overrides.MinSavingPerPod != nil || p.Policy == cluster.Balanced
}

// moves puts the steps together that hang together.
func (sr *searcher) moves() []Move {
	var out []Move
	at := make(map[int]int)
	members := make(map[int][]int)
	for _, step := range sr.searchSteps {
		root := sr.root(step.indices[0])
		n, known := at[root]
		if !known {
			n = len(out)
			at[root] = n
			out = append(out, Move{Reason: command.Underutilized})
		}
		m := &out[n]
		m.Bins = append(m.Bins, step.Bins...)
		m.Before, m.After, m.NeededSaving = m.Before+step.Before, m.After+step.After, m.NeededSaving+step.NeededSaving
		members[n] = append(members[n], step.indices...)
	}
	for n := range out {
		sr.describeMove(&out[n], members[n])
	}
	return out
}

// describeMove says who goes in the move, and where their pods go that need no new node.
func (sr *searcher) describeMove(m *Move, places []int) {
	slices.Sort(places)
	var assigned []schedule.Assignment
	var ids []string
	for _, i := range places {
		c := &sr.candidates[i]
		m.Claims, ids = append(m.Claims, c.Claim.Name), append(ids, ClaimIdentity(c.Claim))
		m.Evicted += c.Evicted
		m.Cost += c.Cost
		for _, p := range c.Pods {
			if at, there := sr.assigned[p.UID]; there {
				assigned = append(assigned, at)
			}
		}
	}
	slices.Sort(m.Claims)
	m.ID, m.Assigned = MoveID(m.Reason, ids), assigned
}
