package repair

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/reason"
)

// EndUnhealthy removes nodes that are beyond hope and that no move can be made for: those of no pool and, where the
// settings ask for it, all. What is wrong with many nodes of a pool at the same time, however briefly, is not wrong
// with the nodes: then none is touched.
func EndUnhealthy(s *cluster.Snapshot, set disrupt.RepairSettings) disrupt.Result {
	var result disrupt.Result
	if !set.Enabled || len(set.Policies) == 0 {
		return result
	}
	end := func(c *cluster.Claim, n *cluster.Node, condition disrupt.UnhealthyCondition) bool {
		if p := s.Pool(c.Pool); p != nil && p.Overrides.DryRun {
			nodes := []disrupt.Candidate{disrupt.UnhealthyCandidate(s, c, n, p)}
			result.AddDryRun(disrupt.MoveOf(disrupt.RepairMoveID(c), command.Unhealthy, nodes), nodes)
			return true
		}
		result.Commands = append(result.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: n.Name,
			Reason:   command.Unhealthy,
			Deadline: s.Now, Condition: condition.Policy.Type, Text: condition.Text(n)})
		return true
	}
	if set.Legacy {
		for _, p := range s.Pools {
			CheckPool(s, s.ClaimsOf(p.Name), set, p, &result, end)
		}
	}
	CheckPool(s, s.ClaimsOf(""), set, nil, &result, end)
	return result
}

// CheckPool looks after the nodes of a pool, or those without one (p is nil).
func CheckPool(s *cluster.Snapshot, claims []*cluster.Claim, set disrupt.RepairSettings, p *cluster.Pool,
	result *disrupt.Result,
	begin func(*cluster.Claim, *cluster.Node, disrupt.UnhealthyCondition) bool) {
	group := reason.Of(reason.StandaloneClaims)
	total, leaving := disrupt.CountForRepair(s, claims)
	unhealthy := make(map[string]disrupt.UnhealthyCondition)
	for _, c := range claims {
		if n := s.NodeOf(c.Name); disrupt.CountsForRepair(c, n) {
			if condition, is := disrupt.WorstCondition(n, set.Policies); is {
				unhealthy[c.Name] = condition
			}
		}
	}
	allowed, left := set.Tolerated(total), total
	if p != nil {
		most, _ := disrupt.AllowedAndUnavailable(s, p, string(command.Unhealthy))
		group, left = reason.Of(reason.PoolNamed, p.Name), most-leaving
	}
	for _, c := range claims {
		condition, is := unhealthy[c.Name]
		n := s.NodeOf(c.Name)
		if !is || s.IsLeftAlone(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() || n.DoNotRepair || c.DoNotRepair ||
			c.Move != "" && !set.Legacy {
			continue
		}
		if s.Now.Before(condition.DueAt()) {
			result.WakeAt = cluster.Earlier(result.WakeAt, condition.DueAt())
			continue
		}
		if len(unhealthy) > allowed {
			result.Notes = append(result.Notes, BlockedNotes(s, c, n, reason.Of(reason.ManyUnhealthy,
				len(unhealthy), total, group, set.MaxUnhealthy))...)
			continue
		}
		if left <= 0 {
			result.PlanSoon = result.PlanSoon || left+leaving > 0
			result.Notes = append(result.Notes, BlockedNotes(s, c, n, reason.Of(reason.RepairBudgets,
				group))...)
			continue
		}
		if begin(c, n, condition) {
			left--
		}
	}
}

// BlockedNotes tells node, claim and pool why a node is not replaced.
func BlockedNotes(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, text reason.Text) []cluster.Note {
	notes := []cluster.Note{n.Note("NodeRepairBlocked", text), c.Note("NodeRepairBlocked", text)}
	if p := s.Pool(c.Pool); p != nil {
		notes = append(notes, p.Note("NodeRepairBlocked", text))
	}
	for i := range notes {
		notes[i].Warning = true
	}
	return notes
}
