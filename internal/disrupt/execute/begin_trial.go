package execute

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
)

// maxTriedAlone is how many moves are tried alone if nothing of them begins together.
const maxTriedAlone = 8

// TryBegin says of moves that were found why they may not begin, if removed nodes go by themselves; nothing if some of
// them may.
func TryBegin(s *cluster.Snapshot, set disrupt.Settings, removed map[string]bool,
	moves []disrupt.Move) map[*disrupt.Move]*disrupt.BlockedNode {
	x := newExecutor(s, set, Input{Placement: destination.PlacementOfPending(s)})
	for name := range removed {
		x.RemovedNodes[name] = true
	}
	t := x.beginCertain(moves)
	if len(t.active) == 0 || len(x.Begun) > 0 {
		return nil
	}
	return x.blockedUncertain(t)
}

// blockedUncertain says of the uncertain moves why they may not begin; nothing if some may. If none may together with
// the others, they are tried alone, and the first that may then is kept: the others come after it.
func (bg *beginner) blockedUncertain(t *uncertainMoves) map[*disrupt.Move]*disrupt.BlockedNode {
	no := make(map[*disrupt.Move]*disrupt.BlockedNode)
	for _, r := range bg.decideLinked(t, t.active) {
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
		bg.letOnly(t, am)
		m := t.proposed[am]
		if no[m] = bg.decideLinked(t, t.active[n:n+1])[0].blocked; no[m] != nil {
			continue
		}
		for _, later := range t.active[n+1:] {
			no[t.proposed[later]] = &disrupt.BlockedNode{Reason: disrupt.OthersFirst}
		}
		break
	}
	return no
}

// letOnly lets one of the uncertain moves go and has the others stay.
func (bg *beginner) letOnly(t *uncertainMoves, only *destination.Move) {
	clear(bg.OtherPodsHosts)
	for _, m := range t.active {
		for i := range m.Nodes {
			if name := m.Nodes[i].Node.Name; m == only {
				bg.RemovedNodes[name] = true
			} else {
				delete(bg.RemovedNodes, name)
			}
		}
	}
}
