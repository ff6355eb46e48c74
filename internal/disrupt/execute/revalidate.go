package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
)

// revalidate gives up the moves that people, pods or pools no longer allow.
func (ex *executor) revalidate() {
	ex.findUnhealthy()
	for _, m := range ex.moves {
		excluded := make(map[int]disrupt.BlockReason)
		for i := range m.nodes {
			if reason := ex.revalidateNode(m, &m.nodes[i]); reason != "" {
				excluded[i] = reason
			}
		}
		ex.excludeNodes(m, excluded, false)
	}
}

// revalidateNode asks about one node of a move, and says why it may no longer go.
func (ex *executor) revalidateNode(m *activeMove, c *disrupt.Candidate) disrupt.BlockReason {
	if reason := ex.reasonGone(m, c); reason != "" {
		return reason
	}
	still, blocked := ex.eligibility.MayStillDisrupt(c.Claim, m.reason)
	if blocked == nil {
		*c = still
		return ""
	}
	disrupt.FillEstimates(ex.s, c)
	forced := m.reason == command.Unhealthy && ex.health.HasForcedEnd(c.Claim)
	switch blocked.Reason {
	case disrupt.PDBBlocks: // another node that is being drained may have used it up for the moment
		if forced {
			return ""
		}
		if ex.pdbNeverAllows(c.Node) {
			return blocked.Reason
		}
		m.waiting = true
		return ""
	case disrupt.PodDoNotDisrupt, disrupt.SeveralPDBs:
		if forced { // there is a time after which they are not asked
			return ""
		}
	case disrupt.PodsExpected:
		if !disrupt.SavesMoney(m.reason) { // they come and then are moved like the others
			if m.reason != command.Unhealthy {
				m.waiting = true
			}
			return ""
		}
	}
	return blocked.Reason
}

// reasonGone says why the reason for which the node was to go no longer holds, if it does not.
func (ex *executor) reasonGone(m *activeMove, c *disrupt.Candidate) disrupt.BlockReason {
	switch p := c.Pool; {
	case p == nil || p.Deleting:
		return disrupt.PoolUnknown
	case p.Overrides.DryRun:
		return disrupt.DryRun
	case disrupt.SavesMoney(m.reason) && ex.neededHosts[c.Node.Name]:
		return disrupt.PodsExpected
	case p.Static && !ex.input.Static:
		return disrupt.PoolUnknown
	}
	switch m.reason {
	case command.Underutilized, command.Empty:
		return ""
	case command.Drifted:
		if how, known := drift.Find(ex.s, c.Claim); known && how == "" {
			return disrupt.NoLongerDue
		}
	case command.Expired:
		if at, soft := drift.SoftExpiryTime(c.Pool, c.Claim); !soft || ex.s.Now.Before(at) {
			return disrupt.NoLongerDue
		}
	case command.Unhealthy:
		if _, unhealthy := ex.unhealthy[c.Claim.Name]; !unhealthy {
			return disrupt.NoLongerDue
		}
		if ex.health.TooManyUnhealthy(c.Claim.Pool) {
			return disrupt.ManyUnhealthy
		}
	default:
		return disrupt.NoLongerDue
	}
	return ""
}

// pdbNeverAllows reports whether a disruption budget of some pod of the node wants all its pods.
func (ex *executor) pdbNeverAllows(n *cluster.Node) bool {
	return slices.ContainsFunc(ex.s.PodsOn(n.Name), func(p *cluster.Pod) bool {
		return p.NeedsNewPlace() && !p.StaysThroughDrain && slices.ContainsFunc(ex.s.PDBsOf(p),
			(*cluster.PDB).NeverAllows)
	})
}

