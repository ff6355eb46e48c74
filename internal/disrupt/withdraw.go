package disrupt

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Withdraw opens the nodes again that were about to go and that the planner leaves alone because it has failed on them or their pods; with
// all, every node: nobody is there who could verify that they may go. Otherwise their fences would stay up for hours, and pods are sent to
// such nodes, because they are opened for whoever needs them. Sick nodes stay fenced, and interrupted ones are not its business.
func Withdraw(s *cluster.Snapshot, all bool) Result {
	var out Result
	if !all && !s.Quarantine.Holds() {
		return out
	}
	still, moves := standstill(s), make(map[string]int)
	for _, c := range s.Claims {
		n, reason := s.NodeOf(c.Name), ReasonOf(c.Move)
		switch {
		case n == nil || hurried(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() || underWay(s, c, n):
			continue
		case !all && !still[c.Move] && !s.LeftAlone(c):
			continue
		case c.Move == "" && !Fenced(c, n) && !halfOpen(c, n):
			continue
		case reason == command.Unhealthy || reason == command.Interrupted:
			continue
		}
		cmd := command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name, Why: string(PlannerFails)}
		cmd.RestUntil, cmd.Rests = restOf(c, s.Now) // a replica whose planner does not fail would fence it again at once
		out.Commands = append(out.Commands, cmd)
		if c.Move == "" {
			continue
		}
		at, known := moves[c.Move]
		if !known {
			at = len(out.GivenUp)
			moves[c.Move] = at
			out.GivenUp = append(out.GivenUp, GivenUp{ID: c.Move, Reason: reason, Why: PlannerFails})
		}
		out.GivenUp[at].Claims = append(out.GivenUp[at].Claims, c.Name)
	}
	return out
}
