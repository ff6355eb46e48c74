package disrupt

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// BudgetReasons are the reasons that a pool's budgets tell apart.
func BudgetReasons() []command.Reason {
	return []command.Reason{command.Empty, command.Underutilized, command.Drifted, command.Unhealthy}
}

// BudgetTracker is what the disruption budgets of all pools leave. It is made once from a snapshot, and whoever decides
// to disrupt nodes takes them from it, so that decisions of the same plan share the budgets.
type BudgetTracker struct {
	pools map[string]*poolBudget // by pool
}

// poolBudget is one pool's part of a budget tracker.
type poolBudget struct {
	pool *cluster.Pool
	// total are the nodes that percentages are of; unavailable are those of them that are not at work, whoever took
	// them: a node that is unwell in two ways is out once.
	total, unavailable int
	// repairTotal is what total is for repairs: a node may be unhealthy before it is up. repairLeaving are those of
	// them that are on their way out.
	repairTotal, repairLeaving int
	// limits are known once somebody has asked for the reason.
	limits map[command.Reason]budgetLimit
}

// budgetLimit is how many nodes may be out at the same time for a reason, and which of the pool's budgets says so: -1
// if none does.
type budgetLimit struct {
	allowed, budget int
}

// NewBudgetTracker counts the nodes of every pool.
func NewBudgetTracker(s *cluster.Snapshot) *BudgetTracker {
	budgets := &BudgetTracker{pools: make(map[string]*poolBudget, len(s.Pools))}
	for _, p := range s.Pools {
		budgets.pools[p.Name] = newPoolBudget(s, p)
	}
	return budgets
}

func newPoolBudget(s *cluster.Snapshot, p *cluster.Pool) *poolBudget {
	b := &poolBudget{pool: p, limits: make(map[command.Reason]budgetLimit)}
	b.repairTotal, b.repairLeaving = CountForRepair(s, s.ClaimsOf(p.Name))
	for _, c := range s.ClaimsOf(p.Name) {
		if !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
			continue
		}
		b.total++
		n := s.NodeOf(c.Name)
		if n == nil || !n.Ready || LeavesInterrupted(c) || c.Move != "" || !c.Deleting.IsZero() ||
			!n.Deleting.IsZero() || HasFence(n) || HasCommandUnderWay(s, c, n) {
			b.unavailable++
		}
	}
	return b
}

// limitFor finds the least that an active budget allows for the reason.
func (pb *poolBudget) limitFor(reason command.Reason) budgetLimit {
	if known, ok := pb.limits[reason]; ok {
		return known
	}
	total := pb.totalFor(reason)
	out := budgetLimit{total, -1}
	for i := range pb.pool.Budgets {
		b := &pb.pool.Budgets[i]
		if allows := min(b.Allows(total), total); b.Covers(string(reason)) && (allows < out.allowed || out.budget < 0 &&
			allows == out.allowed) {
			out = budgetLimit{allows, i}
		}
	}
	pb.limits[reason] = out
	return out
}

// totalFor is how many nodes percentages are of.
func (pb *poolBudget) totalFor(reason command.Reason) int {
	if reason == command.Unhealthy {
		return pb.repairTotal
	}
	return pb.total
}

// Allowed is how many of the pool's nodes may be out at the same time for the reason.
func (b *BudgetTracker) Allowed(pool string, reason command.Reason) int {
	return b.pools[pool].limitFor(reason).allowed
}

// Remaining is how many more of the pool's nodes may be disrupted for the reason; below zero if more are out than may
// be.
func (b *BudgetTracker) Remaining(pool string, reason command.Reason) int {
	pb := b.pools[pool]
	if pb == nil {
		return 0
	}
	if reason == command.Unhealthy {
		return pb.limitFor(reason).allowed - pb.repairLeaving
	}
	return pb.limitFor(reason).allowed - pb.unavailable
}

// Reserve takes n nodes of the pool for the reason if there are so many left; else it takes none.
func (b *BudgetTracker) Reserve(pool string, reason command.Reason, n int) bool {
	if n > b.Remaining(pool, reason) {
		return false
	}
	b.Return(pool, -n)
	return true
}

// ReserveAll takes all candidates of a move, each from its pool, or none.
func (b *BudgetTracker) ReserveAll(candidates []Candidate, reason command.Reason) bool {
	count := make(map[string]int)
	for i := range candidates {
		count[candidates[i].Claim.Pool]++
	}
	for pool, n := range count {
		if n > b.Remaining(pool, reason) {
			return false
		}
	}
	for pool, n := range count {
		b.Reserve(pool, reason, n)
	}
	return true
}

// Return returns nodes that are at work again.
func (b *BudgetTracker) Return(pool string, n int) {
	if pb := b.pools[pool]; pb != nil {
		pb.unavailable -= n
		pb.repairLeaving -= n
	}
}

// AllowedAndUnavailable is how many of the pool's nodes may be out at the same time for the reason, the least that an
// active budget allows, and how many are out already, whoever took them. Repairs are counted in their own way: see
// package repair.
func AllowedAndUnavailable(s *cluster.Snapshot, p *cluster.Pool, reason string) (allowed, out int) {
	b := newPoolBudget(s, p)
	if reason == string(command.Unhealthy) {
		return b.limitFor(command.Unhealthy).allowed, b.repairLeaving
	}
	return b.limitFor(command.Reason(reason)).allowed, b.unavailable
}
