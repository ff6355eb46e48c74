package pack

import "slices"

// What wishes may cost: more money and more nodes than the best answer without them, as factors.
const (
	wishPrice = 1.02
	wishNodes = 1.1
)

// please looks for an answer that is about as good as the best and meets more wishes: the same nodes bought as offers
// that are liked better, or nodes filled anew with pods of like wishes.
func (s *search) please() {
	m := s.m
	if !slices.ContainsFunc(m.p.Stacks, func(st Stack) bool { return st.Like >= 0 }) {
		return
	}
	base := s.best
	tier := []int32(nil)
	if s.scarce() {
		tier = s.tiers()
	}
	same := newRun(m)
	same.adopt(&base)
	same.favour()
	s.welcome(same, &base)
	each := base.Price / float64(max(base.nodes(), 1))
	cost := make([]float64, len(s.price))
	for _, try := range [][2]float64{{0.1, 0.03}, {0.05, 0.03}, {0.1, 0.02}, {0.05, 0.02}} {
		// A surcharge on every node keeps their number down while pods are sorted by their wishes.
		for k, price := range s.price {
			cost[k] = price + try[1]*each
		}
		s.fill.wishes = try[0]
		s.fill.prepare(s.kinds, s.worth, s.relaxed.rate, tier)
		r := newRun(m)
		r.greedy(s.fill, s.kinds, cost)
		r.finish()
		r.favour()
		s.welcome(r, &base)
	}
}

// welcome keeps the run's answer if it costs little more than the base, leaves nobody out for it, and meets more wishes than
// the best so far.
func (s *search) welcome(r *run, base *Solution) {
	answer := r.solution()
	if answer.Price <= base.Price*wishPrice && answer.nodes() <= int(wishNodes*float64(base.nodes())) &&
		slices.Compare(s.byRank(answer.Left), s.byRank(base.Left)) <= 0 && s.m.joy(&answer) > s.m.joy(&s.best) {
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

// joy is how far wishes are met, over all pods.
func (m *model) joy(s *Solution) float64 {
	sum := 0.0
	for i := range s.Bins {
		sum += m.joyOf(s.Bins[i].Parts, s.Bins[i].Offer) * float64(s.Bins[i].Times)
	}
	return sum
}

func (m *model) joyOf(parts []Part, offer int) float64 {
	sum := 0.0
	for _, p := range parts {
		if like := m.p.Stacks[p.Stack].Like; like >= 0 {
			sum += float64(m.p.Likes[like][offer]) * float64(p.Count)
		}
	}
	return sum
}

// adopt takes over an answer.
func (r *run) adopt(s *Solution) {
	r.left, r.bins = slices.Clone(s.Left), slices.Clone(s.Bins)
	for i := range r.bins {
		r.ledger.buy(r.bins[i].Offer, r.bins[i].Times)
	}
}

// favour exchanges each bin's offer for the best liked of those that cost about the same and hold its content.
func (r *run) favour() {
	m := r.m
	load, sites := make([]int64, m.d), make([]uint64, m.words)
	for i := range r.bins {
		b := &r.bins[i]
		m.sum(b.Parts, load, sites)
		best, joy := b.Offer, m.joyOf(b.Parts, b.Offer)
		for k, offer := range m.kinds {
			if m.p.Offers[offer].Price > m.p.Offers[b.Offer].Price*(1+wishPrice)/2 {
				break
			}
			if j := m.joyOf(b.Parts, offer); j > joy && m.suits(k, b.Parts, load, sites) {
				best, joy = offer, j
			}
		}
		r.ledger.buy(b.Offer, -b.Times)
		if r.ledger.allows(best, b.Times) == b.Times {
			b.Offer = best
		}
		r.ledger.buy(b.Offer, b.Times)
	}
}
