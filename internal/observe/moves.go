package observe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// namedNodes is how many nodes of a move the log names.
const namedNodes = 20

// The contract's words for what becomes of a consolidation.
const (
	consolidationCandidate = "ConsolidationCandidate"
	consolidationRejected  = "ConsolidationRejected"
	consolidationApproved  = "ConsolidationApproved"
)

// tellMoves tells what a plan decides about moves: which begin, which are given up, and which would be made if it were
// no dry run.
func (o *Observer) tellMoves(s *cluster.Snapshot, p *plan.Plan) {
	totals := sync.OnceValue(func() disrupt.PoolTotals { return disrupt.NewPoolTotals(s) }) // it goes through all pods
	for _, m := range begunMoves(s, p) {
		o.log.Info("disruption begins", moveValues(s, &m, saves(m.Reason))...)
		o.metrics.moves.WithLabelValues(reasonLabel(m.Reason), "begun", "").Inc()
		o.events.tellBegun(s, &m, totals)
	}
	for _, g := range givenUpMoves(s, p) {
		o.givenUp(s, &g)
	}
	for i := range p.DryRuns {
		m := &p.DryRuns[i]
		if o.events.longEvents.learn("dry run "+m.ID, o.events.longEvents.hash(strconv.Itoa(len(m.Bins)))) {
			o.log.Info("dry run: would disrupt nodes", append(moveValues(s, m, saves(m.Reason)), "dry-run", true)...)
		}
	}
}

