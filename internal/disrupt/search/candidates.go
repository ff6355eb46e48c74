package search

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/disrupt"
)

// searchCandidate is a candidate in a search.
type searchCandidate struct {
	disrupt.Candidate
	// ownWorth is what its pods are worth, worth the same with those who are to come.
	ownWorth, worth float64
	taken           bool
	// tried says that something was tried with it, left that there are no steps for it.
	tried, skipped bool
	// blocked is why it stays, as far as that is known: the best that was found for it, if anything was noted.
	blocked        disrupt.BlockedNode
	hasBlockReason bool
}

// waste is what the node costs beyond what its pods are worth.
func (p *searchCandidate) waste() float64 { return p.Price - p.worth }

// searchCandidates are the candidates of a search.
type searchCandidates []searchCandidate

// sortByWaste sorts the candidates by how soon they should go: those that waste the most for the disturbance come
// first, and what is only tried out last.
func (cl searchCandidates) sortByWaste() []int {
	order := make([]int, len(cl))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &cl[i], &cl[j]
		return cmp.Or(disrupt.TrueFirst(!a.Pool.Overrides.DryRun, !b.Pool.Overrides.DryRun),
			cmp.Compare(b.waste()/b.Cost, a.waste()/a.Cost), disrupt.Compare(&a.Candidate, &b.Candidate))
	})
	return order
}

// at are the candidates of some places.
func (cl searchCandidates) at(places []int) []disrupt.Candidate {
	out := make([]disrupt.Candidate, len(places))
	for i, place := range places {
		out[i] = cl[place].Candidate
	}
	return out
}

// blockedNodes says of each candidate that is in no move why.
func (cl searchCandidates) blockedNodes() []disrupt.BlockedNode {
	var out []disrupt.BlockedNode
	for i := range cl {
		if !cl[i].taken {
			out = append(out, cl[i].blocked)
		}
	}
	return out
}

// noteBlocked remembers of a node that was tried alone why it stays: of what was tried, what would save the most.
func (cl searchCandidates) noteBlocked(places []int, blocked disrupt.BlockedNode) {
	if len(places) != 1 {
		return
	}
	c := &cl[places[0]]
	if c.hasBlockReason && blocked.Saving < c.blocked.Saving {
		return
	}
	blocked.Claim, blocked.Node = c.Claim.Name, c.Node.Name
	c.blocked, c.hasBlockReason = blocked, true
}

// take marks the candidates of some places as taken, and returns them.
func (cl searchCandidates) take(places []int) []disrupt.Candidate {
	for _, i := range places {
		cl[i].taken = true
	}
	return cl.at(places)
}
