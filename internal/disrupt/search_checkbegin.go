package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// maxCheckedPods is up to how many pods that move it is tried whether their moves would begin: placing more takes
	// too much of a search's time, and where so much is found something begins.
	maxCheckedPods = 256
	// maxTriedAlone is how many moves are tried alone if nothing of them begins together.
	maxTriedAlone = 8
)

// checkBegin asks of what was found what will be asked when it is to begin, if it might be that nothing of it does: the
// same would else be found again and again. It returns the moves that are left, and why the nodes of the others stay.
//
// The places of pods that have no rules are taken over as they were found, and something begins in any case. Pods with
// rules are placed once more, all of them together, and a placement may come to something dearer. Pods that have no
// place now are no matter of the moves: others look after them.
func (sr *searcher) checkBegin(moves []Move) (left []Move, blocked []BlockedNode) {
	if len(moves) == 0 || sr.surelyBegins(moves) {
		return moves, nil
	}
	x := newExecutor(sr.s, sr.set, ExecuteInput{Placement: placementOfPending(sr.s)})
	for name := range sr.emptyNodes {
		x.removedNodes[name] = true
	}
	t := x.beginCertain(moves)
	if len(t.active) == 0 || len(x.Begun) > 0 {
		return moves, nil
	}
	no := x.blockedUncertain(t)
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
func (sr *searcher) surelyBegins(moves []Move) bool {
	pods := 0
	for i := range moves {
		pods += moves[i].Evicted
		if sr.hasCertainPlaces(&moves[i]) {
			return true
		}
	}
	return pods > maxCheckedPods || anyMoveBeginning(sr.s) ||
		slices.ContainsFunc(sr.s.Claims, func(c *cluster.Claim) bool { return c.Move != "" })
}

// hasCertainPlaces reports whether the places of a move's pods will be taken over as they were found.
func (sr *searcher) hasCertainPlaces(m *Move) bool {
	for i := range m.Bins {
		if p := m.Bins[i].Pool; p.Limits.Any() || p.Probing {
			return false
		}
	}
	for _, name := range m.Claims {
		if slices.ContainsFunc(sr.s.PodsOn(sr.s.NodeOf(name).Name), func(p *cluster.Pod) bool {
			return sr.s.NeedsNewPlace(p) && !hasNoRules(p)
		}) {
			return false
		}
	}
	return true
}

// blockedUncertain says of the uncertain moves why they may not begin; nothing if some may. If none may together with
// the others, they are tried alone, and the first that may then is kept: the others come after it.
func (ex *executor) blockedUncertain(t *uncertainMoves) map[*Move]*BlockedNode {
	no := make(map[*Move]*BlockedNode)
	for _, r := range ex.decideLinked(t, t.active) {
		if r.blocked == nil {
			return nil
		}
		for _, m := range r.proposals {
			no[m] = r.blocked
		}
	}
	if len(t.active) == 1 {
		return no
	}
	for n, am := range t.active[:min(len(t.active), maxTriedAlone)] {
		ex.letOnly(t, am)
		m := t.proposed[am]
		if no[m] = ex.decideLinked(t, t.active[n:n+1])[0].blocked; no[m] != nil {
			continue
		}
		for _, later := range t.active[n+1:] {
			no[t.proposed[later]] = &BlockedNode{Reason: OthersFirst}
		}
		break
	}
	return no
}

// letOnly lets one of the uncertain moves go and has the others stay.
func (ex *executor) letOnly(t *uncertainMoves, only *activeMove) {
	clear(ex.otherPodsHosts)
	for _, m := range t.active {
		for i := range m.nodes {
			if name := m.nodes[i].Node.Name; m == only {
				ex.removedNodes[name] = true
			} else {
				delete(ex.removedNodes, name)
			}
		}
	}
}