// begunMoves are the moves of a plan whose first fences are about to go up. What is tried again was told before.
func begunMoves(s *cluster.Snapshot, p *plan.Plan) []disrupt.Move {
	if len(p.Begun) == 0 {
		return nil
	}
	first := make(map[string]bool)
	for _, c := range p.Commands {
		if fence, ok := c.(command.Fence); ok && fence.Move != "" {
			if _, failed := s.Retry[fence.Key()]; !failed {
				first[fence.Move] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Begun), func(m disrupt.Move) bool { return !first[m.ID] })
}

// givenUpMoves are the moves of a plan whose nodes are about to be opened again.
func givenUpMoves(s *cluster.Snapshot, p *plan.Plan) []disrupt.GivenUp {
	if len(p.GivenUp) == 0 {
		return nil
	}
	first := make(map[string]bool)
	for _, c := range p.Commands {
		if unfence, ok := c.(command.Unfence); ok {
			if _, failed := s.Retry[unfence.Key()]; !failed {
				first[unfence.Claim] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(p.GivenUp), func(g disrupt.GivenUp) bool {
		return !slices.ContainsFunc(g.Claims, func(name string) bool { return first[name] })
	})
}

// givenUp tells that a move does not come about. One that had not begun could not: nothing was done to its nodes.
func (o *Observer) givenUp(s *cluster.Snapshot, g *disrupt.GivenUp) {
	nodes, pools := nodesAndPools(s, g.Claims)
	r := blockDetail{BlockedNode: disrupt.BlockedNode{Reason: g.BlockReason}}
	if len(pools) == 1 {
		r.pool = pools[0]
	}
	if p := s.Pool(r.pool); p != nil && g.BlockReason == disrupt.BudgetBlocks {
		r.budget = render.Text(disrupt.AllowedNow(s, p, g.Reason))
	}
	text := describeBlock(r)
	started := len(s.MoveClaims(g.ID)) > 0
	message, step := "disruption is given up", "given_up"
	if !started {
		message, step = "disruption can't begin", "blocked"
	}
	o.log.Info(message, "move", g.ID, "reason", g.Reason, "nodepools", pools, "nodes", firstNames(nodes), "node-count",
		len(g.Claims), "why", g.BlockReason, "detail", text)
	o.metrics.moves.WithLabelValues(reasonLabel(g.Reason), step, string(g.BlockReason)).Inc()
	if late := countLate(s, g.ID); g.BlockReason == disrupt.ReplacementsLate && late > 0 {
		o.metrics.decisionsFailed.WithLabelValues("replace", reasonLabel(g.Reason), consolidation(g.Reason,
			len(g.Claims))).Add(float64(late))
	}
	o.events.tellGivenUp(s, g, text, started)
}

// countLate counts the replacements of a move that are not ready for pods.
func countLate(s *cluster.Snapshot, move string) int {
	count := 0
	for _, c := range s.Claims {
		if c.Replaces == move && !c.Is(cluster.Initialized) {
			count++
		}
	}
	return count
}

// moveValues are the facts about a move for the log. What comes of one that is not for money's sake is only known when
// it has been verified.
func moveValues(s *cluster.Snapshot, m *disrupt.Move, known bool) []any {
	nodes, pools := nodesAndPools(s, m.Claims)
	out := []any{"move", m.ID, "command", decision(len(m.Bins) > 0 || !known), "reason", m.Reason, "nodepools", pools,
		"nodes", firstNames(nodes), "node-count", len(m.Claims), "pods", m.Evicted}
	if known {
		out = append(out, "replacements", len(m.Bins), "saving-per-month", rounded((m.Before-m.After)*hoursPerMonth))
	}
	return out
}

func firstNames(nodes []string) []string { return nodes[:min(len(nodes), namedNodes)] }

// decision is the contract's word for what is done to the nodes.
func decision(replaced bool) string {
	if replaced {
		return "replace"
	}
	return "delete"
}

// saves reports whether a disruption is for money's sake.
func saves(r command.Reason) bool { return r == command.Underutilized || r == command.Empty }

// tellBegun tells the nodes of a consolidation that it begins; those of pools that balance are told the score, too.
func (e *events) tellBegun(s *cluster.Snapshot, m *disrupt.Move, totals func() disrupt.PoolTotals) {
	if m.Reason != command.Underutilized {
		return
	}
	text := byEstimate("Consolidation begins: "+summary(m), estimated(s, m))
	for _, name := range m.Claims {
		e.tellBoth(s, name, consolidationCandidate, text)
	}
	for _, part := range poolShares(s, m) {
		if part.pool.Policy != cluster.Balanced {
			continue
		}
		total := totals()[part.pool.Name]
		if total.Price <= 0 || total.Cost <= 0 {
			continue
		}
		text := fmt.Sprintf("Consolidation is worth it: it saves %.1f%% of the NodePool's price and disturbs %.1f%% "+
			"of what runs there, which is a score of %.2f",
			100*part.saving/total.Price, 100*part.cost/total.Cost, total.Score(part.saving, part.cost))
		if len(m.Claims) == 1 {
			e.tellBoth(s, m.Claims[0], consolidationApproved, text)
		} else if e.limiters[consolidationApproved].allow(e.now()) {
			e.tell(poolRef(part.pool.Name, part.pool.UID), normal, consolidationApproved, "Disrupting", text)
		}
	}
}

// tellGivenUp tells the nodes of a move why it does not come about.
func (e *events) tellGivenUp(s *cluster.Snapshot, g *disrupt.GivenUp, why string, started bool) {
	reason, text := disruptionBlocked, fmt.Sprintf("Disruption (%s) does not begin: %s", g.Reason, lowerFirst(why))
	switch {
	case started && saves(g.Reason):
		reason, text = consolidationRejected, "Consolidation is given up and the node stays: "+lowerFirst(why)
	case started:
		text = fmt.Sprintf("Disruption (%s) is given up and the node stays: %s", g.Reason, lowerFirst(why))
	}
	for _, name := range g.Claims {
		e.tellBoth(s, name, reason, text)
	}
}

// tellBoth tells a claim and its node, as long as there is room for events of the kind.
func (e *events) tellBoth(s *cluster.Snapshot, claim, reason, text string) {
	c := s.Claim(claim)
	if c == nil || e.recentEvents.knows(c.UID, e.recentEvents.hash(reason+text)) || !e.limiters[reason].allow(e.now()) {
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
	return fmt.Sprintf("%s; %s and %s is saved (move %s)", what, pods, monthly(m.Before-m.After), m.ID)
}

// estimated reports whether some price of the move is an estimate.
func estimated(s *cluster.Snapshot, m *disrupt.Move) bool {
	return slices.ContainsFunc(m.Bins, func(b schedule.Bin) bool { return b.Estimated }) ||
		slices.ContainsFunc(m.Claims, func(name string) bool { c := s.Claim(name); return c != nil && c.Estimated })
}

// lowerFirst makes a sentence the continuation of another. Names that begin with a capital keep it.
func lowerFirst(text string) string {
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "The", "A", "Some", "Its", "Nothing", "Pods", "There", "What":
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
