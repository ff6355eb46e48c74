package lp

import "math"

// Relaxation is an answer to the dual of the problem with fractions: what resources cost on each option, and from
// it what each pod is worth.
type Relaxation struct {
	// Bound is a price that no choice of nodes can undercut.
	Bound float64
	// Worth is by item what one pod has to pay at least.
	Worth []float64
	// Rate is by option and dimension what a unit costs; a node's room costs at most its price.
	Rate []float64
	// Merit is by option the worth of what a node can hold at best, for its price.
	Merit []float64
	// RowOf is by item the row of the linear program that it is in, −1 for those that nothing holds.
	RowOf []int32
	// IsGuess says that there was too much to tell apart for the linear program: the rates are a guess, as good for a
	// bound as any.
	IsGuess bool
}

// Relax solves the linear program nearly and turns its answer into rates that hold for every item. Unless it has to be
// exact it stops where the rates are good enough to choose by; the bound holds in any case.
func Relax(m *Problem, exact bool) Relaxation {
	out := Relaxation{Worth: make([]float64, len(m.Counts)), Rate: make([]float64, len(m.Prices)*m.Dims),
		Merit: make([]float64, len(m.Prices))}
	step := roughStep
	if exact {
		step = fineStep
	}
	rows, groups := fewRows, maxGroups
	if !exact { // packing finds out by itself what shared marks cost
		groups = 0
	}
	lp := newLinearProgram(m, rows, step, groups)
	if out.RowOf = lp.rowOf; len(lp.rows) == 0 {
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
	for s := range out.Worth {
		out.Worth[s] = math.Inf(1)
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
func (r *Relaxation) sum(m *Problem) {
	for s, w := range r.Worth {
		if math.IsInf(w, 1) {
			r.Worth[s] = 0
		}
		r.Bound += r.Worth[s] * float64(m.Counts[s])
	}
}

// splitEvenly splits the price of each option evenly over its dimensions.
func (r *Relaxation) splitEvenly(m *Problem, lp *linearProgram) {
	r.IsGuess = true
	for s := range r.Worth {
		r.Worth[s] = math.Inf(1)
	}
	marks := make([]float64, len(lp.rows))
	for k, price := range m.Prices {
		rate := r.Rate[k*m.Dims : k*m.Dims+m.Dims]
		for j, room := range m.RoomOf(k) {
			if room > 0 {
				rate[j] = price / float64(m.Dims) / float64(room)
			}
		}
		m.lowerWorth(r.Worth, k, rate, marks, lp.rowOf)
	}
	r.sum(m)
}

// lowerWorth lowers the worth of the items to what they pay on an option.
func (m *Problem) lowerWorth(worth []float64, option int, rate, marks []float64, of []int32) {
	for _, s := range m.FittingItems[option] {
		sum := marks[of[s]]
		for j, x := range rate {
			sum += x * m.NeedsFloat[int(s)*m.Dims+j]
		}
		worth[s] = min(worth[s], sum)
	}
}
