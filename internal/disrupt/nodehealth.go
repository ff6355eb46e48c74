package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// NodeHealth knows which nodes of one snapshot are to be replaced for their health.
type NodeHealth struct {
	s   *cluster.Snapshot
	set RepairSettings
	// tooMany are the pools so many nodes of which are unhealthy that the cause is elsewhere, as far as somebody has
	// asked.
	tooMany map[string]bool
}

// NewNodeHealth looks at nobody yet.
func NewNodeHealth(s *cluster.Snapshot, set RepairSettings) *NodeHealth {
	return &NodeHealth{s: s, set: set, tooMany: make(map[string]bool)}
}

// StillUnhealthy reports whether the node of a claim that was to be replaced for its health still is to be.
func (h *NodeHealth) StillUnhealthy(c *cluster.Claim) bool {
	_, unhealthy := h.Unhealthy(c)
	return unhealthy && !h.TooManyUnhealthy(c.Pool)
}

// Unhealthy says what ails the node of a claim, if it is to be replaced for that.
func (h *NodeHealth) Unhealthy(c *cluster.Claim) (condition UnhealthyCondition, is bool) {
	if !h.set.Enabled {
		return UnhealthyCondition{}, false
	}
	return needsRepair(h.s, h.set, c)
}

// Grace is how long the pods of an unhealthy node have to leave once it goes: the least that one of the policies says
// which call for its replacement, and at most the node's own terminationGracePeriod. has is false if nobody says
// anything.
func (h *NodeHealth) Grace(c *cluster.Claim) (grace time.Duration, has bool) {
	grace, has = c.TerminationGrace, c.HasTerminationGrace
	n := h.s.NodeOf(c.Name)
	if n == nil {
		return grace, has
	}
	for _, policy := range h.set.Policies {
		for _, cond := range n.Conditions {
			condition := UnhealthyCondition{policy, cond.Since}
			if !policy.HasGrace || cond.Type != policy.Type || cond.Status != policy.Status ||
				h.s.Now.Before(condition.DueAt()) {
				continue
			}
			if !has || policy.Grace < grace {
				grace, has = policy.Grace, true
			}
		}
	}
	return grace, has
}

// HasForcedEnd reports whether there is a time after which the pods of an unhealthy node are not asked any more.
func (h *NodeHealth) HasForcedEnd(c *cluster.Claim) bool {
	_, has := h.Grace(c)
	return has
}

// TooManyUnhealthy reports whether so many nodes of the pool, or of those without one, are unhealthy that none is to be
// touched.
func (h *NodeHealth) TooManyUnhealthy(pool string) bool {
	if crowded, known := h.tooMany[pool]; known {
		return crowded
	}
	total, unhealthy := 0, 0
	for _, c := range h.s.ClaimsOf(pool) {
		n := h.s.NodeOf(c.Name)
		if !CountsForRepair(c, n) {
			continue
		}
		total++
		if _, is := WorstCondition(n, h.set.Policies); is {
			unhealthy++
		}
	}
	h.tooMany[pool] = unhealthy > h.set.Tolerated(total)
	return h.tooMany[pool]
}

// Tolerated is how many of so many nodes may be unhealthy at the same time.
func (s RepairSettings) Tolerated(total int) int { return (total*s.MaxUnhealthy + 99) / 100 }

// RepairSettings say when a node is beyond hope.
type RepairSettings struct {
	// Enabled is the gate NodeRepair.
	Enabled bool
	// Policies name the conditions of a node that call for its replacement.
	Policies []RepairPolicy
	// Legacy ends unhealthy nodes at once, without waiting for what is to take their place.
	Legacy bool
	// MaxUnhealthy is the percentage of a pool's nodes, rounded up, above which none is replaced: the cause is
	// elsewhere.
	MaxUnhealthy int
}

// RepairPolicy names a condition that, once it has held for Toleration, means that the node is to be replaced. If it
// has a grace, pods have at most so long to leave, whatever they say; otherwise the node's own terminationGracePeriod
// counts.
type RepairPolicy struct {
	Type, Status string
	Toleration   time.Duration
	HasGrace     bool
	Grace        time.Duration
}

// UnhealthyCondition is what ails a node, and when that has been tolerated for long enough.
type UnhealthyCondition struct {
	Policy RepairPolicy
	since  time.Time
}

// DueAt is when the condition has been tolerated for long enough.
func (u *UnhealthyCondition) DueAt() time.Time { return u.since.Add(u.Policy.Toleration) }

// Text says what ails the node.
func (u *UnhealthyCondition) Text(n *cluster.Node) reason.Text {
	return reason.Of(reason.ConditionLasts, u.Policy.Type, n.Name, u.Policy.Status, u.Policy.Toleration)
}

// needsRepair reports whether a claim's node is so ill, and has been for so long, that it is to be replaced, and nobody
// has asked to leave it alone.
func needsRepair(s *cluster.Snapshot, set RepairSettings, c *cluster.Claim) (UnhealthyCondition, bool) {
	n := s.NodeOf(c.Name)
	if n == nil || n.DoNotRepair || c.DoNotRepair {
		return UnhealthyCondition{}, false
	}
	condition, unhealthy := WorstCondition(n, set.Policies)
	return condition, unhealthy && !s.Now.Before(condition.DueAt())
}

// WorstCondition finds the illness of a node that has been tolerated first.
func WorstCondition(n *cluster.Node, policies []RepairPolicy) (worst UnhealthyCondition, unhealthy bool) {
	for _, policy := range policies {
		for _, cond := range n.Conditions {
			if cond.Type != policy.Type || cond.Status != policy.Status {
				continue
			}
			if condition := (UnhealthyCondition{policy, cond.Since}); !unhealthy ||
				condition.DueAt().Before(worst.DueAt()) {
				worst, unhealthy = condition, true
			}
		}
	}
	return worst, unhealthy
}

// CountForRepair counts the nodes of claims and those of them that are on their way out. Nodes that are not ready don't
// use up the budget for repairs, as they would for other reasons: they are those that it is for.
func CountForRepair(s *cluster.Snapshot, claims []*cluster.Claim) (total, leaving int) {
	for _, c := range claims {
		n := s.NodeOf(c.Name)
		if !CountsForRepair(c, n) {
			continue
		}
		total++
		if !c.Deleting.IsZero() || !n.Deleting.IsZero() || HasFence(n) || HasCommandUnderWay(s, c, n) {
			leaving++
		}
	}
	return total, leaving
}

// CountsForRepair reports whether a node counts among those that may fall unhealthy. One whose machine is being ended
// does not, as with all other budgets: that nobody hears from it any more is no illness.
func CountsForRepair(c *cluster.Claim, n *cluster.Node) bool {
	return n != nil && c.Is(cluster.Registered) && !c.Is(cluster.InstanceTerminating)
}

// RepairMoveID names the move of an unhealthy node.
func RepairMoveID(c *cluster.Claim) string {
	return MoveID(command.Unhealthy, []string{ClaimIdentity(c)})
}

// UnhealthyCandidate is an unhealthy node that goes, whoever objects.
func UnhealthyCandidate(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, p *cluster.Pool) Candidate {
	out := Candidate{Claim: c, Node: n, Pool: p, Cost: nodeCost}
	FillEstimates(s, &out)
	return out
}
