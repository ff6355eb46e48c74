package pack

// cheapenBins exchanges each bin's offer for the cheapest that holds its content.
func (r *packingRun) cheapenBins() {
	m := r.m
	load, sets := make([]int64, m.Dims), make([]uint64, m.Words)
	var out []Bin
	for _, bin := range r.bins {
		m.sumParts(bin.Parts, load, sets)
		for bin.Times > 0 {
			binType, n := r.cheaperOption(&bin, load, sets)
			out = append(out, Bin{BinType: binType, Parts: bin.Parts, Times: n})
			bin.Times -= n
		}
	}
	r.bins = out
}

// sumParts says what the content asks for and in which sets it has to be.
func (m *model) sumParts(parts []Part, load []int64, sets []uint64) {
	clear(load)
	clear(sets)
	for _, p := range parts {
		for j, x := range m.NeedOf(p.Item) {
			load[j] += x * int64(p.Count)
		}
		sets[m.SetOf[p.Item]>>6] |= 1 << (m.SetOf[p.Item] & 63)
	}
}

// suits reports whether a node of the option can hold the content.
func (m *model) suits(option int, parts []Part, load []int64, sets []uint64) bool {
	for w, s := range sets {
		if s&^m.OptionSets[option*m.Words+w] != 0 {
			return false
		}
	}
	return fits(load, m.RoomOf(option)) && (m.p.Suits == nil || m.p.Suits(m.options[option], parts))
}

// cheaperOption finds the cheapest bin type for some of the bin's nodes and says for how many: for all of them if the
// supply allows, else for one, else all stay what they are.
func (r *packingRun) cheaperOption(bin *Bin, load []int64, sets []uint64) (binType, n int) {
	price := r.m.p.BinTypes[bin.BinType].Price
	for k, binType := range r.m.options {
		if r.m.p.BinTypes[binType].Price >= price {
			break
		}
		if !r.m.suits(k, bin.Parts, load, sets) {
			continue
		}
		for _, n := range []int{bin.Times, 1} {
			r.supply.buy(bin.BinType, -n)
			if r.supply.allows(binType, n) == n {
				r.supply.buy(binType, n)
				return binType, n
			}
			r.supply.buy(bin.BinType, n)
		}
	}
	return bin.BinType, bin.Times
}

// solution is the run's answer.
func (r *packingRun) solution() Solution {
	s := Solution{Bins: r.bins, Unplaced: r.unplaced}
	for i := range s.Bins {
		s.Price += r.m.p.BinTypes[s.Bins[i].BinType].Price * float64(s.Bins[i].Times)
	}
	return s
}
