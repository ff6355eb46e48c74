package lp

import (
	"cmp"
	"math"
	"slices"
)

// How far the linear program is driven: until no kind out of play is undercut by more than this, or for so many rounds.
const (
	nearPrice      = 1.02
	plausiblePrice = 1.3
	closeEnough    = 1.003
	maxRounds      = 5
	maxMarks       = 32 // with so many dimensions in play, no shared marks are added to them
)

// masterProblem is the linear program at work: a few kinds in play, and all the others, which have to be asked now and
// then whether they are content.
type masterProblem struct {
	program  *linearProgram
	pricings []*pricingProblem
	inPlay   []bool    // by place in pricings
	dims     [][]int   // by place in pricings: the dimensions that count in the bargain
	alone    []float64 // by row: what a pod pays on the option that is cheapest for its row alone
	worth    []float64 // by row

	widened bool // some dimensions have just been added

	hints  []*pricingProblem // by place in pricings: the same option in a rougher master problem
	hinted []float64         // by row: what a pod paid at least there

	cheapest []int // by row: the place of the option that is cheapest for it alone, −1 if none holds it
	everyDim []int
}

// finish drives the program to its end.
func (mp *masterProblem) finish(out *Relaxation) {
	for range maxRounds {
		mp.solveInPlay(middleGap)
		if mp.askOthers(closeEnough) {
			break
		}
	}
	mp.solveInPlay(fineGap)
	mp.deriveBound(out)
}

// newMasterProblem has all the options that hold something.
func newMasterProblem(lp *linearProgram) *masterProblem {
	p := &masterProblem{program: lp}
	for k := range lp.m.Prices {
		if pp := newPricingProblem(lp, k); len(pp.rows) > 0 {
			p.pricings = append(p.pricings, pp)
		}
	}
	// Options of the same sets side by side keep the equations of the bargain narrow.
	slices.SortStableFunc(p.pricings, func(a, b *pricingProblem) int {
		return slices.Compare(lp.m.SetsOf(a.option), lp.m.SetsOf(b.option))
	})
	return p
}

// refine goes on with all rows, but only with the options that matter and where they matter.
func (mp *masterProblem) refine() *masterProblem {
	out := &masterProblem{program: newLinearProgram(mp.program.m, maxRows, math.Inf(1), maxGroups)}
	for _, p := range mp.pricings {
		p.solve(mp.worth)
		out.pricings = append(out.pricings, newPricingProblem(out.program, p.option))
		out.hints = append(out.hints, p)
	}
	out.start()
	out.inPlay, out.dims = mp.inPlay, mp.dims
	out.ensureEveryRow()
	out.hinted = make([]float64, len(out.program.rows))
	for i := range out.hinted {
		out.hinted[i] = math.Inf(1)
	}
	for k, p := range out.pricings {
		if out.inPlay[k] {
			for _, i := range p.rows {
				out.hinted[i] = min(out.hinted[i], out.hints[k].dualPriceOf(&out.program.rows[i]))
			}
		}
	}
	return out
}

// start brings into play the options that are cheapest for some row, alone or beside other pods that leave it a part of
// the price.
func (mp *masterProblem) start() {
	lp, n := mp.program, len(mp.program.rows)
	mp.alone, mp.worth = make([]float64, n), make([]float64, n)
	mp.inPlay, mp.dims = make([]bool, len(mp.pricings)), make([][]int, len(mp.pricings))
	for j := range lp.d {
		mp.everyDim = append(mp.everyDim, j)
	}
	for i := range mp.alone {
		mp.alone[i] = math.Inf(1)
	}
	for _, p := range mp.pricings {
		for at, i := range p.rows {
			mp.alone[i] = min(mp.alone[i], max(p.price*p.size[at], 1e-12))
		}
	}
	least := make([]float64, n)
	for _, power := range []float64{1, 3, math.Inf(1)} {
		best := make([]int, n)
		for i := range least {
			best[i], least[i] = -1, math.Inf(1)
		}
		for k, p := range mp.pricings {
			for _, i := range p.rows {
				if c := p.price * mp.norm(p, &lp.rows[i], power); c < least[i] {
					best[i], least[i] = k, c
				}
			}
		}
		for _, k := range best {
			if k >= 0 {
				mp.inPlay[k] = true
			}
		}
		mp.cheapest = best
	}
}

