package pack

// seller is the small linear program of one kind: with which fractions of pods is one node worth the most? It is solved
// by the simplex method; its dual says what a unit of each dimension is worth there.
type seller struct {
	pr    *program
	kind  int
	price float64
	room  []float64
	rows  []int32 // those that it can hold
	size  []float64

	basis []int32 // by dimension: place in rows, or −1−dimension for what stays free
	inv   []float64
	x     []float64 // values of the basis
	rate  []float64 // what a unit of each dimension is worth
	value float64   // of a node
	dir   []float64
}

func newSeller(pr *program, kind int) *seller {
	m, d := pr.m, pr.d
	s := &seller{pr: pr, kind: kind, price: m.p.Offers[m.kinds[kind]].Price}
	floats := make([]float64, 4*d+d*d)
	s.room, s.x, s.rate, s.dir, s.inv = floats[:d], floats[d:2*d], floats[2*d:3*d], floats[3*d:4*d], floats[4*d:]
	s.basis = make([]int32, d)
	for j := range d {
		s.room[j] = 1
		if j < m.d {
			s.room[j] = max(0, float64(m.roomOf(kind)[j])/pr.scale[j])
		}
	}
	s.capRoom()
	s.rows, s.size = make([]int32, 0, len(pr.rows)), make([]float64, 0, len(pr.rows))
	for i := range pr.rows {
		r := &pr.rows[i]
		if m.in(kind, r.site) {
			if size := r.sizeIn(s.room, m.d); size <= 1 {
				s.rows, s.size = append(s.rows, int32(i)), append(s.size, size)
			}
		}
	}
	for j := range d {
		s.basis[j], s.inv[j*d+j], s.x[j] = int32(-1-j), 1, s.room[j]
	}
	return s
}

// capRoom takes off the room that all the pods together could not fill.
func (s *seller) capRoom() {
	m := s.pr.m
	sum := make([]float64, m.d)
	for _, st := range m.holds[s.kind] {
		for j := range sum {
			sum[j] += m.needf[int(st)*m.d+j] * float64(m.p.Stacks[st].Count)
		}
	}
	for j := range sum {
		s.room[j] = min(s.room[j], sum[j]/s.pr.scale[j])
	}
}

// sizeIn is the largest part of the room that a pod takes in any dimension.
func (r *row) sizeIn(room []float64, d int) float64 {
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
func (s *seller) solve(worth []float64) {
	for range 6*s.pr.d + 40 {
		s.reprice(worth)
		enter, ok := s.entering(worth)
		if !ok || !s.pivot(enter) {
			break
		}
	}
	s.appraise(worth)
}

// reprice works out the rates that go with the basis.
func (s *seller) reprice(worth []float64) {
	d := s.pr.d
	clear(s.rate)
	for i, b := range s.basis {
		if b >= 0 {
			w := worth[s.rows[b]]
			for j, x := range s.inv[i*d : i*d+d] {
				s.rate[j] += w * x
			}
		}
	}
}

// due is what a pod of the row has to pay at the rates.
func (s *seller) due(r *row) float64 {
	sum := 0.0
	for j, x := range r.need {
		sum += s.rate[j] * x
	}
	for k, group := range r.groups {
		sum += s.rate[s.pr.m.d+int(group)] * r.shares[k]
	}
	return sum
}

// dueOf is what a pod of a row, which may be of another program, would pay on this kind if a node cost its price.
func (s *seller) dueOf(r *row) float64 {
	if s.value <= 0 {
		return 0
	}
	return s.due(r) * s.price / s.value
}

// entering chooses a row that should have more, or free room that is wanted back.
func (s *seller) entering(worth []float64) (best int32, ok bool) {
	most := 1e-7*s.price + 1e-15
	for j, rate := range s.rate {
		if g := -rate * s.room[j]; g > most {
			best, most, ok = int32(-1-j), g, true
		}
	}
	for at, i := range s.rows {
		if g := (worth[i] - s.due(&s.pr.rows[i])) / s.size[at]; g > most {
			best, most, ok = int32(at), g, true
		}
	}
	return best, ok
}

// pivot moves the entering variable until something stands in the way.
func (s *seller) pivot(enter int32) bool {
	d := s.pr.d
	s.direct(enter)
	step, leave := 0.0, -1
	for i, a := range s.dir {
		if a > 1e-11 {
			if t := max(s.x[i], 0) / a; leave < 0 || t < step {
				step, leave = t, i
			}
		}
	}
	if leave < 0 {
		return false
	}
	for i, a := range s.dir {
		s.x[i] -= step * a
	}
	s.x[leave], s.basis[leave] = step, enter
	pivot := s.inv[leave*d : leave*d+d]
	f := 1 / s.dir[leave]
	for j := range pivot {
		pivot[j] *= f
	}
	for i, a := range s.dir {
		if i != leave && a != 0 {
			line := s.inv[i*d : i*d+d]
			for j, p := range pivot {
				line[j] -= a * p
			}
		}
	}
	return true
}

// direct works out how the basis answers to the entering variable.
func (s *seller) direct(enter int32) {
	d := s.pr.d
	if enter < 0 {
		for i := range d {
			s.dir[i] = s.inv[i*d+int(-1-enter)]
		}
		return
	}
	r := &s.pr.rows[s.rows[enter]]
	for i := range d {
		line, sum := s.inv[i*d:i*d+d], 0.0
		for j, x := range r.need {
			sum += line[j] * x
		}
		for k, group := range r.groups {
			sum += line[s.pr.m.d+int(group)] * r.shares[k]
		}
		s.dir[i] = sum
	}
}

// appraise works out what a node costs at the rates. Rates below zero, left over from rounding, count as zero, and
// where a pod would still pay less than it is worth all rates are raised.
func (s *seller) appraise(worth []float64) {
	s.value = 0
	for j := range s.rate {
		s.rate[j] = max(s.rate[j], 0)
		s.value += s.rate[j] * s.room[j]
	}
	raise := 1.0
	for _, i := range s.rows {
		if due := s.due(&s.pr.rows[i]); due > 0 {
			raise = max(raise, worth[i]/due)
		}
	}
	s.value *= raise
	for j := range s.rate {
		s.rate[j] *= raise
	}
}