// fitBudgets takes nodes out of moves that a budget no longer covers, those of the youngest first, and has those wait
// that it covers only when nodes are back that are out for other reasons.
func (ex *executor) fitBudgets() {
	for _, m := range ex.moves {
		if m.giveUpReason != "" {
			ex.returnBudgets(m)
		}
	}
	fenced := make(map[budgetKey]int)
	for _, m := range ex.moves {
		if m.giveUpReason != "" {
			continue
		}
		for i := range m.nodes {
			fenced[budgetKey{m.nodes[i].Pool, m.reason}]++
		}
	}
	for _, m := range slices.Backward(ex.moves) {
		if m.giveUpReason != "" {
			continue
		}
		excluded := make(map[int]disrupt.BlockReason)
		for i := range slices.Backward(m.nodes) {
			c := &m.nodes[i]
			if p := (budgetKey{c.Pool, m.reason}); fenced[p] > ex.allowedUnavailable(c.Pool, m.reason) {
				fenced[p]--
				excluded[i] = disrupt.BudgetBlocks
				ex.returnBudget(c)
			}
		}
		ex.excludeNodes(m, excluded, false)
	}
}

// budgetKey is what a pool's budgets allow for a reason.
type budgetKey struct {
	pool   *cluster.Pool
	reason command.Reason
}

// allowedUnavailable is how many of the pool's nodes may be out at the same time for the reason.
func (ex *executor) allowedUnavailable(p *cluster.Pool, reason command.Reason) int {
	return ex.budgets.Allowed(p.Name, reason)
}

// returnBudgets returns the nodes of a move that was given up to their budgets.
func (ex *executor) returnBudgets(m *activeMove) {
	for i := range m.nodes {
		ex.returnBudget(&m.nodes[i])
	}
}

// returnBudget returns a node to its budget.
func (ex *executor) returnBudget(c *disrupt.Candidate) {
	if disrupt.HasFence(c.Node) && c.Node.Ready && c.Claim.Is(cluster.Initialized) {
		ex.budgets.Return(c.Claim.Pool, 1)
	}
}

// budgetsAllow reports whether the budgets let the nodes of a move go now, and takes them if so. What is only fenced
// does not count: it has not gone yet. A node that is unhealthy does not count against others that are.
func (ex *executor) budgetsAllow(moves ...*activeMove) bool {
	going := make(map[budgetKey]int)
	for _, m := range moves {
		for i := range m.nodes {
			going[budgetKey{m.nodes[i].Pool, m.reason}]++
		}
	}
	for p, n := range going {
		if ex.unavailableNow(p.pool, p.reason)+n > ex.allowedUnavailable(p.pool, p.reason) {
			return false
		}
	}
	for _, m := range moves {
		for i := range m.nodes {
			ex.countDeparted(&m.nodes[i])
		}
	}
	return true
}

// countDeparted counts a node as gone.
func (ex *executor) countDeparted(c *disrupt.Candidate) {
	for _, reason := range append(disrupt.BudgetReasons(), command.Expired) {
		p := budgetKey{c.Pool, reason}
		if n, counted := ex.unavailable[p]; counted && !ex.isUnavailable(c.Claim, reason) {
			ex.unavailable[p] = n + 1
		}
	}
	ex.deletedClaims[c.Claim.Name] = true
}

// unavailableNow is how many of the pool's nodes are out and not just fenced by us. They are counted once; whoever goes
// after that is added.
func (ex *executor) unavailableNow(p *cluster.Pool, reason command.Reason) int {
	key := budgetKey{p, reason}
	if n, counted := ex.unavailable[key]; counted {
		return n
	}
	out := 0
	for _, c := range ex.s.ClaimsOf(p.Name) {
		if ex.isUnavailable(c, reason) {
			out++
		}
	}
	ex.unavailable[key] = out
	return out
}

// isUnavailable reports whether a claim's node is out and not just fenced by us.
func (ex *executor) isUnavailable(c *cluster.Claim, reason command.Reason) bool {
	if !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
		return false
	}
	n := ex.s.NodeOf(c.Name)
	switch {
	case ex.deletedClaims[c.Name], n == nil, !c.Deleting.IsZero(), !n.Deleting.IsZero():
		return true
	case len(ex.s.InFlight) > 0 && ex.s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()]:
		return true
	case !n.Ready:
		return reason != command.Unhealthy && c.Move == ""
	}
	return disrupt.HasFence(n) && !c.Is(cluster.DisruptionReason)
}
