package empty

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// reopenStatic takes down what is left of fences in a static pool. Its nodes are only ever fenced for a move, whatever
// they carry: a fence of ours without one is left from two replicas that have put it up and taken it down at the same
// time, and nobody follows it.
func reopenStatic(s *cluster.Snapshot, p *cluster.Pool, result *disrupt.Result) {
	for _, c := range s.ClaimsOf(p.Name) {
		n := s.NodeOf(c.Name)
		if n == nil || c.Move != "" || !c.Deleting.IsZero() || !n.Deleting.IsZero() ||
			disrupt.HasCommandUnderWay(s, c, n) {
			continue
		}
		if disrupt.Fenced(c, n) || disrupt.IsHalfUnfenced(c, n) {
			result.Commands = append(result.Commands, command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name})
		}
	}
}
