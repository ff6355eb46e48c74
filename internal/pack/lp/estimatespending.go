package lp

import "math"

// How the sketch is drawn: rounds, and how sharply rows prefer the cheaper kind in the first and the last of them.
const (
	estimateRounds = 20
	softFirst      = 8.0
	softLast       = 120.0
	// Kinds on which less than this part of the money is spent are left out of the exact work; they are asked later.
	estimateLeast = 2e-3
)

// estimateSpending finds out cheaply on which options money will be spent, and in split for which of their dimensions.
// In turn the rows share themselves out over the options, more to the cheaper, and each option shifts its price towards
// the dimensions that it runs out of.
func (b *barrier) estimateSpending() []float64 {
	n := b.base[b.options]
	b.split = make([]float64, n)
	for o := range b.options {
		for j := b.base[o]; j < b.base[o+1]; j++ {
			b.split[j] = 1 / float64(b.base[o+1]-b.base[o])
		}
	}
	load, spent := make([]float64, n), make([]float64, b.options)
	for round := range estimateRounds {
		done := float64(round) / (estimateRounds - 1)
		soft := softFirst * math.Pow(softLast/softFirst, done)
		clear(load)
		for g := range b.pairs {
			b.spreadRow(g, soft, load)
		}
		for o := range b.options {
			used := b.shiftPrice(o, load)
			if round >= estimateRounds/2 {
				spent[o] += used * 2 / estimateRounds
			}
		}
	}
	return spent
}

// spreadRow adds what the row asks of each option to the load.
func (b *barrier) spreadRow(g int, soft float64, load []float64) {
	list := b.pairs[g]
	least := math.Inf(1)
	for i := range list {
		list[i].s = list[i].dot(b.split)
		least = min(least, list[i].s)
	}
	sum := 0.0
	for i := range list {
		p := &list[i]
		p.y = 0
		if x := soft * (p.s/least - 1); x < 12 {
			p.y = math.Exp(-x)
			sum += p.y
		}
	}
	for i := range list {
		p := &list[i]
		if p.y == 0 {
			continue
		}
		f := b.demand[g] * p.y / sum
		v := load[p.base : p.base+len(p.share)]
		for j, x := range p.share {
			v[j] += f * x
		}
	}
}

// shiftPrice moves the option's price towards where its load is and says what is spent on it.
func (b *barrier) shiftPrice(o int, load []float64) float64 {
	v, l := b.split[b.base[o]:b.base[o+1]], load[b.base[o]:b.base[o+1]]
	used, most := 0.0, 0.0
	for j, w := range v {
		used += w * l[j]
		most = max(most, l[j])
	}
	if used <= 0 {
		return 0
	}
	sum := 0.0
	for j := range v {
		v[j] = max(v[j]*math.Sqrt(l[j]/used), 1e-4)
		sum += v[j]
	}
	for j := range v {
		v[j] /= sum
	}
	return most
}
