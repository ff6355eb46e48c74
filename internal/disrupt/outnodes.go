package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// OutNodes are the nodes that are out and not just fenced by us, against which budgets are held when nodes go.
type OutNodes struct {
	s       *cluster.Snapshot
	budgets *BudgetTracker
	// deleted are the claims that the plan deletes.
	deleted map[string]bool
	// counts are how many nodes of a pool are out, as far as somebody has asked.
	counts map[BudgetKey]int
}

// BudgetKey is what a pool's budgets allow for a reason.
type BudgetKey struct {
	Pool   *cluster.Pool
	Reason command.Reason
}

// NewOutNodes counts nobody yet. deleted are claims that the plan deletes.
func NewOutNodes(s *cluster.Snapshot, budgets *BudgetTracker, deleted map[string]bool) *OutNodes {
	return &OutNodes{s: s, budgets: budgets, deleted: deleted, counts: make(map[BudgetKey]int)}
}

// Allow reports whether the budgets let so many more nodes go.
func (on *OutNodes) Allow(going map[BudgetKey]int) bool {
	for key, n := range going {
		if on.count(key)+n > on.budgets.Allowed(key.Pool.Name, key.Reason) {
			return false
		}
	}
	return true
}

// Add counts a node as gone.
func (on *OutNodes) Add(c *cluster.Claim, p *cluster.Pool) {
	for _, reason := range append(BudgetReasons(), command.Expired) {
		key := BudgetKey{p, reason}
		if n, counted := on.counts[key]; counted && !on.isOut(c, reason) {
			on.counts[key] = n + 1
		}
	}
	on.deleted[c.Name] = true
}

// count is how many of the pool's nodes are out. They are counted once; whoever goes after that is added.
func (on *OutNodes) count(key BudgetKey) int {
	if n, counted := on.counts[key]; counted {
		return n
	}
	out := 0
	for _, c := range on.s.ClaimsOf(key.Pool.Name) {
		if on.isOut(c, key.Reason) {
			out++
		}
	}
	on.counts[key] = out
	return out
}

// isOut reports whether a claim's node is out and not just fenced by us.
func (on *OutNodes) isOut(c *cluster.Claim, reason command.Reason) bool {
	if !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
		return false
	}
	n := on.s.NodeOf(c.Name)
	switch {
	case on.deleted[c.Name], n == nil, !c.Deleting.IsZero(), !n.Deleting.IsZero():
		return true
	case len(on.s.InFlight) > 0 && on.s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()]:
		return true
	case !n.Ready:
		return reason != command.Unhealthy && c.Move == ""
	}
	return HasFence(n) && !c.Is(cluster.DisruptionReason)
}

// BudgetRecheck is the question whether the budgets still let nodes go: between the plan that lets them go and this
// snapshot a window may have opened, and other nodes may have gone, of which the budget is a percentage.
type BudgetRecheck struct{ out *OutNodes }

// NewBudgetRecheck counts nobody yet.
func NewBudgetRecheck(s *cluster.Snapshot) *BudgetRecheck {
	return &BudgetRecheck{NewOutNodes(s, NewBudgetTracker(s), make(map[string]bool))}
}

// Allow reports whether the nodes may go together, and takes them from the budgets if so. Budgets have no say about
// nodes that go because of what has happened to them; these count against others all the same.
func (r *BudgetRecheck) Allow(commands []command.DeleteClaim) bool {
	s, going := r.out.s, make(map[BudgetKey]int)
	var leaving []*cluster.Claim
	for _, cmd := range commands {
		c := s.Claim(cmd.Claim)
		if c == nil || s.Pool(c.Pool) == nil || !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
			continue
		}
		leaving = append(leaving, c)
		if key := (BudgetKey{s.Pool(c.Pool), cmd.Reason}); isBudgeted(s, c, cmd.Reason) {
			going[key] += 0
			if !r.out.isOut(c, cmd.Reason) { // one that is out already is counted there
				going[key]++
			}
		}
	}
	if !r.out.Allow(going) {
		return false
	}
	for _, c := range leaving {
		r.out.Add(c, s.Pool(c.Pool))
	}
	return true
}

// isBudgeted reports whether budgets have a say about a node that goes for the reason: somebody chose to end it, and
// its time is not up.
func isBudgeted(s *cluster.Snapshot, c *cluster.Claim, reason command.Reason) bool {
	if reason == command.Expired {
		return MoveReason(c.Move) == command.Expired && (c.ExpireAfter.Never ||
			s.Now.Before(c.Created.Add(c.ExpireAfter.For)))
	}
	return slices.Contains(BudgetReasons(), reason)
}
