package disrupt

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// deletions finds nodes whose pods have room on those that stay.
func (sr *searcher) deletions() {
	order := sr.order()
	sr.stage.Arrange(order)
	for _, i := range order {
		if !sr.open(i) {
			continue
		}
		if a, pays := sr.appraise([]int{i}, sr.chosen([]int{i}), nil); pays && sr.stage.Clear(i) {
			sr.accept([]int{i}, a)
		} else {
			sr.stage.Undo()
		}
	}
}

// open reports whether the candidate may still go; if not its stay says why.
func (sr *searcher) open(i int) bool {
	c := &sr.all[i]
	if c.taken || c.left || sr.stage.Gone(i) {
		return false
	}
	if sr.spent() {
		if !c.looked {
			c.stay.Why = SearchCut
		}
		return false
	}
	if sr.stage.Promised(i) || !sr.joinable([]int{i}) {
		c.stay.Why = PodsExpected
		return false
	}
	if pod := sr.stage.Stuck(i); pod != nil {
		c.stay.Why, c.stay.Pod = PodsStranded, pod.ID()
		return false
	}
	if sr.budgets.Left(c.Pool.Name, command.Underutilized) <= 0 {
		c.stay.Why = BudgetBlocks
		return false
	}
	if pod, until, ok := sr.patience.Bears(c.Candidate); !ok {
		c.stay.Why, c.stay.Pod, c.stay.Until = WorkloadResting, pod.ID(), until
		sr.wake = cluster.Earlier(sr.wake, until)
		return false
	}
	c.looked = true
	return true
}
