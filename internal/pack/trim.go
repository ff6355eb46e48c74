package pack

// trim exchanges each bin's offer for the cheapest that holds its content.
func (r *run) trim() {
	m := r.m
	load, sites := make([]int64, m.d), make([]uint64, m.words)
	var out []Bin
	for _, bin := range r.bins {
		m.sum(bin.Parts, load, sites)
		for bin.Times > 0 {
			offer, n := r.swap(&bin, load, sites)
			out = append(out, Bin{Offer: offer, Parts: bin.Parts, Times: n})
			bin.Times -= n
		}
	}
	r.bins = out
}

// sum says what the content asks for and in which sites it has to be.
func (m *model) sum(parts []Part, load []int64, sites []uint64) {
	clear(load)
	clear(sites)
	for _, p := range parts {
		for j, x := range m.needOf(p.Stack) {
			load[j] += x * int64(p.Count)
		}
		sites[m.site[p.Stack]>>6] |= 1 << (m.site[p.Stack] & 63)
	}
}

// suits reports whether a node of the kind can hold the content.
func (m *model) suits(kind int, parts []Part, load []int64, sites []uint64) bool {
	for w, s := range sites {
		if s&^m.seen[kind*m.words+w] != 0 {
			return false
		}
	}
	return fits(load, m.roomOf(kind)) && (m.p.Suits == nil || m.p.Suits(m.kinds[kind], parts))
}

// swap finds the cheapest offer for some of the bin's nodes and says for how many: for all of them if the ledger allows,
// else for one, else all stay what they are.
func (r *run) swap(bin *Bin, load []int64, sites []uint64) (offer, n int) {
	price := r.m.p.Offers[bin.Offer].Price
	for k, offer := range r.m.kinds {
		if r.m.p.Offers[offer].Price >= price {
			break
		}
		if !r.m.suits(k, bin.Parts, load, sites) {
			continue
		}
		for _, n := range []int{bin.Times, 1} {
			r.ledger.buy(bin.Offer, -n)
			if r.ledger.allows(offer, n) == n {
				r.ledger.buy(offer, n)
				return offer, n
			}
			r.ledger.buy(bin.Offer, n)
		}
	}
	return bin.Offer, bin.Times
}

// solution is the run's answer.
func (r *run) solution() Solution {
	s := Solution{Bins: r.bins, Left: r.left}
	for i := range s.Bins {
		s.Price += r.m.p.Offers[s.Bins[i].Offer].Price * float64(s.Bins[i].Times)
	}
	return s
}
