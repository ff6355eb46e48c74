package pack

import "math"

// relaxation is an answer to the dual of the problem with fractions: what resources cost on each option, and from
// it what each pod is worth.
type relaxation struct {
	bound float64
	worth []float64 // by item; what one pod has to pay at least
	rate  []float64 // by option and dimension: what a unit costs; a node's room costs at most its price
	merit []float64 // by option: the worth of what a node can hold at best, for its price
	rowOf []int32   // by item: its row, −1 for those that nothing holds
	// isGuess says that there was too much to tell apart for the linear program: the rates are a guess, as good for a
	// bound as any.
	isGuess bool
}

// relax solves the linear program nearly and turns its answer into rates that hold for every item. Unless it has to be
// exact it stops where the rates are good enough to choose by; the bound holds in any case.
func relax(m *model, exact bool) relaxation {
	out := relaxation{worth: make([]float64, len(m.p.Items)), rate: make([]float64, len(m.options)*m.d),
		merit: make([]float64, len(m.options))}
	step := roughStep
	if exact {
		step = fineStep
	}
	rows, groups := fewRows, maxGroups
	if !exact { // packing finds out by itself what shared marks cost
		groups = 0
	}
	lp := newLinearProgram(m, rows, step, groups)
	if out.rowOf = lp.rowOf; len(lp.rows) == 0 {
		return out
	}
	if len(lp.rows) > maxRows {
		out.splitEvenly(m, lp)
		return out
	}
	rough := newMasterProblem(lp)
	rough.start()
	rough.narrow()
	for range maxRounds {
		rough.solveInPlay(roughGap)
		if rough.askOthers(nearPrice) {
			break
		}
	}
	for s := range out.worth {
		out.worth[s] = math.Inf(1)
	}
	if exact {
		rough.refine().finish(&out)
	} else {
		rough.deriveBound(&out)
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
		r.bound += r.worth[s] * float64(m.p.Items[s].Count)
	}
}

// splitEvenly splits the price of each option evenly over its dimensions.
func (r *relaxation) splitEvenly(m *model, lp *linearProgram) {
	r.isGuess = true
	for s := range r.worth {
		r.worth[s] = math.Inf(1)
	}
	marks := make([]float64, len(lp.rows))
	for k, binType := range m.options {
		rate := r.rate[k*m.d : k*m.d+m.d]
		for j, room := range m.roomOf(k) {
			if room > 0 {
				rate[j] = m.p.BinTypes[binType].Price / float64(m.d) / float64(room)
			}
		}
		m.lowerWorth(r.worth, k, rate, marks, lp.rowOf)
	}
	r.sum(m)
}

// lowerWorth lowers the worth of the items to what they pay on an option.
func (m *model) lowerWorth(worth []float64, option int, rate, marks []float64, of []int32) {
	for _, s := range m.fittingItems[option] {
		sum := marks[of[s]]
		for j, x := range rate {
			sum += x * m.needf[int(s)*m.d+j]
		}
		worth[s] = min(worth[s], sum)
	}
}
