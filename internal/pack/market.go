package pack

import (
	"cmp"
	"math"
	"slices"
)

// How far the linear program is driven: until no kind out of play is undercut by more than this, or for so many rounds.
const (
	nearly    = 1.02
	plausibly = 1.3
	enough    = 1.003
	maxRounds = 5
	maxMarks  = 32 // with so many dimensions in play, no shared marks are added to them
)

// market is the linear program at work: a few kinds in play, and all the others, which have to be asked now and then
// whether they are content.
type market struct {
	pr      *program
	sellers []*seller
	inPlay  []bool    // by place in sellers
	dims    [][]int   // by place in sellers: the dimensions that count in the bargain
	alone   []float64 // by row: what a pod pays on the kind that is cheapest for its row alone
	worth   []float64 // by row

	widened bool // some dimensions have just been added

	hints  []*seller // by place in sellers: the same kind in a rougher market
	hinted []float64 // by row: what a pod paid at least there

	cheapest []int // by row: the place of the kind that is cheapest for it alone, −1 if none holds it
	everyDim []int
}

// finish drives the program to its end.
func (mk *market) finish(out *relaxation) {
	for range maxRounds {
		mk.bargain(middleGap)
		if mk.satisfied(enough) {
			break
		}
	}
	mk.bargain(fineGap)
	mk.conclude(out)
}

// newMarket has all the kinds that hold something.
func newMarket(pr *program) *market {
	mk := &market{pr: pr}
	for k := range pr.m.kinds {
		if s := newSeller(pr, k); len(s.rows) > 0 {
			mk.sellers = append(mk.sellers, s)
		}
	}
	// Kinds of the same sites side by side keep the equations of the bargain narrow.
	slices.SortStableFunc(mk.sellers, func(a, b *seller) int {
		return slices.Compare(pr.m.seenBy(a.kind), pr.m.seenBy(b.kind))
	})
	return mk
}

// refine goes on with all rows, but only with the kinds that matter and where they matter.
func (mk *market) refine() *market {
	out := &market{pr: newProgram(mk.pr.m, maxRows, math.Inf(1), maxGroups)}
	for _, s := range mk.sellers {
		s.solve(mk.worth)
		out.sellers = append(out.sellers, newSeller(out.pr, s.kind))
		out.hints = append(out.hints, s)
	}
	out.open()
	out.inPlay, out.dims = mk.inPlay, mk.dims
	out.serveAll()
	out.hinted = make([]float64, len(out.pr.rows))
	for i := range out.hinted {
		out.hinted[i] = math.Inf(1)
	}
	for k, s := range out.sellers {
		if out.inPlay[k] {
			for _, i := range s.rows {
				out.hinted[i] = min(out.hinted[i], out.hints[k].dueOf(&out.pr.rows[i]))
			}
		}
	}
	return out
}

// open brings into play the kinds that are cheapest for some row, alone or beside other pods that leave it a part of the
// price.
func (mk *market) open() {
	pr, n := mk.pr, len(mk.pr.rows)
	mk.alone, mk.worth = make([]float64, n), make([]float64, n)
	mk.inPlay, mk.dims = make([]bool, len(mk.sellers)), make([][]int, len(mk.sellers))
	for j := range pr.d {
		mk.everyDim = append(mk.everyDim, j)
	}
	for i := range mk.alone {
		mk.alone[i] = math.Inf(1)
	}
	for _, s := range mk.sellers {
		for at, i := range s.rows {
			mk.alone[i] = min(mk.alone[i], max(s.price*s.size[at], 1e-12))
		}
	}
	least := make([]float64, n)
	for _, power := range []float64{1, 3, math.Inf(1)} {
		best := make([]int, n)
		for i := range least {
			best[i], least[i] = -1, math.Inf(1)
		}
		for k, s := range mk.sellers {
			for _, i := range s.rows {
				if c := s.price * mk.norm(s, &pr.rows[i], power); c < least[i] {
					best[i], least[i] = k, c
				}
			}
		}
		for _, k := range best {
			if k >= 0 {
				mk.inPlay[k] = true
			}
		}
		mk.cheapest = best
	}
}

