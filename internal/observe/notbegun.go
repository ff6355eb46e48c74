package observe

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// noteNotBegun takes in which moves of the last search were not begun: their nodes stay, and each is told why.
func (o *Observer) noteNotBegun(s *cluster.Snapshot, list []disrupt.GivenUp) {
	ls := o.state.search.Load()
	if ls == nil || len(list) == 0 {
		return
	}
	with := ls.without(s, list)
	o.state.search.Store(with)
	o.logBlocked(with, with.notBegun)
}

// without is the search with the nodes of moves that were not begun among those that stay.
func (ls *lastSearch) without(s *cluster.Snapshot, list []disrupt.GivenUp) *lastSearch {
	out := *ls
	out.blocked, out.notBegun, out.budgets = slices.Clone(ls.blocked), nil, maps.Clone(ls.budgets)
	found := make(map[string]*disrupt.Move, len(ls.moves))
	for i := range ls.moves {
		found[ls.moves[i].ID] = &ls.moves[i].Move
	}
	for _, g := range list {
		m := found[g.ID]
		if m == nil {
			continue // it is of another search
		}
		for _, name := range g.Claims {
			one := blockedSince{BlockedNode: disrupt.BlockedNode{Claim: name, Reason: g.BlockReason,
				Saving: m.Before - m.After, NeededSaving: m.NeededSaving}, found: true}
			if g.NeededSaving > 0 { // what was found has been worked out again
				one.Saving, one.CertainSaving, one.NeededSaving = g.Saving, g.CertainSaving, g.NeededSaving
			}
			if n := s.NodeOf(name); n != nil {
				one.Node = n.Name
			}
			one.since = since(ls.earlierNotBegun, &one.BlockedNode, ls.at)
			out.add(s, one)
		}
	}
	slices.SortFunc(out.blocked, byClaim)
	for i := range out.blocked {
		if out.blocked[i].found {
			out.notBegun = append(out.notBegun, out.blocked[i])
		}
	}
	return &out
}
