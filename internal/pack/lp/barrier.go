package lp

import "math"

// barrier solves the dual of the linear program by an interior-point method: how is the price of each option in play to
// be split over its dimensions, so that the pods pay as much as possible when each goes where it pays the least?
//
// Everything is relative: an option's split sums to at most one, and a row's fee is counted in what its pods would pay
// if they were alone. A pair's share is what a pod pays on the option if its whole price lies on that dimension.
type barrier struct {
	rows, options int
	base          []int // by option: where its dimensions start in split; one more at the end

	demand []float64     // by row, sums to one
	pairs  [][]rowOption // by row
	split  []float64     // by option and dimension
	fee    []float64     // by row

	slack        []float64 // by option: what is not split
	spent, extra []float64 // multipliers of slack ≥ 0 (by option) and of split ≥ 0

	matrix, right, step []float64
	push                []float64 // by row, during a step
	weight              []float64 // by row: sum of y/s over its pairs
}

// rowOption is a row on an option that can hold it.
type rowOption struct {
	option int
	base   int       // where the option's dimensions start
	share  []float64 // by dimension of the option
	s, y   float64   // how much dearer than the fee it is there, and how many pods go there
	move   float64   // change of s in the step
}

const (
	barrierSteps = 40
	roughGap     = 1e-2 // while kinds still come into play
	middleGap    = 3e-3
	fineGap      = 5e-4
)

// dot is what the row pays for the pair under the split.
func (p *rowOption) dot(split []float64) float64 {
	v := split[p.base : p.base+len(p.share)]
	sum := 0.0
	for j, x := range p.share {
		sum += x * v[j]
	}
	return sum
}

// start chooses an even split and fees below everything.
func (b *barrier) start() {
	n := b.base[b.options]
	b.split, b.extra = make([]float64, n), make([]float64, n)
	b.slack, b.spent = make([]float64, b.options), make([]float64, b.options)
	b.matrix, b.right, b.step = make([]float64, n*n), make([]float64, n), make([]float64, n)
	b.fee, b.push, b.weight = make([]float64, b.rows), make([]float64, b.rows), make([]float64, b.rows)
	for o := range b.options {
		even := 1 / float64(b.base[o+1]-b.base[o]+1)
		b.slack[o] = even
		for j := b.base[o]; j < b.base[o+1]; j++ {
			b.split[j] = even
		}
	}
	mu := 1 / float64(b.options+b.rows)
	for g := range b.pairs {
		if len(b.pairs[g]) == 0 {
			continue
		}
		b.fee[g] = math.Inf(1)
		for i := range b.pairs[g] {
			p := &b.pairs[g][i]
			p.s = p.dot(b.split)
			b.fee[g] = min(b.fee[g], 0.8*p.s)
		}
		for i := range b.pairs[g] {
			p := &b.pairs[g][i]
			p.s -= b.fee[g]
			p.y = b.demand[g] / float64(len(b.pairs[g]))
		}
	}
	for o := range b.options {
		b.spent[o] = mu / b.slack[o]
		for j := b.base[o]; j < b.base[o+1]; j++ {
			b.extra[j] = mu / b.split[j] / float64(b.base[o+1]-b.base[o])
		}
	}
}

// gap is the sum over all constraints of slack by multiplier: at the optimum there is none.
func (b *barrier) gap() (sum float64, terms int) {
	for g := range b.pairs {
		for i := range b.pairs[g] {
			sum += b.pairs[g][i].s * b.pairs[g][i].y
			terms++
		}
	}
	for o := range b.slack {
		sum += b.slack[o] * b.spent[o]
	}
	for i := range b.split {
		sum += b.split[i] * b.extra[i]
	}
	return sum, terms + len(b.slack) + len(b.split)
}

// total is what all rows pay.
func (b *barrier) total() float64 {
	sum := 0.0
	for g, f := range b.fee {
		sum += b.demand[g] * f
	}
	return sum
}

// run walks along the central path.
func (b *barrier) run(precision float64) {
	b.start()
	for i := range barrierSteps {
		gap, terms := b.gap()
		if gap < precision*b.total() {
			return
		}
		target := 0.15
		if i == 0 {
			target = 0.5
		}
		b.assemble(target * gap / float64(terms))
		if !cholesky(b.matrix, b.right, b.step, b.base[b.options]) {
			return
		}
		b.advance(target * gap / float64(terms))
	}
}

// assemble builds the equations of a Newton step for the splits; the fees are eliminated.
func (b *barrier) assemble(mu float64) {
	n := b.base[b.options]
	clear(b.matrix)
	for o := range b.options {
		ratio, pull := b.spent[o]/b.slack[o], mu/b.slack[o]
		for j := b.base[o]; j < b.base[o+1]; j++ {
			b.right[j] = mu/b.split[j] - pull
			for k := b.base[o]; k <= j; k++ {
				b.matrix[j*n+k] += ratio
			}
			b.matrix[j*n+j] += b.extra[j] / b.split[j]
		}
	}
	for g := range b.pairs {
		b.assembleRow(g, mu)
	}
}

