package execute

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/disrupt/repair"
)

// beginRequired begins the replacement of nodes that have to go: those that are unhealthy, have drifted, or come near
// the end of their life.
func (ex *executor) beginRequired() {
	ex.beginRepairs()
	due, wake := drift.Drifted(ex.s, ex.set, ex.eligibility, ex.removedNodes, ex.input.Static)
	ex.wake(wake)
	ex.begin(due)
	due, wake = drift.Expiring(ex.s, ex.eligibility, ex.removedNodes)
	ex.wake(wake)
	ex.begin(due)
}

// beginRepairs begins the replacement of unhealthy nodes. They go like the others, when what takes their place is up.
// Then their pods have the time that the policy or the node gives them; where neither does, a pod may keep its node.
func (ex *executor) beginRepairs() {
	set := ex.input.Repair
	if !set.Enabled || len(set.Policies) == 0 || set.Legacy {
		return
	}
	for _, p := range ex.s.Pools {
		if p.Deleting {
			continue
		}
		repair.CheckPool(ex.s, ex.s.ClaimsOf(p.Name), set, p, &ex.Result, func(c *cluster.Claim, n *cluster.Node,
			_ disrupt.UnhealthyCondition) bool {
			if ex.removedNodes[n.Name] {
				return false
			}
			if p.Static && !ex.input.Static {
				ex.Notes = append(ex.Notes, repair.BlockedNotes(ex.s, c, n, fmt.Sprintf("NodePool %s is static and "+
					"the feature gate StaticCapacity is off: nothing would take the node's place", p.Name))...)
				return false
			}
			if ex.s.Now.Before(c.RestUntil) {
				ex.wake(c.RestUntil)
				return false
			}
			if reason := ex.blockingPod(c); reason != "" {
				ex.Notes = append(ex.Notes, repair.BlockedNotes(ex.s, c, n, reason)...)
				return false
			}
			return ex.queueRepair(c, n, p)
		})
	}
}

// blockingPod says which pod keeps an unhealthy node that has no time after which nobody is asked; empty if none does.
func (ex *executor) blockingPod(c *cluster.Claim) string {
	if ex.health.HasForcedEnd(c) {
		return ""
	}
	_, blocked := ex.eligibility.MayDisrupt(c, command.Unhealthy)
	if blocked == nil || !blocked.ByPod() {
		return ""
	}
	ex.wake(blocked.Until)
	return fmt.Sprintf("pod %s may not be evicted now (%s), and nothing says after which time it may be: set "+
		"terminationGracePeriod in NodePool %s", blocked.Pod, blocked.Reason, c.Pool)
}

// forceUnhealthyPods counts the pods of an unhealthy node that will be made to leave although they, or a disruption
// budget, object: they need other places, too.
func (ex *executor) forceUnhealthyPods(m *activeMove) {
	if m.reason != command.Unhealthy || m.isStatic {
		return
	}
	for i := range m.nodes {
		if !ex.health.HasForcedEnd(m.nodes[i].Claim) {
			continue
		}
		for _, p := range ex.s.PodsOn(m.nodes[i].Node.Name) {
			if p.IsReschedulable() && !ex.s.NeedsNewPlace(p) {
				ex.forcePod(p)
			}
		}
	}
}

// queueRepair lines an unhealthy node up to be replaced. Its pool's budgets have been asked.
func (ex *executor) queueRepair(c *cluster.Claim, n *cluster.Node, p *cluster.Pool) bool {
	m := &activeMove{id: disrupt.RepairMoveID(c), reason: command.Unhealthy, isStatic: p.Static,
		nodes: []disrupt.Candidate{disrupt.UnhealthyCandidate(ex.s, c, n, p)}}
	if p.Overrides.DryRun {
		ex.AddDryRun(m.describe(), m.nodes)
		return true
	}
	if n.Ready { // one that is not counts as out already
		m.budgetReserved = true
		ex.budgets.Return(p.Name, -1)
	}
	ex.removedNodes[n.Name] = true
	ex.moves = append(ex.moves, m)
	return true
}

// findUnhealthy finds the nodes that are beyond hope, by claim.
func (ex *executor) findUnhealthy() {
	ex.unhealthy = make(map[string]disrupt.UnhealthyCondition)
	if !ex.input.Repair.Enabled {
		return
	}
	for _, c := range ex.s.Claims {
		if condition, unhealthy := disrupt.NeedsRepair(ex.s, ex.input.Repair, c); unhealthy {
			ex.unhealthy[c.Name] = condition
		}
	}
}

// begin begins the replacement of nodes that are due: as many of a pool at the same time as its budgets allow. As soon
// as one is gone the next begins.
func (ex *executor) begin(list []disrupt.Due) {
	for i := range list {
		p, nodes := list[i].Pool, list[i].Candidates
		if p.Static {
			nodes = nodes[:min(len(nodes), ex.freeStaticNodes(p))]
		}
		for _, c := range nodes {
			if !ex.queueRequired(c, list[i].Reason) {
				// nodes that are on their way out will make room in the budget
				ex.PlanSoon = ex.PlanSoon || ex.allowedUnavailable(p, list[i].Reason) > 0
				break
			}
		}
	}
}

// queueRequired lines a node up to be replaced whatever it costs, if its pool's budgets allow it. It is fenced once it
// is known that its pods have somewhere to go.
func (ex *executor) queueRequired(c disrupt.Candidate, reason command.Reason) bool {
	m := &activeMove{id: disrupt.MoveID(reason, []string{disrupt.ClaimIdentity(c.Claim)}), reason: reason,
		nodes:    []disrupt.Candidate{c},
		isStatic: c.Pool.Static}
	if reason == command.Drifted {
		m.id = drift.MoveID(c.Claim)
	}
	if !ex.budgets.Reserve(c.Claim.Pool, reason, 1) {
		return false
	}
	if c.Pool.Overrides.DryRun {
		ex.AddDryRun(m.describe(), m.nodes)
		return true
	}
	m.budgetReserved, ex.removedNodes[c.Node.Name] = true, true
	ex.moves = append(ex.moves, m)
	return true
}
