package disrupt

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

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

// Repair removes nodes that are beyond hope and that no move can be made for: those of no pool and, where the settings
// ask for it, all. What is wrong with many nodes of a pool at the same time, however briefly, is not wrong with the
// nodes: then none is touched.
func Repair(s *cluster.Snapshot, set RepairSettings) Result {
	var result Result
	if !set.Enabled || len(set.Policies) == 0 {
		return result
	}
	end := func(c *cluster.Claim, n *cluster.Node, condition unhealthyCondition) bool {
		if p := s.Pool(c.Pool); p != nil && p.Overrides.DryRun {
			m := unhealthyMove(s, c, n, p)
			result.addDryRun(m.describe(), m.nodes)
			return true
		}
		result.Commands = append(result.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: n.Name,
			Reason:   command.Unhealthy,
			Deadline: s.Now, Condition: condition.policy.Type, Message: condition.message(n)})
		return true
	}
	if set.Legacy {
		for _, p := range s.Pools {
			repairPool(s, s.ClaimsOf(p.Name), set, p, &result, end)
		}
	}
	repairPool(s, s.ClaimsOf(""), set, nil, &result, end)
	return result
}

// message says what ails the node.
func (u *unhealthyCondition) message(n *cluster.Node) string {
	return fmt.Sprintf("condition %s of node %s has been %s for %s or longer", u.policy.Type, n.Name, u.policy.Status,
		u.policy.Toleration)
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
		repairPool(ex.s, ex.s.ClaimsOf(p.Name), set, p, &ex.Result, func(c *cluster.Claim, n *cluster.Node,
			_ unhealthyCondition) bool {
			if ex.removedNodes[n.Name] {
				return false
			}
			if p.Static && !ex.input.Static {
				ex.Notes = append(ex.Notes, repairBlockedNotes(ex.s, c, n, fmt.Sprintf("NodePool %s is static and "+
					"the feature gate StaticCapacity is off: nothing would take the node's place", p.Name))...)
				return false
			}
			if ex.s.Now.Before(c.RestUntil) {
				ex.wake(c.RestUntil)
				return false
			}
			if reason := ex.blockingPod(c); reason != "" {
				ex.Notes = append(ex.Notes, repairBlockedNotes(ex.s, c, n, reason)...)
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
	m := unhealthyMove(ex.s, c, n, p)
	if p.Overrides.DryRun {
		ex.addDryRun(m.describe(), m.nodes)
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

// unhealthyMove is the move of an unhealthy node.
func unhealthyMove(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, p *cluster.Pool) *activeMove {
	m := &activeMove{id: MoveID(command.Unhealthy, []string{ClaimIdentity(c)}), reason: command.Unhealthy,
		isStatic: p.Static,
		nodes:    []Candidate{{Claim: c, Node: n, Pool: p, Cost: nodeCost}}}
	fillEstimates(s, &m.nodes[0])
	return m
}

// findUnhealthy finds the nodes that are beyond hope, by claim.
func (ex *executor) findUnhealthy() {
	ex.unhealthy = make(map[string]unhealthyCondition)
	if !ex.input.Repair.Enabled {
		return
	}
	for _, c := range ex.s.Claims {
		if condition, unhealthy := needsRepair(ex.s, ex.input.Repair, c); unhealthy {
			ex.unhealthy[c.Name] = condition
		}
	}
}

// needsRepair reports whether a claim's node is so ill, and has been for so long, that it is to be replaced, and nobody
// has asked to leave it alone.
func needsRepair(s *cluster.Snapshot, set RepairSettings, c *cluster.Claim) (unhealthyCondition, bool) {
	n := s.NodeOf(c.Name)
	if n == nil || n.DoNotRepair || c.DoNotRepair {
		return unhealthyCondition{}, false
	}
	condition, unhealthy := worstCondition(n, set.Policies)
	return condition, unhealthy && !s.Now.Before(condition.dueAt())
}

// unhealthyCondition is what ails a node, and when that has been tolerated for long enough.
type unhealthyCondition struct {
	policy RepairPolicy
	since  time.Time
}

func (u *unhealthyCondition) dueAt() time.Time { return u.since.Add(u.policy.Toleration) }

// countForRepair counts the nodes of claims and those of them that are on their way out. Nodes that are not ready don't
// use up the budget for repairs, as they would for other reasons: they are those that it is for.
func countForRepair(s *cluster.Snapshot, claims []*cluster.Claim) (total, leaving int) {
	for _, c := range claims {
		n := s.NodeOf(c.Name)
		if !countsForRepair(c, n) {
			continue
		}
		total++
		if !c.Deleting.IsZero() || !n.Deleting.IsZero() || hasFence(n) || hasCommandUnderWay(s, c, n) {
			leaving++
		}
	}
	return total, leaving
}

// countsForRepair reports whether a node counts among those that may fall unhealthy. One whose machine is being ended
// does not, as with all other budgets: that nobody hears from it any more is no illness.
func countsForRepair(c *cluster.Claim, n *cluster.Node) bool {
	return n != nil && c.Is(cluster.Registered) && !c.Is(cluster.InstanceTerminating)
}

// repairPool looks after the nodes of a pool, or those without one (p is nil).
func repairPool(s *cluster.Snapshot, claims []*cluster.Claim, set RepairSettings, p *cluster.Pool, result *Result,
	begin func(*cluster.Claim, *cluster.Node, unhealthyCondition) bool) {
	group := "all standalone NodeClaims"
	total, leaving := countForRepair(s, claims)
	unhealthy := make(map[string]unhealthyCondition)
	for _, c := range claims {
		if n := s.NodeOf(c.Name); countsForRepair(c, n) {
			if condition, is := worstCondition(n, set.Policies); is {
				unhealthy[c.Name] = condition
			}
		}
	}
	allowed, left := set.tolerated(total), total
	if p != nil {
		group, left = "NodePool "+p.Name, newPoolBudget(s, p).limitFor(command.Unhealthy).allowed-leaving
	}
	for _, c := range claims {
		condition, is := unhealthy[c.Name]
		n := s.NodeOf(c.Name)
		if !is || s.IsLeftAlone(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() || n.DoNotRepair || c.DoNotRepair ||
			c.Move != "" && !set.Legacy {
			continue
		}
		if s.Now.Before(condition.dueAt()) {
			result.WakeAt = cluster.Earlier(result.WakeAt, condition.dueAt())
			continue
		}
		if len(unhealthy) > allowed {
			result.Notes = append(result.Notes, repairBlockedNotes(s, c, n, fmt.Sprintf("%d of the %d nodes of %s "+
				"are unhealthy, more than %d%%: the cause is not this node",
				len(unhealthy), total, group, set.MaxUnhealthy))...)
			continue
		}
		if left <= 0 {
			result.PlanSoon = result.PlanSoon || left+leaving > 0
			result.Notes = append(result.Notes, repairBlockedNotes(s, c, n, fmt.Sprintf("the disruption budgets of "+
				"%s allow no more nodes to be replaced now", group))...)
			continue
		}
		if begin(c, n, condition) {
			left--
		}
	}
}

// repairBlockedNotes tells node, claim and pool why a node is not replaced.
func repairBlockedNotes(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, reason string) []cluster.Note {
	notes := []cluster.Note{n.Note("NodeRepairBlocked", reason), c.Note("NodeRepairBlocked", reason)}
	if p := s.Pool(c.Pool); p != nil {
		notes = append(notes, p.Note("NodeRepairBlocked", reason))
	}
	for i := range notes {
		notes[i].Warning = true
	}
	return notes
}

// worstCondition finds the illness of a node that has been tolerated first.
func worstCondition(n *cluster.Node, policies []RepairPolicy) (worst unhealthyCondition, unhealthy bool) {
	for _, policy := range policies {
		for _, cond := range n.Conditions {
			if cond.Type != policy.Type || cond.Status != policy.Status {
				continue
			}
			if condition := (unhealthyCondition{policy, cond.Since}); !unhealthy ||
				condition.dueAt().Before(worst.dueAt()) {
				worst, unhealthy = condition, true
			}
		}
	}
	return worst, unhealthy
}
