package observe

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

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
