package observe

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// Searched tells what a search for cheaper nodes came to.
func (o *Observer) Searched(s *cluster.Snapshot, p *disrupt.Proposal, took time.Duration) {
	o.tellFaults(p.Faults)
	ls := newLastSearch(s, p, took, o.now(), o.state.search.Load())
	o.state.search.Store(ls)
	o.metrics.searched(s, ls)
	o.logSearch(s, ls)
	o.events.tellBlocked(s, ls)
}

// searched measures a search, and what the policy Balanced made of what was found.
func (m *metrics) searched(s *cluster.Snapshot, ls *lastSearch) {
	seconds := ls.took.Seconds()
	m.searching.Observe(seconds)
	if ls.truncated {
		m.searchCut.Inc()
	}
	m.evaluation.WithLabelValues("underutilized", "multi").Observe(seconds)
	if slices.ContainsFunc(s.Pools, func(p *cluster.Pool) bool { return p.Policy == cluster.Balanced }) {
		m.scoreMoves(s, ls, disrupt.NewPoolTotals(s))
		return
	}
	m.scoreMoves(s, ls, nil)
}

// scoreMoves counts the moves of a search by the pools that take part, and scores those of pools that balance.
func (m *metrics) scoreMoves(s *cluster.Snapshot, ls *lastSearch, totals disrupt.PoolTotals) {
	for i := range ls.moves {
		f := &ls.moves[i]
		for _, part := range poolShares(s, &f.Move) {
			policy := string(part.pool.Policy)
			m.considered.WithLabelValues("approved", part.pool.Name, policy).Inc()
			if part.pool.Policy == cluster.Balanced {
				m.score.WithLabelValues("approved", part.pool.Name,
					policy).Observe(totals[part.pool.Name].Score(part.saving, part.cost))
			}
		}
	}
	for i := range ls.blocked {
		st := &ls.blocked[i]
		pool := s.Pool(st.pool)
		if st.Reason != disrupt.NotBalanced || pool == nil {
			continue
		}
		m.considered.WithLabelValues("rejected", pool.Name, string(pool.Policy)).Inc()
		if totals != nil {
			m.score.WithLabelValues("rejected", pool.Name,
				string(pool.Policy)).Observe(totals[pool.Name].Score(st.Saving, disrupt.CostOf(s.PodsOn(st.Node))))
		}
	}
}

// poolShare is a pool's part of a move.
type poolShare struct {
	pool          *cluster.Pool
	price, saving float64
	cost          float64
}

// poolShares splits a move between its pools: what it saves in proportion to what their nodes cost.
func poolShares(s *cluster.Snapshot, m *disrupt.Move) []poolShare {
	var out []poolShare
	before := 0.0
	for _, name := range m.Claims {
		c := s.Claim(name)
		if c == nil || s.Pool(c.Pool) == nil {
			continue
		}
		i := slices.IndexFunc(out, func(p poolShare) bool { return p.pool.Name == c.Pool })
		if i < 0 {
			i = len(out)
			out = append(out, poolShare{pool: s.Pool(c.Pool)})
		}
		out[i].price += c.Price
		before += c.Price
		if n := s.NodeOf(name); n != nil {
			out[i].cost += disrupt.CostOf(s.PodsOn(n.Name))
		}
	}
	for i := range out {
		out[i].saving = m.Before - m.After
		if len(out) > 1 && before > 0 {
			out[i].saving *= out[i].price / before
		}
	}
	slices.SortFunc(out, func(a, b poolShare) int { return strings.Compare(a.pool.Name, b.pool.Name) })
	return out
}

// logSearch writes what was found, and to those who look closer why the other nodes stay.
func (o *Observer) logSearch(s *cluster.Snapshot, ls *lastSearch) {
	nodes, pods, replacements := 0, 0, 0
	var ids []string
	for i := range ls.moves {
		m := &ls.moves[i]
		nodes, pods, replacements = nodes+len(m.Claims), pods+m.Evicted, replacements+len(m.Bins)
		ids = append(ids, m.ID)
		o.log.V(1).Info("found a move", moveValues(s, &m.Move, true)...)
	}
	values := []any{"moves", len(ls.moves), "nodes", nodes, "replacements", replacements, "saving-per-month",
		rounded(ls.saving() * hoursPerMonth),
		"pods", pods, "stays", len(ls.blocked), "duration", ls.took.String()}
	// Where budgets hold the moves back, the next searches find the same ones.
	if len(ids) > 0 && o.events.recentLogs.learn("search", o.events.recentLogs.hash(strings.Join(ids, " "))) {
		o.log.Info("found a cheaper way to run the cluster's pods", values...)
	} else {
		o.log.V(1).Info("searched for cheaper nodes", values...)
	}
	debug := o.log.V(1)
	if !debug.Enabled() || len(ls.blocked) == 0 {
		return
	}
	byWhy := make(map[string]int)
	for i := range ls.blocked {
		byWhy[string(ls.blocked[i].Reason)]++
	}
	var counts []any
	for _, reason := range slices.Sorted(maps.Keys(byWhy)) {
		counts = append(counts, reason, byWhy[reason])
	}
	debug.Info("nodes stay", counts...)
	o.logBlocked(ls, ls.blocked)
}

// logBlocked writes of some nodes why they stay, to those who look closer.
func (o *Observer) logBlocked(s *lastSearch, list []blockedSince) {
	debug := o.log.V(1)
	if !debug.Enabled() {
		return
	}
	for i := range list {
		st := &list[i]
		if o.events.longLogs.learn(st.Claim, o.events.longLogs.hash(string(st.Reason)+st.Pod+st.PDB)) {
			debug.Info("node stays", "NodeClaim", st.Claim, "Node", st.Node, "NodePool", st.pool, "reason", st.Reason,
				"detail", s.text(st))
		}
	}
}

func rounded(dollars float64) float64 { return math.Round(dollars*100) / 100 }
