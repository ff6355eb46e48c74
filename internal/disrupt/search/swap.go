package search

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
)

// goodSwapShare is the part of what could be saved at best from which on a node is exchanged for another by itself: if
// less is saved so, others may be found with which more is.
const goodSwapShare = 0.85

// findSwaps finds nodes that can be exchanged for one that is cheaper, the most wasteful for the disturbance first. Of
// what could be saved at best they must save a part.
func (sr *searcher) findSwaps(part float64) {
	alone := func(places []int, chosen []disrupt.Candidate, before, needed float64) (saving.Appraisal, bool) {
		asked := max(needed, part*(before-sr.whatIf.WorthWithoutRoom()))
		bins, price, reason := sr.whatIf.BuyOne(before - asked)
		if reason != "" {
			if saved := before - price; asked == needed || saved < needed { // else it is tried again, for less
				sr.candidates.noteBlocked(places, noSwapReason(reason, saved, needed))
			}
			return saving.Appraisal{}, false
		}
		return sr.appraise(places, chosen, bins)
	}
	for _, i := range sr.candidates.sortByWaste() {
		if !sr.mayStillGo(i) {
			continue
		}
		if a, ok := sr.try([]int{i}, alone); ok {
			sr.acceptStep([]int{i}, a)
		} else {
			sr.whatIf.Undo()
		}
	}
}

// savingMargin is by how much more than the least saving is asked, for the pods that are evicted, where nodes have to
// be bought: packing anew disturbs everybody for a part of the price, and what has just been moved should not be moved
// again for little.
const savingMargin = 2.5

// priceAndNeeded is what nodes cost, and what must be saved if they go and others have to be bought. Pods of other
// nodes that were to go there are evicted in any case.
func (sr *searcher) priceAndNeeded(places []int, chosen []disrupt.Candidate) (before, needed float64) {
	own := 0.0
	for _, i := range places {
		before, own = before+sr.candidates[i].Price, own+sr.candidates[i].ownWorth
	}
	needed = saving.Needed(sr.set, chosen)
	return before, max(needed, savingMargin*needed*own/max(before, saving.Least))
}

// noSwapReason says why a node stays in whose place no single other one can be bought; saved is what the cheapest with
// room would save.
func noSwapReason(reason purchase.NoSwapReason, saved, needed float64) disrupt.BlockedNode {
	switch {
	case reason == purchase.FewValues:
		return disrupt.BlockedNode{Reason: disrupt.MinValuesTooDear, Saving: saved, NeededSaving: needed}
	case reason == purchase.NotAlone:
		return disrupt.BlockedNode{Reason: disrupt.PodsStranded, Saving: saved, NeededSaving: needed}
	case math.IsInf(saved, -1):
		return disrupt.BlockedNode{Reason: disrupt.NothingCheaper, NeededSaving: needed}
	}
	return savesTooLittle(saved, needed)
}

// savesTooLittle says why a node stays whose pods could be had for so much less, which is not what is needed.
func savesTooLittle(saved, needed float64) disrupt.BlockedNode {
	reason := disrupt.SavesTooLittle
	if saved <= 0 {
		reason = disrupt.NothingCheaper
	}
	return disrupt.BlockedNode{Reason: reason, Saving: saved, CertainSaving: saved, NeededSaving: needed}
}

// buyFunc buys what is needed for those who have found no room; ok is false if it does not pay.
type buyFunc func(places []int, chosen []disrupt.Candidate, before, needed float64) (a saving.Appraisal, ok bool)

// try lets the nodes go on the what-if and buys what their pods need; ok is false if it does not pay.
func (sr *searcher) try(places []int, buy buyFunc) (a saving.Appraisal, ok bool) {
	chosen := sr.candidates.at(places)
	if pod, until, bears := sr.evictionRates.Allow(chosen...); !bears {
		sr.candidates.noteBlocked(places, disrupt.BlockedNode{Reason: disrupt.WorkloadResting, Pod: pod.ID(),
			Until: until})
		return saving.Appraisal{}, false
	}
	if !sr.mayUnion(places) {
		return saving.Appraisal{}, false
	}
	before, needed := sr.priceAndNeeded(places, chosen)
	if sr.whatIf.Remove(places...) {
		return sr.appraise(places, chosen, nil)
	}
	if saved := before - sr.whatIf.WorthWithoutRoom(); saved < needed {
		sr.candidates.noteBlocked(places, disrupt.BlockedNode{Reason: disrupt.NothingCheaper, Saving: saved,
			CertainSaving: saved,
			NeededSaving:  needed})
		return saving.Appraisal{}, false
	}
	return buy(places, chosen, before, needed)
}

