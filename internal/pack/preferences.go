package pack

import "slices"

// What preferences may cost: more money and more nodes than the best answer without them, as factors.
const (
	preferencePrice = 1.02
	preferenceNodes = 1.1
)

// improvePreferences looks for an answer that is about as good as the best and meets more preferences: the same nodes
// bought as bin types that are liked better, or nodes filled anew with pods of like preferences.
func (s *solver) improvePreferences() {
	m := s.m
	if !slices.ContainsFunc(m.p.Items, func(st Item) bool { return st.Preference >= 0 }) {
		return
	}
	base := s.best
	tier := []int32(nil)
	if s.isScarce() {
		tier = s.tiers()
	}
	same := newPackingRun(m)
	same.adopt(&base)
	same.preferLiked()
	s.keepIfLiked(same, &base)
	each := base.Price / float64(max(base.nodes(), 1))
	cost := make([]float64, len(s.price))
	for _, try := range [][2]float64{{0.1, 0.03}, {0.05, 0.03}, {0.1, 0.02}, {0.05, 0.02}} {
		// A surcharge on every node keeps their number down while pods are sorted by their preferences.
		for k, price := range s.price {
			cost[k] = price + try[1]*each
		}
		s.filler.preferenceWeight = try[0]
		s.filler.prepare(s.options, s.worth, s.relaxation.Rate, tier)
		r := newPackingRun(m)
		r.greedy(s.filler, s.options, cost)
		r.finish()
		r.preferLiked()
		s.keepIfLiked(r, &base)
	}
}

// keepIfLiked keeps the run's answer if it costs little more than the base, leaves nobody out for it, and meets more
// preferences than the best so far.
func (s *solver) keepIfLiked(r *packingRun, base *Solution) {
	answer := r.solution()
	if answer.Price <= base.Price*preferencePrice && answer.nodes() <= int(preferenceNodes*float64(base.nodes())) &&
		slices.Compare(s.byRank(answer.Unplaced), s.byRank(base.Unplaced)) <= 0 &&
		s.m.preferenceScore(&answer) > s.m.preferenceScore(&s.best) {
		s.best = answer
	}
}

// nodes is how many there are.
func (s *Solution) nodes() int {
	n := 0
	for i := range s.Bins {
		n += s.Bins[i].Times
	}
	return n
}

// preferenceScore is how far preferences are met, over all pods.
func (m *model) preferenceScore(s *Solution) float64 {
	sum := 0.0
	for i := range s.Bins {
		sum += m.preferenceScoreOf(s.Bins[i].Parts, s.Bins[i].BinType) * float64(s.Bins[i].Times)
	}
	return sum
}

func (m *model) preferenceScoreOf(parts []Part, binType int) float64 {
	sum := 0.0
	for _, p := range parts {
		if preference := m.p.Items[p.Item].Preference; preference >= 0 {
			sum += float64(m.p.Preferences[preference][binType]) * float64(p.Count)
		}
	}
	return sum
}

// adopt takes over an answer.
func (r *packingRun) adopt(s *Solution) {
	r.unplaced, r.bins = slices.Clone(s.Unplaced), slices.Clone(s.Bins)
	for i := range r.bins {
		r.supply.buy(r.bins[i].BinType, r.bins[i].Times)
	}
}

// preferLiked exchanges each bin's offer for the best liked of those that cost about the same and hold its content.
func (r *packingRun) preferLiked() {
	m := r.m
	load, sets := make([]int64, m.Dims), make([]uint64, m.Words)
	for i := range r.bins {
		b := &r.bins[i]
		m.sumParts(b.Parts, load, sets)
		best, score := b.BinType, m.preferenceScoreOf(b.Parts, b.BinType)
		for k, binType := range m.options {
			if m.p.BinTypes[binType].Price > m.p.BinTypes[b.BinType].Price*(1+preferencePrice)/2 {
				break
			}
			if j := m.preferenceScoreOf(b.Parts, binType); j > score && m.suits(k, b.Parts, load, sets) {
				best, score = binType, j
			}
		}
		r.supply.buy(b.BinType, -b.Times)
		if r.supply.allows(best, b.Times) == b.Times {
			b.BinType = best
		}
		r.supply.buy(b.BinType, b.Times)
	}
}
