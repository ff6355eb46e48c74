package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
)

// gathered are the moves that are under way.
type gathered struct {
	s     *cluster.Snapshot
	moves []*destination.Move
	// excluded are nodes that stay although their moves go on; going are nodes whose deletion has been asked for.
	excluded []excludedNode
	going    []string
}

// gather finds the moves that are under way.
func (ex *executor) gather() {
	found := gatherActive(ex.s)
	ex.Moves, ex.excluded, ex.fencePending = found.moves, found.excluded, disrupt.AnyMoveBeginning(ex.s)
	for _, name := range found.going {
		ex.RemovedNodes[name] = true
	}
}

// gatherActive finds the moves that are under way. One that touches what the planner has failed on is left to
// ReopenQuarantined.
func gatherActive(s *cluster.Snapshot) *gathered {
	out := &gathered{s: s}
	byID, still := make(map[string]*destination.Move), disrupt.QuarantinedMoves(s)
	for _, c := range s.Claims {
		if c.Move == "" || c.Expected || disrupt.LeavesInterrupted(c) || still[c.Move] {
			continue
		}
		m := byID[c.Move]
		if m == nil {
			m = &destination.Move{ID: c.Move, Reason: disrupt.MoveReason(c.Move)}
			byID[c.Move] = m
			out.moves = append(out.moves, m)
		}
		out.addClaim(m, c)
	}
	out.moves = slices.DeleteFunc(out.moves, func(m *destination.Move) bool { return len(m.Nodes) == 0 })
	slices.SortFunc(out.moves, destination.CompareMoves)
	return out
}

// addClaim adds a claim to its move.
func (ga *gathered) addClaim(m *destination.Move, c *cluster.Claim) {
	s, n := ga.s, ga.s.NodeOf(c.Name)
	switch {
	case n == nil || !c.Deleting.IsZero() || !n.Deleting.IsZero():
		ga.noteLeaving(m, c, n)
		return
	case s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()]:
		ga.noteLeaving(m, c, n)
		ga.going = append(ga.going, n.Name)
		return
	case s.InFlight[command.Unfence{Node: n.Name}.Key()]:
		m.ChangePending = true // it comes back
		return
	}
	if _, failed := s.Retry[command.Unfence{Node: n.Name}.Key()]; failed {
		// it was to come back, which did not work out at once
		ga.excluded = append(ga.excluded, excludedNode{m, disrupt.Candidate{Claim: c, Node: n, Pool: s.Pool(c.Pool)},
			disrupt.BeingDisrupted, true})
		return
	}
	fenced := disrupt.HasFence(n) && c.Is(cluster.DisruptionReason)
	_, failed := s.Retry[command.Fence{Node: n.Name}.Key()]
	switch {
	case s.InFlight[command.Fence{Node: n.Name}.Key()]:
		m.ChangePending = true
	case fenced:
	case failed:
		m.Unfenced = append(m.Unfenced, len(m.Nodes))
	default:
		// the fence was put up in part only, or somebody takes it down again and again
		m.GiveUp(disrupt.BeingDisrupted, true)
	}
	since := c.Condition(cluster.DisruptionReason).Since
	if since.IsZero() {
		since = s.Now
	}
	m.FencedAt = cluster.Earlier(m.FencedAt, since)
	p := s.Pool(c.Pool)
	if p != nil && p.Static {
		m.IsStatic = true
	}
	m.Nodes = append(m.Nodes, disrupt.Candidate{Claim: c, Node: n, Pool: p})
}

// noteLeaving remembers a node of the move that is on its way out: what it cost belongs to what the move saves.
func (ga *gathered) noteLeaving(m *destination.Move, c *cluster.Claim, n *cluster.Node) {
	if p := ga.s.Pool(c.Pool); p != nil {
		price, _ := saving.ReplacementPrice(ga.s, c)
		m.Leaving = append(m.Leaving, disrupt.Candidate{Claim: c, Node: n, Pool: p, Price: price})
	}
}
