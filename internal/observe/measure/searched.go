package measure

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/search"
)

// Searched measures a search, and what the policy Balanced made of what was found.
func (m *Metrics) Searched(s *cluster.Snapshot, ls *search.Result) {
	seconds := ls.Took.Seconds()
	m.searching.Observe(seconds)
	if ls.Truncated {
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
func (m *Metrics) scoreMoves(s *cluster.Snapshot, ls *search.Result, totals disrupt.PoolTotals) {
	for i := range ls.Moves {
		f := &ls.Moves[i]
		for _, part := range search.PoolShares(s, &f.Move) {
			policy := string(part.Pool.Policy)
			m.considered.WithLabelValues("approved", part.Pool.Name, policy).Inc()
			if part.Pool.Policy == cluster.Balanced {
				m.score.WithLabelValues("approved", part.Pool.Name,
					policy).Observe(totals[part.Pool.Name].Score(part.Saving, part.Cost))
			}
		}
	}
	for i := range ls.Blocked {
		st := &ls.Blocked[i]
		pool := s.Pool(st.Pool)
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
