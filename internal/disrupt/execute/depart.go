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

// departer lets the nodes of moves go.
type departer struct {
	*frame
	*waits
	*fences
}

// departReady lets the nodes go that are ready to, as far as the budgets allow it. What could have gone for long and is
// still there is given up: somebody refuses it each time.
func (dp *departer) departReady() {
	may := dp.departable()
	for _, dep := range dp.departures {
		refused := slices.ContainsFunc(dep.moves, dp.isOverdue)
		ok := !slices.ContainsFunc(dep.moves, func(m *activeMove) bool {
			return !may[m.id]
		}) && !refused && dp.budgetsAllow(dep.moves...)
		for _, m := range dep.moves {
			switch {
			case ok:
				dp.deleteNodes(m, dep.moves[0].id, dep.message)
			case refused:
				m.giveUp(disrupt.NotDeleted, true)
			default:
				dp.mayWait(m)
			}
		}
	}
}

// departable finds the moves that may go although others stay. Where pods say something about each other, a place may
// be free only once pods of another node have gone, too: then they wait for each other.
func (dp *departer) departable() map[string]bool {
	may := make(map[string]bool)
	for _, dep := range dp.departures {
		for _, m := range dep.moves {
			may[m.id] = true
		}
	}
	blocked := slices.ContainsFunc(dp.moves, func(m *activeMove) bool { return !may[m.id] })
	if len(may) == 0 || !blocked || !dp.anyPodHasRules() {
		return may
	}
	going, staying := dp.splitDepartable(may)
	question := dp.queryFor(going, append(dp.leavingAnyway(), hostsOf(going)...), hostsOf(staying),
		otherPlacementsOf(dp.input.Placement))
	if question.sameAnswer(&dp.lastMemo.departures.query) {
		dp.memo.departures = dp.lastMemo.departures
		return dp.memo.departures.mayDepart
	}
	for range maxDepartureRounds {
		going, staying = dp.splitDepartable(may)
		if len(going) == 0 {
			break
		}
		dropped := false
		for _, m := range dp.movesLackingPlaces(going, staying) {
			delete(may, m.id)
			dropped = true
		}
		if !dropped {
			dp.memo.departures = departureAnswer{question, may}
			return may
		}
	}
	dp.memo.departures = departureAnswer{question, nil}
	return nil
}

// splitDepartable tells the moves that may go from those that stay, for now or because they are given up.
func (dp *departer) splitDepartable(may map[string]bool) (going, staying []*activeMove) {
	for _, m := range dp.moves {
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
func (dp *departer) anyPodHasRules() bool {
	speaks := func(n *cluster.Node) bool {
		return slices.ContainsFunc(dp.s.PodsOn(n.Name), func(p *cluster.Pod) bool { return len(p.Class.Rules) > 0 })
	}
	for _, m := range dp.moves {
		if slices.ContainsFunc(m.nodes, func(c disrupt.Candidate) bool { return speaks(c.Node) }) {
			return true
		}
	}
	return slices.ContainsFunc(dp.excluded, func(out excludedNode) bool { return speaks(out.node.Node) })
}

// movesLackingPlaces finds the moves some pod of which would have no place that is up if only these went.
func (dp *departer) movesLackingPlaces(going, staying []*activeMove) []*activeMove {
	others := otherPlacementsOf(dp.input.Placement)
	closed := hostsOf(staying)
	blocked := setOf(closed)
	gone := slices.DeleteFunc(append(dp.leavingAnyway(), hostsOf(going)...), func(name string) bool {
		return blocked[name]
	})
	answer := dp.placePods(dp.overlayWithout(gone, others.placedOn, others.handled), closed, nil)
	kept := make([][]destination, len(going))
	for i, m := range going {
		kept[i] = m.destinations
	}
	dp.assignDestinations(going, &answer)
	var out []*activeMove
	for i, m := range going {
		if m.farthest() != atReadyNode && !m.isStatic {
			out = append(out, m)
		}
		m.destinations = kept[i]
	}
	return out
}

// budgetsAllow reports whether the budgets let the nodes of a move go now, and takes them if so. What is only fenced
// does not count: it has not gone yet. A node that is unhealthy does not count against others that are.
func (dp *departer) budgetsAllow(moves ...*activeMove) bool {
	going := make(map[disrupt.BudgetKey]int)
	for _, m := range moves {
		for i := range m.nodes {
			going[disrupt.BudgetKey{Pool: m.nodes[i].Pool, Reason: m.reason}]++
		}
	}
	if !dp.out.Allow(going) {
		return false
	}
	for _, m := range moves {
		for i := range m.nodes {
			dp.out.Add(m.nodes[i].Claim, m.nodes[i].Pool)
		}
	}
	return true
}
