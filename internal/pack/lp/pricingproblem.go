package lp

// pricingProblem is the small linear program of one kind: with which fractions of pods is one node worth the most? It
// is solved by the simplex method; its dual says what a unit of each dimension is worth there.
type pricingProblem struct {
	program *linearProgram
	option  int
	price   float64
	room    []float64
	rows    []int32 // those that it can hold
	size    []float64

	basis       []int32 // by dimension: place in rows, or −1−dimension for what stays free
	inverse     []float64
	basisValues []float64 // values of the basis
	rate        []float64 // what a unit of each dimension is worth
	value       float64   // of a node
	direction   []float64
}

func newPricingProblem(lp *linearProgram, option int) *pricingProblem {
	m, d := lp.m, lp.d
	p := &pricingProblem{program: lp, option: option, price: m.Prices[option]}
	floats := make([]float64, 4*d+d*d)
	p.room, p.basisValues, p.rate, p.direction, p.inverse = floats[:d], floats[d:2*d], floats[2*d:3*d], floats[3*d:4*d],
		floats[4*d:]
	p.basis = make([]int32, d)
	for j := range d {
		p.room[j] = 1
		if j < m.Dims {
			p.room[j] = max(0, float64(m.RoomOf(option)[j])/lp.scale[j])
		}
	}
	p.capRoom()
	p.rows, p.size = make([]int32, 0, len(lp.rows)), make([]float64, 0, len(lp.rows))
	for i := range lp.rows {
		r := &lp.rows[i]
		if m.IsIn(option, r.feasible) {
			if size := r.sizeIn(p.room, m.Dims); size <= 1 {
				p.rows, p.size = append(p.rows, int32(i)), append(p.size, size)
			}
		}
	}
	for j := range d {
		p.basis[j], p.inverse[j*d+j], p.basisValues[j] = int32(-1-j), 1, p.room[j]
	}
	return p
}

// capRoom takes off the room that all the pods together could not fill.
func (pp *pricingProblem) capRoom() {
	m := pp.program.m
	sum := make([]float64, m.Dims)
	for _, st := range m.FittingItems[pp.option] {
		for j := range sum {
			sum[j] += m.NeedsFloat[int(st)*m.Dims+j] * float64(m.Counts[st])
		}
	}
	for j := range sum {
		pp.room[j] = min(pp.room[j], sum[j]/pp.program.scale[j])
	}
}

// sizeIn is the largest part of the room that a pod takes in any dimension.
func (r *demandRow) sizeIn(room []float64, d int) float64 {
	size := 1e-9
	for j, x := range r.need {
		if x > 0 {
			size = max(size, x/room[j])
		}
	}
	for _, share := range r.shares {
		size = max(size, share)
	}
	return size
}

// solve finds the most valuable content.
func (pp *pricingProblem) solve(worth []float64) {
	for range 6*pp.program.d + 40 {
		pp.reprice(worth)
		enter, ok := pp.entering(worth)
		if !ok || !pp.pivot(enter) {
			break
		}
	}
	pp.scaleRates(worth)
}

// reprice works out the rates that go with the basis.
func (pp *pricingProblem) reprice(worth []float64) {
	d := pp.program.d
	clear(pp.rate)
	for i, b := range pp.basis {
		if b >= 0 {
			w := worth[pp.rows[b]]
			for j, x := range pp.inverse[i*d : i*d+d] {
				pp.rate[j] += w * x
			}
		}
	}
}

// dualPrice is what a pod of the row has to pay at the rates.
func (pp *pricingProblem) dualPrice(r *demandRow) float64 {
	sum := 0.0
	for j, x := range r.need {
		sum += pp.rate[j] * x
	}
	for k, group := range r.groups {
		sum += pp.rate[pp.program.m.Dims+int(group)] * r.shares[k]
	}
	return sum
}

// dualPriceOf is what a pod of a row, which may be of another program, would pay on this kind if a node cost its price.
func (pp *pricingProblem) dualPriceOf(r *demandRow) float64 {
	if pp.value <= 0 {
		return 0
	}
	return pp.dualPrice(r) * pp.price / pp.value
}

// entering chooses a row that should have more, or free room that is wanted back.
func (pp *pricingProblem) entering(worth []float64) (best int32, ok bool) {
	most := 1e-7*pp.price + 1e-15
	for j, rate := range pp.rate {
		if g := -rate * pp.room[j]; g > most {
			best, most, ok = int32(-1-j), g, true
		}
	}
	for at, i := range pp.rows {
		if g := (worth[i] - pp.dualPrice(&pp.program.rows[i])) / pp.size[at]; g > most {
			best, most, ok = int32(at), g, true
		}
	}
	return best, ok
}

// pivot moves the entering variable until something stands in the way.
func (pp *pricingProblem) pivot(enter int32) bool {
	d := pp.program.d
	pp.computeDirection(enter)
	step, leave := 0.0, -1
	for i, a := range pp.direction {
		if a > 1e-11 {
			if t := max(pp.basisValues[i], 0) / a; leave < 0 || t < step {
				step, leave = t, i
			}
		}
	}
	if leave < 0 {
		return false
	}
	for i, a := range pp.direction {
		pp.basisValues[i] -= step * a
	}
	pp.basisValues[leave], pp.basis[leave] = step, enter
	pivot := pp.inverse[leave*d : leave*d+d]
	f := 1 / pp.direction[leave]
	for j := range pivot {
		pivot[j] *= f
	}
	for i, a := range pp.direction {
		if i != leave && a != 0 {
			line := pp.inverse[i*d : i*d+d]
			for j, p := range pivot {
				line[j] -= a * p
			}
		}
	}
	return true
}

// computeDirection works out how the basis answers to the entering variable.
func (pp *pricingProblem) computeDirection(enter int32) {
	d := pp.program.d
	if enter < 0 {
		for i := range d {
			pp.direction[i] = pp.inverse[i*d+int(-1-enter)]
		}
		return
	}
	r := &pp.program.rows[pp.rows[enter]]
	for i := range d {
		line, sum := pp.inverse[i*d:i*d+d], 0.0
		for j, x := range r.need {
			sum += line[j] * x
		}
		for k, group := range r.groups {
			sum += line[pp.program.m.Dims+int(group)] * r.shares[k]
		}
		pp.direction[i] = sum
	}
}

// scaleRates works out what a node costs at the rates. Rates below zero, left over from rounding, count as zero, and
// where a pod would still pay less than it is worth all rates are raised.
func (pp *pricingProblem) scaleRates(worth []float64) {
	pp.value = 0
	for j := range pp.rate {
		pp.rate[j] = max(pp.rate[j], 0)
		pp.value += pp.rate[j] * pp.room[j]
	}
	raise := 1.0
	for _, i := range pp.rows {
		if due := pp.dualPrice(&pp.program.rows[i]); due > 0 {
			raise = max(raise, worth[i]/due)
		}
	}
	pp.value *= raise
	for j := range pp.rate {
		pp.rate[j] *= raise
	}
}
