package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// departure are moves all of whose pods have places that are up: their nodes may go.
type departure struct {
	moves   []*activeMove
	message string
}

// departureAnswer is which moves of those that were ready might go.
type departureAnswer struct {
	query     placementQuery
	mayDepart map[string]bool
}

// departReady lets the nodes go that are ready to, as far as the budgets allow it. What could have gone for long and is
// still there is given up: somebody refuses it each time.
func (ex *executor) departReady() {
	may := ex.departable()
	for _, dep := range ex.departures {
		refused := slices.ContainsFunc(dep.moves, ex.isOverdue)
		ok := !slices.ContainsFunc(dep.moves, func(m *activeMove) bool {
			return !may[m.id]
		}) && !refused && ex.budgetsAllow(dep.moves...)
		for _, m := range dep.moves {
			switch {
			case ok:
				ex.deleteNodes(m, dep.moves[0].id, dep.message)
			case refused:
				m.giveUp(disrupt.NotDeleted, true)
			default:
				ex.mayWait(m)
			}
		}
	}
}

// maxDepartureRounds bounds how often it is asked who may go without those who may not.
const maxDepartureRounds = 4

// departable finds the moves that may go although others stay. Where pods say something about each other, a place may
// be free only once pods of another node have gone, too: then they wait for each other.
func (ex *executor) departable() map[string]bool {
	may := make(map[string]bool)
	for _, dep := range ex.departures {
		for _, m := range dep.moves {
			may[m.id] = true
		}
	}
	blocked := slices.ContainsFunc(ex.moves, func(m *activeMove) bool { return !may[m.id] })
	if len(may) == 0 || !blocked || !ex.anyPodHasRules() {
		return may
	}
	going, staying := ex.splitDepartable(may)
	question := ex.queryFor(going, append(ex.leavingAnyway(), ex.hostsOf(going)...), ex.hostsOf(staying),
		otherPlacementsOf(ex.input.Placement))
	if question.sameAnswer(&ex.lastMemo.departures.query) {
		ex.memo.departures = ex.lastMemo.departures
		return ex.memo.departures.mayDepart
	}
	for range maxDepartureRounds {
		going, staying = ex.splitDepartable(may)
		if len(going) == 0 {
			break
		}
		dropped := false
		for _, m := range ex.movesLackingPlaces(going, staying) {
			delete(may, m.id)
			dropped = true
		}
		if !dropped {
			ex.memo.departures = departureAnswer{question, may}
			return may
		}
	}
	ex.memo.departures = departureAnswer{question, nil}
	return nil
}

// splitDepartable tells the moves that may go from those that stay, for now or because they are given up.
func (ex *executor) splitDepartable(may map[string]bool) (going, staying []*activeMove) {
	for _, m := range ex.moves {
		if may[m.id] {
			going = append(going, m)
		} else {
			staying = append(staying, m)
		}
	}
	return going, staying
}

// anyPodHasRules reports whether some pod of a move, or of a node that was to go in one, says something about other
// pods.
func (ex *executor) anyPodHasRules() bool {
	speaks := func(n *cluster.Node) bool {
		return slices.ContainsFunc(ex.s.PodsOn(n.Name), func(p *cluster.Pod) bool { return len(p.Class.Rules) > 0 })
	}
	for _, m := range ex.moves {
		if slices.ContainsFunc(m.nodes, func(c disrupt.Candidate) bool { return speaks(c.Node) }) {
			return true
		}
	}
	return slices.ContainsFunc(ex.excluded, func(out excludedNode) bool { return speaks(out.node.Node) })
}

// movesLackingPlaces finds the moves some pod of which would have no place that is up if only these went.
func (ex *executor) movesLackingPlaces(going, staying []*activeMove) []*activeMove {
	others := otherPlacementsOf(ex.input.Placement)
	closed := ex.hostsOf(staying)
	blocked := setOf(closed)
	gone := slices.DeleteFunc(append(ex.leavingAnyway(), ex.hostsOf(going)...), func(name string) bool {
		return blocked[name]
	})
	answer := ex.placePods(ex.overlayWithout(gone, others.placedOn, others.handled), closed, nil)
	kept := make([][]destination, len(going))
	for i, m := range going {
		kept[i] = m.destinations
	}
	ex.assignDestinations(going, &answer)
	var out []*activeMove
	for i, m := range going {
		if m.farthest() != atReadyNode && !m.isStatic {
			out = append(out, m)
		}
		m.destinations = kept[i]
	}
	return out
}

// hostsOf are the nodes of moves.
func (ex *executor) hostsOf(moves []*activeMove) []string {
	var out []string
	for _, m := range moves {
		for i := range m.nodes {
			out = append(out, m.nodes[i].Node.Name)
		}
	}
	return out
}