// norm is a pod's size on an option: its largest share (infinite power), the sum of its shares, or something between.
func (mp *masterProblem) norm(p *pricingProblem, r *demandRow, power float64) float64 {
	sum, most := 0.0, 0.0
	for j, x := range r.need {
		if x > 0 {
			share := x / p.room[j]
			most = max(most, share)
			if power == 1 {
				sum += share
			} else if power == 3 {
				sum += share * share * share
			}
		}
	}
	switch power {
	case 1:
		return sum
	case 3:
		return math.Cbrt(sum)
	}
	return most
}

// narrow leaves in play only the options on which money will probably be spent, and only the dimensions of theirs that
// will probably run out.
func (mp *masterProblem) narrow() {
	for k := range mp.pricings {
		mp.dims[k] = mp.everyDim
	}
	b := mp.newBarrier()
	spent, o := b.estimateSpending(), 0
	for k, in := range mp.inPlay {
		if in {
			mp.inPlay[k] = spent[o] > estimateLeast
			mp.keepDims(k, b.split[b.base[o]:b.base[o+1]])
			o++
		}
	}
	mp.ensureEveryRow()
}

// ensureEveryRow makes sure that each row has an option in play.
func (mp *masterProblem) ensureEveryRow() {
	served := make([]bool, len(mp.program.rows))
	for k, p := range mp.pricings {
		for _, i := range p.rows {
			served[i] = served[i] || mp.inPlay[k]
		}
	}
	for i, ok := range served {
		if k := mp.cheapest[i]; !ok && k >= 0 {
			mp.inPlay[k] = true
			if mp.dims[k] == nil {
				mp.dims[k] = mp.everyDim
			}
		}
	}
}

// keepDims keeps the option's dimensions that bear a good part of its price, and those without which some row would
// stay there for next to nothing.
func (mp *masterProblem) keepDims(k int, split []float64) {
	p := mp.pricings[k]
	keep := make([]bool, mp.program.d)
	for j, w := range split {
		keep[j] = w > 0.02
	}
	for _, i := range p.rows {
		most, kept, dim := 0.0, 0.0, 0
		for j, x := range mp.program.rows[i].need {
			if x /= max(p.room[j], 1e-12); x > most {
				most, dim = x, j
			}
			if keep[j] {
				kept = max(kept, x)
			}
		}
		if kept < 0.1*most {
			keep[dim] = true
		}
	}
	mp.dims[k] = nil
	for j, in := range keep {
		if in {
			mp.dims[k] = append(mp.dims[k], j)
		}
	}
}

// eachNeed yields what a pod needs in the dimensions in which it needs something.
func (r *demandRow) eachNeed(d int, f func(dim int, amount float64)) {
	for j, x := range r.need {
		if x > 0 {
			f(j, x)
		}
	}
	for k, group := range r.groups {
		f(d+int(group), r.shares[k])
	}
}

// isPlausible reports whether the row could go to the option, by what was found out about it before.
func (mp *masterProblem) isPlausible(k int, i int32) bool {
	if mp.hints == nil || mp.hints[k] == nil {
		return true
	}
	return mp.hints[k].dualPriceOf(&mp.program.rows[i]) <= mp.hinted[i]*plausiblePrice
}

// solveInPlay finds the worths at which the options in play are content.
func (mp *masterProblem) solveInPlay(precision float64) {
	b := mp.newBarrier()
	b.run(precision)
	mp.addDims(b)
	for i := range mp.worth {
		mp.worth[i] = 0
		if len(b.pairs[i]) > 0 {
			mp.worth[i] = mp.alone[i] * b.fee[i]
		}
	}
}

// addDims finds dimensions that were thought not to run out and do.
func (mp *masterProblem) addDims(b *barrier) {
	d, o := mp.program.d, 0
	mp.widened = false
	load := make([]float64, b.options*d)
	room := make([]*pricingProblem, 0, b.options)
	for k, p := range mp.pricings {
		if mp.inPlay[k] {
			room = append(room, p)
		}
	}
	for i := range b.pairs {
		for _, p := range b.pairs[i] {
			pp := room[p.option]
			mp.program.rows[i].eachNeed(mp.program.m.Dims, func(j int, x float64) {
				load[p.option*d+j] += p.y * pp.price * x / pp.room[j] / mp.alone[i]
			})
		}
	}
	total := b.base[b.options]
	for k := range mp.pricings {
		if !mp.inPlay[k] {
			continue
		}
		for j, x := range load[o*d : o*d+d] {
			if x > b.spent[o]*closeEnough+1e-6 && !slices.Contains(mp.dims[k], j) &&
				(j < mp.program.m.Dims || mp.hints != nil && total < maxMarks) {
				mp.dims[k] = append(slices.Clone(mp.dims[k]), j)
				mp.widened = true
				total++
			}
		}
		o++
	}
}

