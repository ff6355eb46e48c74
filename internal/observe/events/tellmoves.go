package events

import (
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/observe/search"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// The contract's words for what becomes of a consolidation.
const (
	consolidationCandidate = "ConsolidationCandidate"
	consolidationRejected  = "ConsolidationRejected"
	consolidationApproved  = "ConsolidationApproved"
)

// TellBegun tells the nodes of a consolidation that it begins; those of pools that balance are told the score, too.
func (e *Teller) TellBegun(s *cluster.Snapshot, m *disrupt.Move, totals func() disrupt.PoolTotals) {
	if m.Reason != command.Underutilized {
		return
	}
	text := search.ByEstimate("Consolidation begins: "+summary(m), estimated(s, m))
	for _, name := range m.Claims {
		e.tellBoth(s, name, consolidationCandidate, text)
	}
	for _, part := range search.PoolShares(s, m) {
		if part.Pool.Policy != cluster.Balanced {
			continue
		}
		total := totals()[part.Pool.Name]
		if total.Price <= 0 || total.Cost <= 0 {
			continue
		}
		text := fmt.Sprintf("Consolidation is worth it: it saves %.1f%% of the NodePool's price and disturbs %.1f%% "+
			"of what runs there, which is a score of %.2f",
			100*part.Saving/total.Price, 100*part.Cost/total.Cost, total.Score(part.Saving, part.Cost))
		if len(m.Claims) == 1 {
			e.tellBoth(s, m.Claims[0], consolidationApproved, text)
		} else if e.limiters[consolidationApproved].allow(e.now()) {
			e.tell(poolRef(part.Pool.Name, part.Pool.UID), normal, consolidationApproved, "Disrupting", text)
		}
	}
}

// TellGivenUp tells the nodes of a move why it does not come about.
func (e *Teller) TellGivenUp(s *cluster.Snapshot, g *disrupt.GivenUp, why string, started bool) {
	reason, text := disruptionBlocked, fmt.Sprintf("Disruption (%s) does not begin: %s", g.Reason,
		search.LowerFirst(why))
	switch {
	case started && series.Saves(g.Reason):
		reason, text = consolidationRejected, "Consolidation is given up and the node stays: "+search.LowerFirst(why)
	case started:
		text = fmt.Sprintf("Disruption (%s) is given up and the node stays: %s", g.Reason, search.LowerFirst(why))
	}
	for _, name := range g.Claims {
		e.tellBoth(s, name, reason, text)
	}
}

// tellBoth tells a claim and its node, as long as there is room for events of the kind.
func (e *rationed) tellBoth(s *cluster.Snapshot, claim, reason, text string) {
	c := s.Claim(claim)
	if c == nil || e.recentEvents.knows(c.UID, e.recentEvents.Hash(reason+text)) || !e.limiters[reason].allow(e.now()) {
		return
	}
	e.tell(claimRef(c.Name, c.UID), normal, reason, "Disrupting", text)
	if n := s.NodeOf(claim); n != nil {
		e.tell(nodeRef(n), normal, reason, "Disrupting", text)
	}
}

// summary says what a move comes to.
func summary(m *disrupt.Move) string {
	what := "the node goes"
	switch others := len(m.Claims) - 1; others {
	case 0:
	case 1:
		what = "the node goes together with another"
	default:
		what = fmt.Sprintf("the node goes together with %d others", others)
	}
	switch len(m.Bins) {
	case 0:
		what += ", and its pods to nodes that are there"
	case 1:
		what += ", and one cheaper node comes"
	default:
		what += fmt.Sprintf(", and %d cheaper nodes come", len(m.Bins))
	}
	pods := fmt.Sprintf("%d pods move", m.Evicted)
	if m.Evicted == 1 {
		pods = "one pod moves"
	}
	return fmt.Sprintf("%s; %s and %s is saved (move %s)", what, pods, search.Monthly(m.Before-m.After), m.ID)
}

// estimated reports whether some price of the move is an estimate.
func estimated(s *cluster.Snapshot, m *disrupt.Move) bool {
	return slices.ContainsFunc(m.Bins, func(b market.Bin) bool { return b.Estimated }) ||
		slices.ContainsFunc(m.Claims, func(name string) bool { c := s.Claim(name); return c != nil && c.Estimated })
}
