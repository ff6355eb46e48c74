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

// decided tells what a plan decides about moves: which begin, which are given up, and which would be made if it were no dry run.
func (o *Observer) decided(s *cluster.Snapshot, p *plan.Plan) {
	totals := sync.OnceValue(func() disrupt.Totals { return disrupt.NewTotals(s) }) // it goes through all pods
	for _, m := range begun(s, p) {
		o.log.Info("disruption begins", moveValues(s, &m, saves(m.Reason))...)
		o.metrics.moves.WithLabelValues(reasonLabel(m.Reason), "begun", "").Inc()
		o.events.begun(s, &m, totals)
	}
	for _, g := range givenUp(s, p) {
		o.givenUp(s, &g)
	}
	for i := range p.Would {
		m := &p.Would[i]
		if o.events.lasting.learn("dry run "+m.ID, o.events.lasting.hash(strconv.Itoa(len(m.Bins)))) {
			o.log.Info("dry run: would disrupt nodes", append(moveValues(s, m, saves(m.Reason)), "dry-run", true)...)
		}
	}
}

// begun are the moves of a plan whose first fences are about to go up. What is tried again was told before.
func begun(s *cluster.Snapshot, p *plan.Plan) []disrupt.Move {
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

// givenUp are the moves of a plan whose nodes are about to be opened again.
func givenUp(s *cluster.Snapshot, p *plan.Plan) []disrupt.GivenUp {
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
	nodes, pools := whoGoes(s, g.Claims)
	r := reasoned{Stay: disrupt.Stay{Why: g.Why}}
	if len(pools) == 1 {
		r.pool = pools[0]
	}
	if p := s.Pool(r.pool); p != nil && g.Why == disrupt.BudgetBlocks {
		r.budget = disrupt.BudgetLine(s, p, g.Reason)
	}
	text := explained(r)
	started := len(s.Members(g.ID)) > 0
	message, step := "disruption is given up", "given_up"
	if !started {
		message, step = "disruption can't begin", "blocked"
	}
	o.log.Info(message, "move", g.ID, "reason", g.Reason, "nodepools", pools, "nodes", named(nodes), "node-count", len(g.Claims), "why", g.Why, "detail", text)
	o.metrics.moves.WithLabelValues(reasonLabel(g.Reason), step, string(g.Why)).Inc()
	if late := late(s, g.ID); g.Why == disrupt.ReplacementsLate && late > 0 {
		o.metrics.decisionsFailed.WithLabelValues("replace", reasonLabel(g.Reason), consolidation(g.Reason, len(g.Claims))).Add(float64(late))
	}
	o.events.givenUp(s, g, text, started)
}

// late counts the replacements of a move that are not ready for pods.
func late(s *cluster.Snapshot, move string) int {
	count := 0
	for _, c := range s.Claims {
		if c.Replaces == move && !c.Is(cluster.Initialized) {
			count++
		}
	}
	return count
}

// moveValues are the facts about a move for the log. What comes of one that is not for money's sake is only known when it
// has been verified.
func moveValues(s *cluster.Snapshot, m *disrupt.Move, known bool) []any {
	nodes, pools := whoGoes(s, m.Claims)
	out := []any{"move", m.ID, "command", decision(len(m.Bins) > 0 || !known), "reason", m.Reason, "nodepools", pools,
		"nodes", named(nodes), "node-count", len(m.Claims), "pods", m.Evicted}
	if known {
		out = append(out, "replacements", len(m.Bins), "saving-per-month", rounded((m.Before-m.After)*hoursPerMonth))
	}
	return out
}

func named(nodes []string) []string { return nodes[:min(len(nodes), namedNodes)] }

// decision is the contract's word for what is done to the nodes.
func decision(replaced bool) string {
	if replaced {
		return "replace"
	}
	return "delete"
}

// saves reports whether a disruption is for money's sake.
func saves(r command.Reason) bool { return r == command.Underutilized || r == command.Empty }

// begun tells the nodes of a consolidation that it begins; those of pools that balance are told the score, too.
func (e *events) begun(s *cluster.Snapshot, m *disrupt.Move, totals func() disrupt.Totals) {
	if m.Reason != command.Underutilized {
		return
	}
	text := byEstimate("Consolidation begins: "+summary(m), estimated(s, m))
	for _, name := range m.Claims {
		e.both(s, name, consolidationCandidate, text)
	}
	for _, part := range partsOf(s, m) {
		if part.pool.Policy != cluster.Balanced {
			continue
		}
		total := totals()[part.pool.Name]
		if total.Price <= 0 || total.Cost <= 0 {
			continue
		}
		text := fmt.Sprintf("Consolidation is worth it: it saves %.1f%% of the NodePool's price and disturbs %.1f%% of what runs there, which is a score of %.2f",
			100*part.saving/total.Price, 100*part.cost/total.Cost, total.Score(part.saving, part.cost))
		if len(m.Claims) == 1 {
			e.both(s, m.Claims[0], consolidationApproved, text)
		} else if e.rations[consolidationApproved].take(e.now()) {
			e.tell(poolRef(part.pool.Name, part.pool.UID), normal, consolidationApproved, "Disrupting", text)
		}
	}
}

// givenUp tells the nodes of a move why it does not come about.
func (e *events) givenUp(s *cluster.Snapshot, g *disrupt.GivenUp, why string, started bool) {
	reason, text := disruptionBlocked, fmt.Sprintf("Disruption (%s) does not begin: %s", g.Reason, lowered(why))
	switch {
	case started && saves(g.Reason):
		reason, text = consolidationRejected, "Consolidation is given up and the node stays: "+lowered(why)
	case started:
		text = fmt.Sprintf("Disruption (%s) is given up and the node stays: %s", g.Reason, lowered(why))
	}
	for _, name := range g.Claims {
		e.both(s, name, reason, text)
	}
}

// both tells a claim and its node, as long as there is room for events of the kind.
func (e *events) both(s *cluster.Snapshot, claim, reason, text string) {
	c := s.Claim(claim)
	if c == nil || e.told.knows(c.UID, e.told.hash(reason+text)) || !e.rations[reason].take(e.now()) {
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

// lowered makes a sentence the continuation of another. Names that begin with a capital keep it.
func lowered(text string) string {
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "The", "A", "Some", "Its", "Nothing", "Pods", "There", "What":
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
