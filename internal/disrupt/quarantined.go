package disrupt

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// ReopenQuarantined opens the nodes again that were about to go and that the planner leaves alone because it has failed
// on them or their pods; with all, every node: nobody is there who could verify that they may go. Otherwise their
// fences would stay up for hours, and pods are sent to such nodes, because they are opened for whoever needs them. Sick
// nodes stay fenced, and interrupted ones are not its business.
func ReopenQuarantined(s *cluster.Snapshot, all bool) Result {
	var result Result
	if !all && !s.Quarantine.HasPodsOrClaims() {
		return result
	}
	still, moves := quarantinedMoves(s), make(map[string]int)
	for _, c := range s.Claims {
		n, reason := s.NodeOf(c.Name), MoveReason(c.Move)
		switch {
		case n == nil || leavesInterrupted(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() ||
			hasCommandUnderWay(s, c, n):
			continue
		case !all && !still[c.Move] && !s.IsLeftAlone(c):
			continue
		case c.Move == "" && !Fenced(c, n) && !isHalfUnfenced(c, n):
			continue
		case reason == command.Unhealthy || reason == command.Interrupted:
			continue
		}
		cmd := command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name, BlockReason: string(PlannerFails)}
		// a replica whose planner does not fail would fence it again at once
		cmd.RestUntil, cmd.Rests = restOf(c, s.Now)
		result.Commands = append(result.Commands, cmd)
		if c.Move == "" {
			continue
		}
		at, known := moves[c.Move]
		if !known {
			at = len(result.GivenUp)
			moves[c.Move] = at
			result.GivenUp = append(result.GivenUp, GivenUp{ID: c.Move, Reason: reason, BlockReason: PlannerFails})
		}
		result.GivenUp[at].Claims = append(result.GivenUp[at].Claims, c.Name)
	}
	return result
}
