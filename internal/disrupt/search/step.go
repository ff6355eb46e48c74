package search

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// searchStep is a step of the search that pays: nodes that go, and what takes their place.
//
// A later step may take away a node to which pods of an earlier one were to go. Then they go further before they have
// come, so that each pod is evicted only once, and the two steps are one move.
type searchStep struct {
	indices []int
	saving.Appraisal
}

// mostJoined bounds how many nodes are in a move.
const mostJoined = 4 * mostNodes

// stepBook is what a search has found so far.
type stepBook struct {
	steps []searchStep
	// joined are the candidates whose steps hang together; assigned are where pods go that need no new node.
	joined   *disrupt.Components
	assigned map[string]schedule.Assignment
}

func newStepBook(candidates int) stepBook {
	return stepBook{joined: disrupt.NewComponents(candidates), assigned: make(map[string]schedule.Assignment)}
}

// add takes a step down, and where pods go by it that are there or were to come.
func (sb *stepBook) add(step searchStep, assigned []schedule.Assignment) {
	for _, i := range step.indices {
		sb.joined.Join(step.indices[0], i)
	}
	for _, at := range assigned {
		sb.assigned[at.Pod.UID] = at
	}
	for i := range step.Bins {
		for _, p := range step.Bins[i].Pods {
			delete(sb.assigned, p.UID)
		}
	}
	sb.steps = append(sb.steps, step)
}

// acceptStep makes a step of what is on the what-if.
func (sr *searcher) acceptStep(places []int, a saving.Appraisal) {
	for _, i := range places {
		for _, j := range sr.podSourcesOf(i) {
			sr.found.joined.Join(i, j)
		}
	}
	chosen := sr.candidates.take(places)
	sr.budgets.ReserveAll(chosen, command.Underutilized)
	sr.evictionRates.Add(chosen...)
	sr.found.add(searchStep{places, a}, sr.whatIf.Commit())
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
			if r := sr.found.joined.Root(j); !slices.Contains(seen, r) {
				seen = append(seen, r)
				size += sr.found.joined.Size(r)
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
func (sb *stepBook) moves(candidates searchCandidates) []disrupt.Move {
	var out []disrupt.Move
	at := make(map[int]int)
	members := make(map[int][]int)
	for _, step := range sb.steps {
		root := sb.joined.Root(step.indices[0])
		n, known := at[root]
		if !known {
			n = len(out)
			at[root] = n
			out = append(out, disrupt.Move{Reason: command.Underutilized})
		}
		m := &out[n]
		m.Bins = append(m.Bins, step.Bins...)
		m.Before, m.After, m.NeededSaving = m.Before+step.Before, m.After+step.After, m.NeededSaving+step.NeededSaving
		members[n] = append(members[n], step.indices...)
	}
	for n := range out {
		sb.describeMove(&out[n], candidates.at(slices.Sorted(slices.Values(members[n]))))
	}
	return out
}

// describeMove says who goes in the move, and where their pods go that need no new node.
func (sb *stepBook) describeMove(m *disrupt.Move, nodes []disrupt.Candidate) {
	var assigned []schedule.Assignment
	var ids []string
	for i := range nodes {
		c := &nodes[i]
		m.Claims, ids = append(m.Claims, c.Claim.Name), append(ids, disrupt.ClaimIdentity(c.Claim))
		m.Evicted += c.Evicted
		m.Cost += c.Cost
		for _, p := range c.Pods {
			if at, there := sb.assigned[p.UID]; there {
				assigned = append(assigned, at)
			}
		}
	}
	slices.Sort(m.Claims)
	m.ID, m.Assigned = disrupt.MoveID(m.Reason, ids), assigned
}
