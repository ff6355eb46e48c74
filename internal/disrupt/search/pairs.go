package search

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/schedule"
)

const (
	// fewNodes is up to how many candidates pairs of them are looked at, and mostPairs how many pairs at most: each
	// takes a placement of the whole cluster.
	fewNodes, mostPairs = 16, 36
	// fullPlacementCost is which part of a cluster's pods counts as work each time all of them are taken in anew.
	fullPlacementCost = 8
)

// findPairs looks at any two nodes of a small cluster in which nothing else was found, the most wasteful first, and
// takes the pair that saves the most.
//
// Each pair is placed anew as a whole, which the what-if does not do: there, room on nodes is looked for first, and new
// nodes are bought for the rest. Where pods are spread over zones, a node that is there may take one of them only after
// another has gone to a new node in another zone.
func (sr *searcher) findPairs() {
	if len(sr.found.steps) > 0 || len(sr.candidates) > fewNodes {
		return
	}
	closed := sr.closedHosts()
	var best *nodePair
	order, tried := sr.candidates.sortByWaste(), 0
	for n, i := range order {
		for _, j := range order[:n] {
			if tried++; sr.packingBudget <= 0 || tried > mostPairs {
				break
			}
			if p := sr.tryPair([]int{j, i}, closed); p != nil && (best == nil || p.Saving() > best.Saving()) {
				best = p
			}
		}
	}
	if best != nil {
		sr.candidates.take(best.indices)
		sr.found.add(best.searchStep, best.assigned)
	}
}

// nodePair is two nodes that go together, and where their pods go.
type nodePair struct {
	searchStep
	assigned []schedule.Assignment
}

// closedHosts are the hosts that take no pods that are moved to save money.
func (sr *searcher) closedHosts() map[string]bool {
	out := make(map[string]bool)
	hosts := withoutLeaving(sr.s).Hosts()
	for i := range hosts {
		h := &hosts[i]
		out[h.Name] = !sr.mayReceivePods(h) || disrupt.NoWorkload(sr.s.PodsOn(h.Name)) && sr.s.ClaimOf(h.Name) != nil
	}
	return out
}

// tryPair says what it is worth if two nodes go together; nil if it does not pay, or they may not.
func (sr *searcher) tryPair(places []int, closed map[string]bool) *nodePair {
	chosen := sr.candidates.at(places)
	if !sr.mayStillGo(places[0]) || !sr.mayStillGo(places[1]) || !sr.mayUnion(places) || !sr.mayGoTogether(chosen) {
		return nil
	}
	before, needed := sr.priceAndNeeded(places, chosen)
	sr.packingBudget -= len(sr.s.Pods)/fullPlacementCost + len(chosen[0].Pods) + len(chosen[1].Pods)
	gone := append(leavingHosts(sr.s), chosen[0].Node.Name, chosen[1].Node.Name)
	placed := schedule.Place(sr.s.Without(gone...).WithAvoided(closed), sr.set.Schedule)
	of := saving.CandidateByNode(chosen)
	theirs := func(p *cluster.Pod) bool { return of(p) >= 0 }
	for i := range placed.Unplaced {
		if theirs(placed.Unplaced[i].Pod) {
			return nil
		}
	}
	bins := slices.DeleteFunc(slices.Clone(placed.Bins), func(b market.Bin) bool {
		return !slices.ContainsFunc(b.Pods, theirs)
	})
	if before-saving.BinsPrice(bins) < needed || slices.ContainsFunc(bins, func(b market.Bin) bool {
		// others, who wait, will have it
		return slices.ContainsFunc(b.Pods, func(p *cluster.Pod) bool { return !theirs(p) })
	}) {
		return nil
	}
	if along, _ := saving.FreeRiders(sr.set, chosen, bins, of, saving.PartDemand{NeedsSaving: true,
		NeedsChoice: true}); len(along) > 0 {
		return nil
	}
	a, ok := sr.appraise(places, chosen, bins)
	if !ok {
		return nil
	}
	out := &nodePair{searchStep: searchStep{places, a}}
	for _, at := range placed.Assigned {
		if theirs(at.Pod) {
			out.assigned = append(out.assigned, at)
		}
	}
	return out
}

// mayGoTogether asks budgets and workloads about all of the nodes at once.
func (sr *searcher) mayGoTogether(chosen []disrupt.Candidate) bool {
	count := make(map[string]int)
	for i := range chosen {
		pool := chosen[i].Pool.Name
		if count[pool]++; count[pool] > sr.budgets.Remaining(pool, command.Underutilized) {
			return false
		}
	}
	_, _, bears := sr.evictionRates.Allow(chosen...)
	return bears
}
