package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// BudgetRecheck is the question whether the budgets still let nodes go: between the plan that lets them go and this
// snapshot a window may have opened, and other nodes may have gone, of which the budget is a percentage.
type BudgetRecheck struct{ ex *executor }

// NewBudgetRecheck counts nobody yet.
func NewBudgetRecheck(s *cluster.Snapshot) *BudgetRecheck {
	return &BudgetRecheck{&executor{s: s, budgets: disrupt.NewBudgetTracker(s), deletedClaims: make(map[string]bool),
		unavailable: make(map[budgetKey]int)}}
}

// Allow reports whether the nodes may go together, and takes them from the budgets if so. Budgets have no say about
// nodes that go because of what has happened to them; these count against others all the same.
func (r *BudgetRecheck) Allow(commands []command.DeleteClaim) bool {
	ex := r.ex
	going := make(map[budgetKey]int)
	var leaving []disrupt.Candidate
	for _, cmd := range commands {
		c := ex.s.Claim(cmd.Claim)
		if c == nil || ex.s.Pool(c.Pool) == nil || !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
			continue
		}
		p := ex.s.Pool(c.Pool)
		leaving = append(leaving, disrupt.Candidate{Claim: c, Pool: p})
		if key := (budgetKey{p, cmd.Reason}); isBudgeted(ex.s, c, cmd.Reason) {
			going[key] += 0
			if !ex.isUnavailable(c, cmd.Reason) { // one that is out already is counted there
				going[key]++
			}
		}
	}
	for key, n := range going {
		if ex.unavailableNow(key.pool, key.reason)+n > ex.allowedUnavailable(key.pool, key.reason) {
			return false
		}
	}
	for i := range leaving {
		ex.countDeparted(&leaving[i])
	}
	return true
}

// isBudgeted reports whether budgets have a say about a node that goes for the reason: somebody chose to end it, and
// its time is not up.
func isBudgeted(s *cluster.Snapshot, c *cluster.Claim, reason command.Reason) bool {
	if reason == command.Expired {
		return disrupt.MoveReason(c.Move) == command.Expired && (c.ExpireAfter.Never ||
			s.Now.Before(c.Created.Add(c.ExpireAfter.For)))
	}
	return slices.Contains(disrupt.BudgetReasons(), reason)
}
