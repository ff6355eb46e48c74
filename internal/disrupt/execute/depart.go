package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/reason"
)

// departure are moves all of whose pods have places that are up: their nodes may go.
type departure struct {
	moves []*destination.Move
	text  reason.Text
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
		ok := !slices.ContainsFunc(dep.moves, func(m *destination.Move) bool {
			return !may[m.ID]
		}) && !refused && dp.budgetsAllow(dep.moves...)
		for _, m := range dep.moves {
			switch {
			case ok:
				dp.deleteNodes(m, dep.moves[0].ID, dep.text)
			case refused:
				m.GiveUp(disrupt.NotDeleted, true)
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
			may[m.ID] = true
		}
	}
	blocked := slices.ContainsFunc(dp.Moves, func(m *destination.Move) bool { return !may[m.ID] })
	if len(may) == 0 || !blocked || !dp.anyPodHasRules() {
		return may
	}
	going, staying := dp.splitDepartable(may)
	question := dp.QueryFor(going, append(dp.LeavingAnyway(), destination.HostsOf(going)...),
		destination.HostsOf(staying),
		destination.OthersOf(dp.input.Placement))
	if question.SameAnswer(&dp.lastMemo.Departures.Query) {
		dp.memo.Departures = dp.lastMemo.Departures
		return dp.memo.Departures.MayDepart
	}
	for range destination.MaxRounds {
		going, staying = dp.splitDepartable(may)
		if len(going) == 0 {
			break
		}
		dropped := false
		for _, m := range dp.movesLackingPlaces(going, staying) {
			delete(may, m.ID)
			dropped = true
		}
		if !dropped {
			dp.memo.Departures = destination.DepartureAnswer{Query: question, MayDepart: may}
			return may
		}
	}
	dp.memo.Departures = destination.DepartureAnswer{Query: question}
	return nil
}

// splitDepartable tells the moves that may go from those that stay, for now or because they are given up.
func (dp *departer) splitDepartable(may map[string]bool) (going, staying []*destination.Move) {
	for _, m := range dp.Moves {
		if may[m.ID] {
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
	for _, m := range dp.Moves {
		if slices.ContainsFunc(m.Nodes, func(c disrupt.Candidate) bool { return speaks(c.Node) }) {
			return true
		}
	}
	return slices.ContainsFunc(dp.excluded, func(out excludedNode) bool { return speaks(out.node.Node) })
}

// movesLackingPlaces finds the moves some pod of which would have no place that is up if only these went.
func (dp *departer) movesLackingPlaces(going, staying []*destination.Move) []*destination.Move {
	others := destination.OthersOf(dp.input.Placement)
	closed := destination.HostsOf(staying)
	blocked := destination.SetOf(closed)
	gone := slices.DeleteFunc(append(dp.LeavingAnyway(), destination.HostsOf(going)...), func(name string) bool {
		return blocked[name]
	})
	answer := dp.Place(gone, closed, nil, others)
	kept := make([][]destination.Place, len(going))
	for i, m := range going {
		kept[i] = m.Destinations
	}
	dp.AssignDestinations(going, &answer)
	var out []*destination.Move
	for i, m := range going {
		if m.Farthest() != destination.AtReadyNode && !m.IsStatic {
			out = append(out, m)
		}
		m.Destinations = kept[i]
	}
	return out
}

// budgetsAllow reports whether the budgets let the nodes of a move go now, and takes them if so. What is only fenced
// does not count: it has not gone yet. A node that is unhealthy does not count against others that are.
func (dp *departer) budgetsAllow(moves ...*destination.Move) bool {
	going := make(map[disrupt.BudgetKey]int)
	for _, m := range moves {
		for i := range m.Nodes {
			going[disrupt.BudgetKey{Pool: m.Nodes[i].Pool, Reason: m.Reason}]++
		}
	}
	if !dp.out.Allow(going) {
		return false
	}
	for _, m := range moves {
		for i := range m.Nodes {
			dp.out.Add(m.Nodes[i].Claim, m.Nodes[i].Pool)
		}
	}
	return true
}
