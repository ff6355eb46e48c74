package search

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/execute"
)

// maxCheckedPods is up to how many pods that move it is tried whether their moves would begin: placing more takes too
// much of a search's time, and where so much is found something begins.
const maxCheckedPods = 256

// checkBegin asks of what was found what will be asked when it is to begin, if it might be that nothing of it does: the
// same would else be found again and again. It returns the moves that are left, and why the nodes of the others stay.
//
// The places of pods that have no rules are taken over as they were found, and something begins in any case. Pods with
// rules are placed once more, all of them together, and a placement may come to something dearer. Pods that have no
// place now are no matter of the moves: others look after them.
func (sr *searcher) checkBegin(moves []disrupt.Move) (left []disrupt.Move, blocked []disrupt.BlockedNode) {
	if len(moves) == 0 || surelyBegins(sr.s, moves) {
		return moves, nil
	}
	no := execute.TryBegin(sr.s, sr.set, sr.emptyNodes, moves)
	for i := range moves {
		m := &moves[i]
		stay := no[m]
		if stay == nil {
			left = append(left, *m)
			continue
		}
		for _, name := range m.Claims {
			one := *stay
			one.Claim, one.Node = name, sr.s.NodeOf(name).Name
			blocked = append(blocked, one)
		}
	}
	return left, blocked
}

// surelyBegins reports whether something of what was found is sure to begin, or if too much was found to ask, or too
// much is going on.
func surelyBegins(s *cluster.Snapshot, moves []disrupt.Move) bool {
	pods := 0
	for i := range moves {
		pods += moves[i].Evicted
		if hasCertainPlaces(s, &moves[i]) {
			return true
		}
	}
	return pods > maxCheckedPods || disrupt.AnyMoveBeginning(s) ||
		slices.ContainsFunc(s.Claims, func(c *cluster.Claim) bool { return c.Move != "" })
}

// hasCertainPlaces reports whether the places of a move's pods will be taken over as they were found.
func hasCertainPlaces(s *cluster.Snapshot, m *disrupt.Move) bool {
	for i := range m.Bins {
		if p := m.Bins[i].Pool; p.Limits.Any() || p.Probing {
			return false
		}
	}
	for _, name := range m.Claims {
		if slices.ContainsFunc(s.PodsOn(s.NodeOf(name).Name), func(p *cluster.Pod) bool {
			return s.NeedsNewPlace(p) && p.IsTied()
		}) {
			return false
		}
	}
	return true
}
