package empty

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// ReopenQuarantined opens the nodes again that were about to go and that the planner leaves alone because it has failed
// on them or their pods; with all, every node: nobody is there who could verify that they may go. Otherwise their
// fences would stay up for hours, and pods are sent to such nodes, because they are opened for whoever needs them. Sick
// nodes stay fenced, and interrupted ones are not its business.
func ReopenQuarantined(s *cluster.Snapshot, all bool) disrupt.Result {
	var result disrupt.Result
	if !all && !s.Quarantine.HasPodsOrClaims() {
		return result
	}
	still, moves := disrupt.QuarantinedMoves(s), make(map[string]int)
	for _, c := range s.Claims {
		n, reason := s.NodeOf(c.Name), disrupt.MoveReason(c.Move)
		switch {
		case n == nil || disrupt.LeavesInterrupted(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() ||
			disrupt.HasCommandUnderWay(s, c, n):
			continue
		case !all && !still[c.Move] && !s.IsLeftAlone(c):
			continue
		case c.Move == "" && !disrupt.Fenced(c, n) && !disrupt.IsHalfUnfenced(c, n):
			continue
		case reason == command.Unhealthy || reason == command.Interrupted:
			continue
		}
		cmd := command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name, BlockReason: string(disrupt.PlannerFails)}
		// a replica whose planner does not fail would fence it again at once
		cmd.RestUntil, cmd.Rests = disrupt.RestOf(c, s.Now)
		result.Commands = append(result.Commands, cmd)
		if c.Move == "" {
			continue
		}
		at, known := moves[c.Move]
		if !known {
			at = len(result.GivenUp)
			moves[c.Move] = at
			result.GivenUp = append(result.GivenUp, disrupt.GivenUp{ID: c.Move, Reason: reason,
				BlockReason: disrupt.PlannerFails})
		}
		result.GivenUp[at].Claims = append(result.GivenUp[at].Claims, c.Name)
	}
	return result
}
