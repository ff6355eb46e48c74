package pack

import "math"

// relaxation is an answer to the dual of the problem with fractions: what resources cost on each kind of node, and from
// it what each pod is worth.
type relaxation struct {
	bound float64
	worth []float64 // by stack; what one pod has to pay at least
	rate  []float64 // by kind and dimension: what a unit costs; a node's room costs at most its price
	merit []float64 // by kind: the worth of what a node can hold at best, for its price
	row   []int32   // by stack: its row, −1 for those that nothing holds
	// plain says that there was too much to tell apart for the linear program: the rates are a guess, as good for a bound as any.
	plain bool
}

// relax solves the linear program nearly and turns its answer into rates that hold for every stack. Unless it has to be
// exact it stops where the rates are good enough to choose by; the bound holds in any case.
func relax(m *model, exact bool) relaxation {
	out := relaxation{worth: make([]float64, len(m.p.Stacks)), rate: make([]float64, len(m.kinds)*m.d),
		merit: make([]float64, len(m.kinds))}
	step := roughStep
	if exact {
		step = fineStep
	}
	rows, groups := fewRows, maxGroups
	if !exact { // packing finds out by itself what shared marks cost
		groups = 0
	}
	pr := newProgram(m, rows, step, groups)
	if out.row = pr.of; len(pr.rows) == 0 {
		return out
	}
	if len(pr.rows) > maxRows {
		out.even(m, pr)
		return out
	}
	rough := newMarket(pr)
	rough.open()
	rough.narrow()
	for range maxRounds {
		rough.bargain(roughGap)
		if rough.satisfied(nearly) {
			break
		}
	}
	for s := range out.worth {
		out.worth[s] = math.Inf(1)
	}
	if exact {
		rough.refine().finish(&out)
	} else {
		rough.conclude(&out)
	}
	out.sum(m)
	return out
}

// sum adds up what all pods are worth.
func (r *relaxation) sum(m *model) {
	for s, w := range r.worth {
		if math.IsInf(w, 1) {
			r.worth[s] = 0
		}
		r.bound += r.worth[s] * float64(m.p.Stacks[s].Count)
	}
}

// even splits the price of each kind evenly over its dimensions.
func (r *relaxation) even(m *model, pr *program) {
	r.plain = true
	for s := range r.worth {
		r.worth[s] = math.Inf(1)
	}
	marks := make([]float64, len(pr.rows))
	for k, offer := range m.kinds {
		rate := r.rate[k*m.d : k*m.d+m.d]
		for j, room := range m.roomOf(k) {
			if room > 0 {
				rate[j] = m.p.Offers[offer].Price / float64(m.d) / float64(room)
			}
		}
		m.charge(r.worth, k, rate, marks, pr.of)
	}
	r.sum(m)
}

// charge lowers the worth of the stacks to what they pay on a kind of node.
func (m *model) charge(worth []float64, kind int, rate, marks []float64, of []int32) {
	for _, s := range m.holds[kind] {
		sum := marks[of[s]]
		for j, x := range rate {
			sum += x * m.needf[int(s)*m.d+j]
		}
		worth[s] = min(worth[s], sum)
	}
}
