package search

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

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