// newBarrier states the program over the options in play.
func (mp *masterProblem) newBarrier() *barrier {
	lp := mp.program
	b := &barrier{rows: len(lp.rows), base: []int{0}, pairs: make([][]rowOption, len(lp.rows)), demand: make([]float64,
		len(lp.rows))}
	total := 0.0
	for i := range lp.rows {
		if mp.cheapest[i] < 0 {
			continue // on average its pods fit nowhere
		}
		b.demand[i] = lp.rows[i].pods * mp.alone[i]
		total += b.demand[i]
	}
	for i := range b.demand {
		b.demand[i] /= total
	}
	place := make([]int, lp.d)
	for k, pp := range mp.pricings {
		if !mp.inPlay[k] {
			continue
		}
		for j := range place {
			place[j] = -1
		}
		for at, j := range mp.dims[k] {
			place[j] = at
		}
		n := len(mp.dims[k])
		shares := make([]float64, n*len(pp.rows))
		for at, i := range pp.rows {
			p := rowOption{option: b.options, base: b.base[b.options], share: shares[at*n : at*n+n]}
			lp.rows[i].eachNeed(lp.m.Dims, func(j int, x float64) {
				if place[j] >= 0 {
					p.share[place[j]] = pp.price * x / pp.room[j] / mp.alone[i]
				}
			})
			if mp.isPlausible(k, i) {
				b.pairs[i] = append(b.pairs[i], p)
			}
		}
		b.options++
		b.base = append(b.base, b.base[len(b.base)-1]+n)
	}
	return b
}

// askOthers asks the options out of play; those for which pods would pay more than their price come into play.
func (mp *masterProblem) askOthers(tolerance float64) bool {
	type claim struct {
		place int
		ratio float64
	}
	var claims []claim
	for k, p := range mp.pricings {
		p.solve(mp.worth)
		switch {
		case p.value <= p.price*tolerance:
		case !mp.inPlay[k]:
			claims = append(claims, claim{k, p.value / p.price})
		case mp.hints != nil && mp.hints[k] != nil:
			mp.hints[k], mp.widened = nil, true // the hint left something out
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.place, b.place))
	})
	for _, c := range claims[:min(len(claims), 16)] {
		mp.inPlay[c.place] = true
		p := mp.pricings[c.place]
		split := make([]float64, mp.program.d)
		for j := range split {
			split[j] = p.rate[j] * p.room[j] / p.value
		}
		mp.keepDims(c.place, split)
	}
	return len(claims) == 0 && !mp.widened
}

// deriveBound turns the pricing problems' rates into a bound: each problem's rates are scaled so that a node costs
// exactly its price; a pod then pays on the cheapest node that takes it.
func (mp *masterProblem) deriveBound(out *Relaxation) {
	for _, p := range mp.pricings {
		p.solve(mp.worth)
		mp.deriveRates(p, out)
	}
}

func (mp *masterProblem) deriveRates(p *pricingProblem, out *Relaxation) {
	m, scale := mp.program.m, 0.0
	if p.value > 0 {
		scale = p.price / p.value
		out.Merit[p.option] = p.value / max(p.price, 1e-12)
	}
	marks := make([]float64, len(mp.program.rows))
	for i := range marks {
		for k, group := range mp.program.rows[i].groups {
			marks[i] += scale * p.rate[m.Dims+int(group)] * mp.program.rows[i].shares[k]
		}
	}
	rate := out.Rate[p.option*m.Dims : p.option*m.Dims+m.Dims]
	for j := range rate {
		rate[j] = p.rate[j] * scale / mp.program.scale[j]
	}
	m.lowerWorth(out.Worth, p.option, rate, marks, mp.program.rowOf)
}