func (b *barrier) assembleRow(g int, mu float64) {
	list := b.pairs[g]
	push, weight := b.demand[g], 0.0
	for i := range list {
		push -= mu / list[i].s
		weight += list[i].y / list[i].s
	}
	b.push[g], b.weight[g] = push, weight
	if len(list) == 0 {
		b.push[g] = 0
	}
	for i := range list {
		p := &list[i]
		theta := p.y / p.s
		b.spread(p, mu/p.s+theta*push/weight)
		b.couple(p, p, theta-theta*theta/weight)
		if theta < 1e-4*weight {
			continue
		}
		for k := range list[:i] {
			q := &list[k]
			if t := q.y / q.s; t > 1e-4*weight {
				b.couple(p, q, -theta*t/weight)
			}
		}
	}
}

// spread adds the pair's shares to the right side.
func (b *barrier) spread(p *rowOption, f float64) {
	v := b.right[p.base : p.base+len(p.share)]
	for j, x := range p.share {
		v[j] += f * x
	}
}

// couple adds a product of two pairs' shares to the lower half of the matrix; p's kind is not before q's.
func (b *barrier) couple(p, q *rowOption, f float64) {
	n := b.base[b.options]
	for j, x := range p.share {
		line := b.matrix[(p.base+j)*n+q.base : (p.base+j)*n+q.base+len(q.share)]
		x *= f
		for k, y := range q.share {
			line[k] += x * y
		}
	}
}

// advance goes as far along the step as everything stays positive.
func (b *barrier) advance(mu float64) {
	primal, dual := 1.0, 1.0
	shrink := func(bound *float64, value, change float64) {
		if change < 0 {
			*bound = min(*bound, -0.95*value/change)
		}
	}
	for g := range b.pairs {
		sum := b.push[g]
		for i := range b.pairs[g] {
			p := &b.pairs[g][i]
			p.move = p.dot(b.step)
			sum += p.y / p.s * p.move
		}
		b.push[g] = sum / max(b.weight[g], 1e-300) // change of the fee
		for i := range b.pairs[g] {
			p := &b.pairs[g][i]
			p.move -= b.push[g]
			shrink(&dual, p.s, p.move)
			shrink(&primal, p.y, mu/p.s-p.y-p.y/p.s*p.move)
		}
	}
	moves := make([]float64, b.options)
	for o := range b.options {
		for j := b.base[o]; j < b.base[o+1]; j++ {
			moves[o] -= b.step[j]
			shrink(&dual, b.split[j], b.step[j])
			shrink(&primal, b.extra[j], mu/b.split[j]-b.extra[j]-b.extra[j]/b.split[j]*b.step[j])
		}
		shrink(&dual, b.slack[o], moves[o])
		shrink(&primal, b.spent[o], mu/b.slack[o]-b.spent[o]-b.spent[o]/b.slack[o]*moves[o])
	}
	b.move(mu, primal, dual, moves)
}

func (b *barrier) move(mu, primal, dual float64, moves []float64) {
	for g := range b.pairs {
		for i := range b.pairs[g] {
			p := &b.pairs[g][i]
			p.y += primal * (mu/p.s - p.y - p.y/p.s*p.move)
			p.s += dual * p.move
		}
		b.fee[g] += dual * b.push[g]
	}
	for o := range b.options {
		b.spent[o] += primal * (mu/b.slack[o] - b.spent[o] - b.spent[o]/b.slack[o]*moves[o])
		b.slack[o] += dual * moves[o]
	}
	for j := range b.split {
		b.extra[j] += primal * (mu/b.split[j] - b.extra[j] - b.extra[j]/b.split[j]*b.step[j])
		b.split[j] += dual * b.step[j]
	}
}

// cholesky solves the symmetric equations of which the matrix holds the lower half; it is false if rounding has made
// them unsolvable. What is zero from the left end of a line stays zero, and is passed over.
func cholesky(matrix, right, out []float64, n int) bool {
	first := make([]int, n)
	for j := range n {
		row := matrix[j*n : j*n+j+1]
		for first[j] < j && row[first[j]] == 0 {
			first[j]++
		}
		for k := first[j]; k < j; k++ {
			other := matrix[k*n : k*n+k+1]
			from := max(first[j], first[k])
			row[k] = (row[k] - inner(row[from:k], other[from:k])) / other[k]
		}
		sum := row[j] - inner(row[first[j]:j], row[first[j]:j])
		if !(sum > 0) {
			return false
		}
		row[j] = math.Sqrt(sum)
		out[j] = (right[j] - inner(row[first[j]:j], out[first[j]:j])) / row[j]
	}
	for j := n - 1; j >= 0; j-- {
		row := matrix[j*n : j*n+j+1]
		out[j] /= row[j]
		for i := first[j]; i < j; i++ {
			out[i] -= row[i] * out[j]
		}
	}
	return true
}

// inner is the inner product, in four strands that the processor can run side by side.
func inner(a, b []float64) float64 {
	b = b[:len(a)]
	var w, x, y, z float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		w += a[i] * b[i]
		x += a[i+1] * b[i+1]
		y += a[i+2] * b[i+2]
		z += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		w += a[i] * b[i]
	}
	return w + x + y + z
}
