package observe

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// passed takes in which moves of the last search were not begun: their nodes stay, and each is told why.
func (o *Observer) passed(s *cluster.Snapshot, list []disrupt.GivenUp) {
	sr := o.state.search.Load()
	if sr == nil || len(list) == 0 {
		return
	}
	with := sr.without(s, list)
	o.state.search.Store(with)
	o.logStays(with, with.passed)
}

// without is the search with the nodes of moves that were not begun among those that stay.
func (sr *search) without(s *cluster.Snapshot, list []disrupt.GivenUp) *search {
	out := *sr
	out.stays, out.passed, out.budgets = slices.Clone(sr.stays), nil, maps.Clone(sr.budgets)
	found := make(map[string]*disrupt.Move, len(sr.moves))
	for i := range sr.moves {
		found[sr.moves[i].ID] = &sr.moves[i].Move
	}
	for _, g := range list {
		m := found[g.ID]
		if m == nil {
			continue // it is of another search
		}
		for _, name := range g.Claims {
			one := stayed{Stay: disrupt.Stay{Claim: name, Why: g.Why, Saving: m.Before - m.After, Needed: m.Needed}, found: true}
			if g.Needed > 0 { // what was found has been worked out again
				one.Saving, one.Sure, one.Needed = g.Saving, g.Sure, g.Needed
			}
			if n := s.NodeOf(name); n != nil {
				one.Node = n.Name
			}
			one.since = since(sr.earlier, &one.Stay, sr.at)
			out.add(s, one)
		}
	}
	slices.SortFunc(out.stays, byClaim)
	for i := range out.stays {
		if out.stays[i].found {
			out.passed = append(out.passed, out.stays[i])
		}
	}
	return &out
}
