package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
)

// revalidator asks again whether moves may go on.
type revalidator struct {
	*frame
	*fences
}

// revalidate gives up the moves that people, pods or pools no longer allow.
func (rv *revalidator) revalidate() {
	for _, m := range rv.Moves {
		excluded := make(map[int]disrupt.BlockReason)
		for i := range m.Nodes {
			if reason := rv.revalidateNode(m, &m.Nodes[i]); reason != "" {
				excluded[i] = reason
			}
		}
		rv.excludeNodes(m, excluded, false)
	}
}

// revalidateNode asks about one node of a move, and says why it may no longer go.
func (rv *revalidator) revalidateNode(m *destination.Move, c *disrupt.Candidate) disrupt.BlockReason {
	if reason := rv.reasonGone(m, c); reason != "" {
		return reason
	}
	still, blocked := rv.eligibility.MayStillDisrupt(c.Claim, m.Reason)
	if blocked == nil {
		*c = still
		return ""
	}
	disrupt.FillEstimates(rv.s, c)
	forced := m.Reason == command.Unhealthy && rv.health.HasForcedEnd(c.Claim)
	switch blocked.Reason {
	case disrupt.PDBBlocks: // another node that is being drained may have used it up for the moment
		if forced {
			return ""
		}
		if pdbNeverAllows(rv.s, c.Node) {
			return blocked.Reason
		}
		m.Waiting = true
		return ""
	case disrupt.PodDoNotDisrupt, disrupt.SeveralPDBs:
		if forced { // there is a time after which they are not asked
			return ""
		}
	case disrupt.PodsExpected:
		if !disrupt.SavesMoney(m.Reason) { // they come and then are moved like the others
			if m.Reason != command.Unhealthy {
				m.Waiting = true
			}
			return ""
		}
	}
	return blocked.Reason
}

// reasonGone says why the reason for which the node was to go no longer holds, if it does not.
func (rv *revalidator) reasonGone(m *destination.Move, c *disrupt.Candidate) disrupt.BlockReason {
	switch p := c.Pool; {
	case p == nil || p.Deleting:
		return disrupt.PoolUnknown
	case p.Overrides.DryRun:
		return disrupt.DryRun
	case disrupt.SavesMoney(m.Reason) && rv.neededHosts[c.Node.Name]:
		return disrupt.PodsExpected
	case p.Static && !rv.input.Static:
		return disrupt.PoolUnknown
	}
	switch m.Reason {
	case command.Underutilized, command.Empty:
		return ""
	case command.Drifted:
		if how, known := drift.Find(rv.s, c.Claim); known && how == "" {
			return disrupt.NoLongerDue
		}
	case command.Expired:
		if at, soft := drift.SoftExpiryTime(c.Pool, c.Claim); !soft || rv.s.Now.Before(at) {
			return disrupt.NoLongerDue
		}
	case command.Unhealthy:
		if _, unhealthy := rv.health.Unhealthy(c.Claim); !unhealthy {
			return disrupt.NoLongerDue
		}
		if rv.health.TooManyUnhealthy(c.Claim.Pool) {
			return disrupt.ManyUnhealthy
		}
	default:
		return disrupt.NoLongerDue
	}
	return ""
}

// pdbNeverAllows reports whether a disruption budget of some pod of the node wants all its pods.
func pdbNeverAllows(s *cluster.Snapshot, n *cluster.Node) bool {
	return slices.ContainsFunc(s.PodsOn(n.Name), func(p *cluster.Pod) bool {
		return p.NeedsNewPlace() && !p.StaysThroughDrain && slices.ContainsFunc(s.PDBsOf(p),
			(*cluster.PDB).NeverAllows)
	})
}

// fitBudgets takes nodes out of moves that a budget no longer covers, those of the youngest first, and has those wait
// that it covers only when nodes are back that are out for other reasons.
func (rv *revalidator) fitBudgets() {
	for _, m := range rv.Moves {
		if m.GiveUpReason != "" {
			rv.returnBudgets(m)
		}
	}
	fenced := make(map[disrupt.BudgetKey]int)
	for _, m := range rv.Moves {
		if m.GiveUpReason != "" {
			continue
		}
		for i := range m.Nodes {
			fenced[disrupt.BudgetKey{Pool: m.Nodes[i].Pool, Reason: m.Reason}]++
		}
	}
	for _, m := range slices.Backward(rv.Moves) {
		if m.GiveUpReason != "" {
			continue
		}
		excluded := make(map[int]disrupt.BlockReason)
		for i := range slices.Backward(m.Nodes) {
			c := &m.Nodes[i]
			if p := (disrupt.BudgetKey{Pool: c.Pool, Reason: m.Reason}); fenced[p] > rv.budgets.Allowed(c.Pool.Name,
				m.Reason) {
				fenced[p]--
				excluded[i] = disrupt.BudgetBlocks
				rv.returnBudget(c)
			}
		}
		rv.excludeNodes(m, excluded, false)
	}
}

// returnBudgets returns the nodes of a move that was given up to their budgets.
func (rv *revalidator) returnBudgets(m *destination.Move) {
	for i := range m.Nodes {
		rv.returnBudget(&m.Nodes[i])
	}
}

// returnBudget returns a node to its budget.
func (rv *revalidator) returnBudget(c *disrupt.Candidate) {
	if disrupt.HasFence(c.Node) && c.Node.Ready && c.Claim.Is(cluster.Initialized) {
		rv.budgets.Return(c.Claim.Pool, 1)
	}
}