// norm is a pod's size on a kind: its largest share (infinite power), the sum of its shares, or something between.
func (mk *market) norm(s *seller, r *row, power float64) float64 {
	sum, most := 0.0, 0.0
	for j, x := range r.need {
		if x > 0 {
			share := x / s.room[j]
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

// narrow leaves in play only the kinds on which money will probably be spent, and only the dimensions of theirs that
// will probably run out.
func (mk *market) narrow() {
	for k := range mk.sellers {
		mk.dims[k] = mk.everyDim
	}
	b := mk.barrier()
	spent, o := b.sketch(), 0
	for k, in := range mk.inPlay {
		if in {
			mk.inPlay[k] = spent[o] > sketchLeast
			mk.focus(k, b.split[b.base[o]:b.base[o+1]])
			o++
		}
	}
	mk.serveAll()
}

// serveAll makes sure that each row has a kind in play.
func (mk *market) serveAll() {
	served := make([]bool, len(mk.pr.rows))
	for k, s := range mk.sellers {
		for _, i := range s.rows {
			served[i] = served[i] || mk.inPlay[k]
		}
	}
	for i, ok := range served {
		if k := mk.cheapest[i]; !ok && k >= 0 {
			mk.inPlay[k] = true
			if mk.dims[k] == nil {
				mk.dims[k] = mk.everyDim
			}
		}
	}
}

// focus keeps the kind's dimensions that bear a good part of its price, and those without which some row would stay there
// for next to nothing.
func (mk *market) focus(k int, split []float64) {
	s := mk.sellers[k]
	keep := make([]bool, mk.pr.d)
	for j, w := range split {
		keep[j] = w > 0.02
	}
	for _, i := range s.rows {
		most, kept, dim := 0.0, 0.0, 0
		for j, x := range mk.pr.rows[i].need {
			if x /= max(s.room[j], 1e-12); x > most {
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
	mk.dims[k] = nil
	for j, in := range keep {
		if in {
			mk.dims[k] = append(mk.dims[k], j)
		}
	}
}

// each yields what a pod needs in the dimensions in which it needs something.
func (r *row) each(d int, f func(dim int, amount float64)) {
	for j, x := range r.need {
		if x > 0 {
			f(j, x)
		}
	}
	for k, group := range r.groups {
		f(d+int(group), r.shares[k])
	}
}

// plausible reports whether the row could go to the kind, by what was found out about it before.
func (mk *market) plausible(k int, i int32) bool {
	if mk.hints == nil || mk.hints[k] == nil {
		return true
	}
	return mk.hints[k].dueOf(&mk.pr.rows[i]) <= mk.hinted[i]*plausibly
}

// bargain finds the worths at which the kinds in play are content.
func (mk *market) bargain(precision float64) {
	b := mk.barrier()
	b.run(precision)
	mk.widen(b)
	for i := range mk.worth {
		mk.worth[i] = 0
		if len(b.pairs[i]) > 0 {
			mk.worth[i] = mk.alone[i] * b.fee[i]
		}
	}
}

// widen finds dimensions that were thought not to run out and do.
func (mk *market) widen(b *barrier) {
	d, o := mk.pr.d, 0
	mk.widened = false
	load := make([]float64, b.kinds*d)
	room := make([]*seller, 0, b.kinds)
	for k, s := range mk.sellers {
		if mk.inPlay[k] {
			room = append(room, s)
		}
	}
	for i := range b.pairs {
		for _, p := range b.pairs[i] {
			s := room[p.kind]
			mk.pr.rows[i].each(mk.pr.m.d, func(j int, x float64) {
				load[p.kind*d+j] += p.y * s.price * x / s.room[j] / mk.alone[i]
			})
		}
	}
	total := b.base[b.kinds]
	for k := range mk.sellers {
		if !mk.inPlay[k] {
			continue
		}
		for j, x := range load[o*d : o*d+d] {
			if x > b.spent[o]*enough+1e-6 && !slices.Contains(mk.dims[k], j) && (j < mk.pr.m.d || mk.hints != nil && total < maxMarks) {
				mk.dims[k] = append(slices.Clone(mk.dims[k]), j)
				mk.widened = true
				total++
			}
		}
		o++
	}
}

// barrier states the program over the kinds in play.
func (mk *market) barrier() *barrier {
	pr := mk.pr
	b := &barrier{rows: len(pr.rows), base: []int{0}, pairs: make([][]pair, len(pr.rows)), demand: make([]float64, len(pr.rows))}
	total := 0.0
	for i := range pr.rows {
		if mk.cheapest[i] < 0 {
			continue // on average its pods fit nowhere
		}
		b.demand[i] = pr.rows[i].pods * mk.alone[i]
		total += b.demand[i]
	}
	for i := range b.demand {
		b.demand[i] /= total
	}
	place := make([]int, pr.d)
	for k, s := range mk.sellers {
		if !mk.inPlay[k] {
			continue
		}
		for j := range place {
			place[j] = -1
		}
		for at, j := range mk.dims[k] {
			place[j] = at
		}
		n := len(mk.dims[k])
		shares := make([]float64, n*len(s.rows))
		for at, i := range s.rows {
			p := pair{kind: b.kinds, base: b.base[b.kinds], share: shares[at*n : at*n+n]}
			pr.rows[i].each(pr.m.d, func(j int, x float64) {
				if place[j] >= 0 {
					p.share[place[j]] = s.price * x / s.room[j] / mk.alone[i]
				}
			})
			if mk.plausible(k, i) {
				b.pairs[i] = append(b.pairs[i], p)
			}
		}
		b.kinds++
		b.base = append(b.base, b.base[len(b.base)-1]+n)
	}
	return b
}

// satisfied asks the kinds out of play; those for which pods would pay more than their price come into play.
func (mk *market) satisfied(tolerance float64) bool {
	type claim struct {
		place int
		ratio float64
	}
	var claims []claim
	for k, s := range mk.sellers {
		s.solve(mk.worth)
		switch {
		case s.value <= s.price*tolerance:
		case !mk.inPlay[k]:
			claims = append(claims, claim{k, s.value / s.price})
		case mk.hints != nil && mk.hints[k] != nil:
			mk.hints[k], mk.widened = nil, true // the hint left something out
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.place, b.place))
	})
	for _, c := range claims[:min(len(claims), 16)] {
		mk.inPlay[c.place] = true
		s := mk.sellers[c.place]
		split := make([]float64, mk.pr.d)
		for j := range split {
			split[j] = s.rate[j] * s.room[j] / s.value
		}
		mk.focus(c.place, split)
	}
	return len(claims) == 0 && !mk.widened
}

// conclude turns the sellers' rates into a bound: each seller's rates are scaled so that a node costs exactly its price;
// a pod then pays on the cheapest node that takes it.
func (mk *market) conclude(out *relaxation) {
	for _, s := range mk.sellers {
		s.solve(mk.worth)
		mk.settle(s, out)
	}
}

func (mk *market) settle(s *seller, out *relaxation) {
	m, scale := mk.pr.m, 0.0
	if s.value > 0 {
		scale = s.price / s.value
		out.merit[s.kind] = s.value / max(s.price, 1e-12)
	}
	marks := make([]float64, len(mk.pr.rows))
	for i := range marks {
		for k, group := range mk.pr.rows[i].groups {
			marks[i] += scale * s.rate[m.d+int(group)] * mk.pr.rows[i].shares[k]
		}
	}
	rate := out.rate[s.kind*m.d : s.kind*m.d+m.d]
	for j := range rate {
		rate[j] = s.rate[j] * scale / mk.pr.scale[j]
	}
	m.charge(out.worth, s.kind, rate, marks, mk.pr.of)
}
