package disrupt

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

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
			nodes := []Candidate{UnhealthyCandidate(s, c, n, p)}
			result.addDryRun(MoveOf(RepairMoveID(c), command.Unhealthy, nodes), nodes)
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
