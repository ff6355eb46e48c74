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
	rough := newMarket(newProgram(m, rows, step, groups))
	out.row = rough.pr.of
	if len(rough.pr.rows) == 0 {
		return out
	}
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
	for s, w := range out.worth {
		if math.IsInf(w, 1) {
			out.worth[s] = 0
		}
		out.bound += out.worth[s] * float64(m.p.Stacks[s].Count)
	}
	return out
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
