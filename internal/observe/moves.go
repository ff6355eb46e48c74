package observe

import (
	"slices"
	"strconv"
	"sync"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/search"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// namedNodes is how many nodes of a move the log names.
const namedNodes = 20

// tellMoves tells what a plan decides about moves: which begin, which are given up, and which would be made if it were
// no dry run.
func (o *Observer) tellMoves(s *cluster.Snapshot, p *plan.Plan) {
	totals := sync.OnceValue(func() disrupt.PoolTotals { return disrupt.NewPoolTotals(s) }) // it goes through all pods
	for _, m := range begunMoves(s, p) {
		o.log.Info("disruption begins", moveValues(s, &m, series.Saves(m.Reason))...)
		o.metrics.Moves.WithLabelValues(series.ReasonLabel(m.Reason), "begun", "").Inc()
		o.events.TellBegun(s, &m, totals)
	}
	for _, g := range givenUpMoves(s, p) {
		o.givenUp(s, &g)
	}
	for i := range p.DryRuns {
		m := &p.DryRuns[i]
		if o.events.LongEvents.Learn("dry run "+m.ID, o.events.LongEvents.Hash(strconv.Itoa(len(m.Bins)))) {
			o.log.Info("dry run: would disrupt nodes", append(moveValues(s, m, series.Saves(m.Reason)),
				"dry-run", true)...)
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
	nodes, pools := search.NodesAndPools(s, g.Claims)
	r := search.Block{BlockedNode: disrupt.BlockedNode{Reason: g.BlockReason}}
	if len(pools) == 1 {
		r.Pool = pools[0]
	}
	if p := s.Pool(r.Pool); p != nil && g.BlockReason == disrupt.BudgetBlocks {
		r.Budget = render.Text(disrupt.AllowedNow(s, p, g.Reason))
	}
	text := search.Describe(r)
	started := len(s.MoveClaims(g.ID)) > 0
	message, step := "disruption is given up", "given_up"
	if !started {
		message, step = "disruption can't begin", "blocked"
	}
	o.log.Info(message, "move", g.ID, "reason", g.Reason, "nodepools", pools, "nodes", firstNames(nodes), "node-count",
		len(g.Claims), "why", g.BlockReason, "detail", text)
	o.metrics.Moves.WithLabelValues(series.ReasonLabel(g.Reason), step, string(g.BlockReason)).Inc()
	if late := countLate(s, g.ID); g.BlockReason == disrupt.ReplacementsLate && late > 0 {
		o.metrics.DecisionsFailed.WithLabelValues("replace", series.ReasonLabel(g.Reason),
			series.Consolidation(g.Reason,
				len(g.Claims))).Add(float64(late))
	}
	o.events.TellGivenUp(s, g, text, started)
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
	nodes, pools := search.NodesAndPools(s, m.Claims)
	out := []any{"move", m.ID, "command", series.Decision(len(m.Bins) > 0 || !known), "reason", m.Reason,
		"nodepools", pools,
		"nodes", firstNames(nodes), "node-count", len(m.Claims), "pods", m.Evicted}
	if known {
		out = append(out, "replacements", len(m.Bins), "saving-per-month",
			search.Rounded((m.Before-m.After)*search.HoursPerMonth))
	}
	return out
}

func firstNames(nodes []string) []string { return nodes[:min(len(nodes), namedNodes)] }
