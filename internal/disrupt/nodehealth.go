package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
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
	_, unhealthy := needsRepair(h.s, h.set, c)
	return unhealthy && h.set.Enabled && !h.TooManyUnhealthy(c.Pool)
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
			condition := unhealthyCondition{policy, cond.Since}
			if !policy.HasGrace || cond.Type != policy.Type || cond.Status != policy.Status ||
				h.s.Now.Before(condition.dueAt()) {
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
		if !countsForRepair(c, n) {
			continue
		}
		total++
		if _, is := worstCondition(n, h.set.Policies); is {
			unhealthy++
		}
	}
	h.tooMany[pool] = unhealthy > h.set.tolerated(total)
	return h.tooMany[pool]
}

// tolerated is how many of so many nodes may be unhealthy at the same time.
func (s RepairSettings) tolerated(total int) int { return (total*s.MaxUnhealthy + 99) / 100 }
