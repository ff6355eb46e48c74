package disrupt

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// reopenStatic takes down what is left of fences in a static pool. Its nodes are only ever fenced for a move, whatever
// they carry: a fence of ours without one is left from two replicas that have put it up and taken it down at the same
// time, and nobody follows it.
func reopenStatic(s *cluster.Snapshot, p *cluster.Pool, result *Result) {
	for _, c := range s.ClaimsOf(p.Name) {
		n := s.NodeOf(c.Name)
		if n == nil || c.Move != "" || !c.Deleting.IsZero() || !n.Deleting.IsZero() || hasCommandUnderWay(s, c, n) {
			continue
		}
		if Fenced(c, n) || isHalfUnfenced(c, n) {
			result.Commands = append(result.Commands, command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name})
		}
	}
}