// appraise says what a move is worth.
func (sr *searcher) appraise(places []int, chosen []disrupt.Candidate, bins []market.Bin) (saving.Appraisal, bool) {
	a, blocked := saving.AppraiseFrom(sr.set, chosen, sr.originsOf(places, chosen), bins, true)
	if spare := saving.LeftOverPrice(chosen, a.Bins); blocked == nil && a.Saving() < a.NeededSaving+spare {
		blocked = &disrupt.BlockedNode{Reason: disrupt.SavesTooLittle, Saving: a.Saving(), CertainSaving: a.Saving(),
			NeededSaving: a.NeededSaving + spare}
	}
	if blocked == nil {
		blocked = sr.totals.Approves(sr.set, chosen, a.Saving())
	}
	if blocked == nil && len(bins) > 0 {
		blocked = sr.needlesslyMoved(places, chosen, a.Bins)
	}
	if blocked != nil {
		sr.candidates.noteBlocked(places, *blocked)
		return saving.Appraisal{}, false
	}
	return a, true
}

// originsOf are the nodes that pods come from if the candidates go: their own, and those of pods that were to go there.
func (sr *searcher) originsOf(places []int, chosen []disrupt.Candidate) []disrupt.Candidate {
	out := chosen[:len(chosen):len(chosen)]
	for _, i := range places {
		out = append(out, sr.candidates.at(sr.podSourcesOf(i))...)
	}
	return out
}

// needlesslyMoved says why nodes stay to which pods of others were to go, if that would have some of those go for
// nothing: their pods had room there, and would need new nodes that cost no less than theirs.
func (sr *searcher) needlesslyMoved(places []int, chosen []disrupt.Candidate,
	bins []market.Bin) *disrupt.BlockedNode {
	roots := make(map[int]bool)
	for _, i := range places {
		for _, j := range sr.podSourcesOf(i) {
			roots[sr.found.joined.Root(j)] = true
		}
	}
	if len(roots) == 0 {
		return nil
	}
	nodes, made := slices.Clone(chosen), slices.Clone(bins)
	for i := range sr.found.steps {
		if step := &sr.found.steps[i]; roots[sr.found.joined.Root(step.indices[0])] {
			nodes, made = append(nodes, sr.candidates.at(step.indices)...), append(made, step.Bins...)
		}
	}
	_, blocked := saving.FreeRiders(sr.set, nodes, made, saving.CandidateByNode(nodes),
		saving.PartDemand{NeedsChoice: true})
	return blocked
}

// findDeletions finds nodes whose pods have room on those that stay.
func (sr *searcher) findDeletions() {
	order := sr.candidates.sortByWaste()
	sr.whatIf.SetOrder(order)
	for _, i := range order {
		if !sr.mayStillGo(i) {
			continue
		}
		if a, pays := sr.appraise([]int{i}, sr.candidates.at([]int{i}), nil); pays && sr.whatIf.RemoveFully(i) {
			sr.acceptStep([]int{i}, a)
		} else {
			sr.whatIf.Undo()
		}
	}
}

// mayStillGo reports whether the candidate may still go; if not its stay says why.
func (sr *searcher) mayStillGo(i int) bool {
	c := &sr.candidates[i]
	if c.taken || c.skipped || sr.whatIf.IsRemoved(i) {
		return false
	}
	if sr.isOutOfSteps() {
		if !c.tried {
			c.blocked.Reason = disrupt.SearchCut
		}
		return false
	}
	if sr.whatIf.IsPromised(i) || !sr.mayUnion([]int{i}) {
		c.blocked.Reason = disrupt.PodsExpected
		return false
	}
	if pod := sr.whatIf.StuckPod(i); pod != nil {
		c.blocked.Reason, c.blocked.Pod = disrupt.PodsStranded, pod.ID()
		return false
	}
	if sr.budgets.Remaining(c.Pool.Name, command.Underutilized) <= 0 {
		c.blocked.Reason = disrupt.BudgetBlocks
		return false
	}
	if pod, until, ok := sr.evictionRates.Allow(c.Candidate); !ok {
		c.blocked.Reason, c.blocked.Pod, c.blocked.Until = disrupt.WorkloadResting, pod.ID(), until
		sr.wakeAt = cluster.Earlier(sr.wakeAt, until)
		return false
	}
	c.tried = true
	return true
}
