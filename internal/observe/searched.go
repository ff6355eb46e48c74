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
	o.faulty(p.Faults)
	sr := newSearch(s, p, took, o.now(), o.state.search.Load())
	o.state.search.Store(sr)
	o.metrics.searched(s, sr)
	o.logSearch(s, sr)
	o.events.stays(s, sr)
}

// searched measures a search, and what the policy Balanced made of what was found.
func (m *metrics) searched(s *cluster.Snapshot, sr *search) {
	seconds := sr.took.Seconds()
	m.searching.Observe(seconds)
	if sr.cut {
		m.searchCut.Inc()
	}
	m.evaluation.WithLabelValues("underutilized", "multi").Observe(seconds)
	if slices.ContainsFunc(s.Pools, func(p *cluster.Pool) bool { return p.Policy == cluster.Balanced }) {
		m.scored(s, sr, disrupt.NewTotals(s))
		return
	}
	m.scored(s, sr, nil)
}

// scored counts the moves of a search by the pools that take part, and scores those of pools that balance.
func (m *metrics) scored(s *cluster.Snapshot, sr *search, totals disrupt.Totals) {
	for i := range sr.moves {
		f := &sr.moves[i]
		for _, part := range partsOf(s, &f.Move) {
			policy := string(part.pool.Policy)
			m.weighed.WithLabelValues("approved", part.pool.Name, policy).Inc()
			if part.pool.Policy == cluster.Balanced {
				m.score.WithLabelValues("approved", part.pool.Name, policy).Observe(totals[part.pool.Name].Score(part.saving, part.cost))
			}
		}
	}
	for i := range sr.stays {
		st := &sr.stays[i]
		pool := s.Pool(st.pool)
		if st.Why != disrupt.NotBalanced || pool == nil {
			continue
		}
		m.weighed.WithLabelValues("rejected", pool.Name, string(pool.Policy)).Inc()
		if totals != nil {
			m.score.WithLabelValues("rejected", pool.Name, string(pool.Policy)).Observe(totals[pool.Name].Score(st.Saving, disrupt.CostOf(s.PodsOn(st.Node))))
		}
	}
}

// part is a pool's part of a move.
type part struct {
	pool          *cluster.Pool
	price, saving float64
	cost          float64
}

// partsOf splits a move between its pools: what it saves in proportion to what their nodes cost.
func partsOf(s *cluster.Snapshot, m *disrupt.Move) []part {
	var out []part
	before := 0.0
	for _, name := range m.Claims {
		c := s.Claim(name)
		if c == nil || s.Pool(c.Pool) == nil {
			continue
		}
		i := slices.IndexFunc(out, func(p part) bool { return p.pool.Name == c.Pool })
		if i < 0 {
			i = len(out)
			out = append(out, part{pool: s.Pool(c.Pool)})
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
	slices.SortFunc(out, func(a, b part) int { return strings.Compare(a.pool.Name, b.pool.Name) })
	return out
}

// logSearch writes what was found, and to those who look closer why the other nodes stay.
func (o *Observer) logSearch(s *cluster.Snapshot, sr *search) {
	nodes, pods, replacements := 0, 0, 0
	var ids []string
	for i := range sr.moves {
		m := &sr.moves[i]
		nodes, pods, replacements = nodes+len(m.Claims), pods+m.Evicted, replacements+len(m.Bins)
		ids = append(ids, m.ID)
		o.log.V(1).Info("found a move", moveValues(s, &m.Move, true)...)
	}
	values := []any{"moves", len(sr.moves), "nodes", nodes, "replacements", replacements, "saving-per-month", rounded(sr.saving() * hoursPerMonth),
		"pods", pods, "stays", len(sr.stays), "duration", sr.took.String()}
	// Where budgets hold the moves back, the next searches find the same ones.
	if len(ids) > 0 && o.events.logged.learn("search", o.events.logged.hash(strings.Join(ids, " "))) {
		o.log.Info("found a cheaper way to run the cluster's pods", values...)
	} else {
		o.log.V(1).Info("searched for cheaper nodes", values...)
	}
	closer := o.log.V(1)
	if !closer.Enabled() || len(sr.stays) == 0 {
		return
	}
	byWhy := make(map[string]int)
	for i := range sr.stays {
		byWhy[string(sr.stays[i].Why)]++
	}
	var counts []any
	for _, why := range slices.Sorted(maps.Keys(byWhy)) {
		counts = append(counts, why, byWhy[why])
	}
	closer.Info("nodes stay", counts...)
	o.logStays(sr, sr.stays)
}

// logStays writes of some nodes why they stay, to those who look closer.
func (o *Observer) logStays(sr *search, list []stayed) {
	closer := o.log.V(1)
	if !closer.Enabled() {
		return
	}
	for i := range list {
		st := &list[i]
		if o.events.stayed.learn(st.Claim, o.events.stayed.hash(string(st.Why)+st.Pod+st.Guard)) {
			closer.Info("node stays", "NodeClaim", st.Claim, "Node", st.Node, "NodePool", st.pool, "reason", st.Why, "detail", sr.text(st))
		}
	}
}

func rounded(dollars float64) float64 { return math.Round(dollars*100) / 100 }
