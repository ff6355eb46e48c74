package execute

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/disrupt/repair"
	"github.com/tenon-sh/tenon/internal/reason"
)

// requiredQueue lines up moves that have to be.
type requiredQueue struct{ *frame }

// beginRequired begins the replacement of nodes that have to go: those that are unhealthy, have drifted, or come near
// the end of their life.
func (rq *requiredQueue) beginRequired() {
	rq.beginRepairs()
	due, wake := drift.Drifted(rq.s, rq.set, rq.eligibility, rq.RemovedNodes, rq.input.Static)
	rq.Wake(wake)
	rq.begin(due)
	due, wake = drift.Expiring(rq.s, rq.eligibility, rq.RemovedNodes)
	rq.Wake(wake)
	rq.begin(due)
}

// beginRepairs begins the replacement of unhealthy nodes. They go like the others, when what takes their place is up.
// Then their pods have the time that the policy or the node gives them; where neither does, a pod may keep its node.
func (rq *requiredQueue) beginRepairs() {
	set := rq.input.Repair
	if !set.Enabled || len(set.Policies) == 0 || set.Legacy {
		return
	}
	for _, p := range rq.s.Pools {
		if p.Deleting {
			continue
		}
		repair.CheckPool(rq.s, rq.s.ClaimsOf(p.Name), set, p, rq.Result, func(c *cluster.Claim, n *cluster.Node,
			_ disrupt.UnhealthyCondition) bool {
			if rq.RemovedNodes[n.Name] {
				return false
			}
			if p.Static && !rq.input.Static {
				rq.Notes = append(rq.Notes, repair.BlockedNotes(rq.s, c, n, reason.Of(reason.RepairStaticOff,
					p.Name))...)
				return false
			}
			if rq.s.Now.Before(c.RestUntil) {
				rq.Wake(c.RestUntil)
				return false
			}
			if pod := rq.blockingPod(c); !pod.IsZero() {
				rq.Notes = append(rq.Notes, repair.BlockedNotes(rq.s, c, n, pod)...)
				return false
			}
			return rq.queueRepair(c, n, p)
		})
	}
}

// blockingPod says which pod keeps an unhealthy node that has no time after which nobody is asked; empty if none does.
func (rq *requiredQueue) blockingPod(c *cluster.Claim) reason.Text {
	if rq.health.HasForcedEnd(c) {
		return reason.Text{}
	}
	_, blocked := rq.eligibility.MayDisrupt(c, command.Unhealthy)
	if blocked == nil || !blocked.ByPod() {
		return reason.Text{}
	}
	rq.Wake(blocked.Until)
	return reason.Of(reason.RepairPodStays, blocked.Pod, blocked.Reason, c.Pool)
}

// queueRepair lines an unhealthy node up to be replaced. Its pool's budgets have been asked.
func (rq *requiredQueue) queueRepair(c *cluster.Claim, n *cluster.Node, p *cluster.Pool) bool {
	m := &destination.Move{ID: disrupt.RepairMoveID(c), Reason: command.Unhealthy, IsStatic: p.Static,
		Nodes: []disrupt.Candidate{disrupt.UnhealthyCandidate(rq.s, c, n, p)}}
	if p.Overrides.DryRun {
		rq.AddDryRun(m.Describe(), m.Nodes)
		return true
	}
	if n.Ready { // one that is not counts as out already
		m.BudgetReserved = true
		rq.budgets.Return(p.Name, -1)
	}
	rq.RemovedNodes[n.Name] = true
	rq.Moves = append(rq.Moves, m)
	return true
}

// begin begins the replacement of nodes that are due: as many of a pool at the same time as its budgets allow. As soon
// as one is gone the next begins.
func (rq *requiredQueue) begin(list []disrupt.Due) {
	for i := range list {
		p, nodes := list[i].Pool, list[i].Candidates
		if p.Static {
			nodes = nodes[:min(len(nodes), rq.freeStaticNodes(p))]
		}
		for _, c := range nodes {
			if !rq.queueRequired(c, list[i].Reason) {
				// nodes that are on their way out will make room in the budget
				rq.PlanSoon = rq.PlanSoon || rq.budgets.Allowed(p.Name, list[i].Reason) > 0
				break
			}
		}
	}
}

// queueRequired lines a node up to be replaced whatever it costs, if its pool's budgets allow it. It is fenced once it
// is known that its pods have somewhere to go.
func (rq *requiredQueue) queueRequired(c disrupt.Candidate, why command.Reason) bool {
	m := &destination.Move{ID: disrupt.MoveID(why, []string{disrupt.ClaimIdentity(c.Claim)}), Reason: why,
		Nodes:    []disrupt.Candidate{c},
		IsStatic: c.Pool.Static}
	if why == command.Drifted {
		m.ID = drift.MoveID(c.Claim)
	}
	if !rq.budgets.Reserve(c.Claim.Pool, why, 1) {
		return false
	}
	if c.Pool.Overrides.DryRun {
		rq.AddDryRun(m.Describe(), m.Nodes)
		return true
	}
	m.BudgetReserved, rq.RemovedNodes[c.Node.Name] = true, true
	rq.Moves = append(rq.Moves, m)
	return true
}
