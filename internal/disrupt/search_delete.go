package disrupt

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
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
			c.blocked.Reason = SearchCut
		}
		return false
	}
	if sr.whatIf.IsPromised(i) || !sr.mayUnion([]int{i}) {
		c.blocked.Reason = PodsExpected
		return false
	}
	if pod := sr.whatIf.StuckPod(i); pod != nil {
		c.blocked.Reason, c.blocked.Pod = PodsStranded, pod.ID()
		return false
	}
	if sr.budgets.Remaining(c.Pool.Name, command.Underutilized) <= 0 {
		c.blocked.Reason = BudgetBlocks
		return false
	}
	if pod, until, ok := sr.evictionRates.Allow(c.Candidate); !ok {
		c.blocked.Reason, c.blocked.Pod, c.blocked.Until = WorkloadResting, pod.ID(), until
		sr.wakeAt = cluster.Earlier(sr.wakeAt, until)
		return false
	}
	c.tried = true
	return true
}
