package schedule

import "slices"

// roster is the lodgings that suit pods with the same demands on a node, in the order in which they are filled. It is a tree
// in which each knot knows the most that is free below it, so that the first with enough room is found at once.
type roster struct {
	lodgings []*lodging
	size     int     // leaves, a power of two
	d        int     // dimensions
	free     []int64 // by knot and dimension; the root is knot 1
}

func newRoster(lodgings []*lodging, dims []int) *roster {
	t := &roster{lodgings: lodgings, size: 1, d: len(dims)}
	for t.size < len(lodgings) {
		t.size *= 2
	}
	t.free = make([]int64, 2*t.size*t.d)
	for i := range t.free {
		t.free[i] = -1
	}
	for i, lo := range lodgings {
		lo.leaves = append(lo.leaves, leaf{t, i})
		t.write(i, lo, dims)
	}
	for knot := t.size - 1; knot > 0; knot-- {
		t.sum(knot)
	}
	return t
}

// write notes what is free in a lodging.
func (t *roster) write(i int, lo *lodging, dims []int) {
	at := t.free[(t.size+i)*t.d : (t.size+i+1)*t.d]
	for j, dim := range dims {
		at[j] = -1
		if !lo.shut && !lo.gone {
			at[j] = max(lo.Free[dim], 0)
		}
	}
}

// sum works out the most that is free below a knot; it is false if that has not changed.
func (t *roster) sum(knot int) (changed bool) {
	at := t.free[knot*t.d : (knot+1)*t.d]
	left, right := t.free[2*knot*t.d:(2*knot+1)*t.d], t.free[(2*knot+1)*t.d:(2*knot+2)*t.d]
	for j := range at {
		if most := max(left[j], right[j]); most != at[j] {
			at[j], changed = most, true
		}
	}
	return changed
}

// update takes in that a lodging's room has changed.
func (t *roster) update(i int, lo *lodging, dims []int) {
	t.write(i, lo, dims)
	for knot := (t.size + i) / 2; knot > 0; knot /= 2 {
		if !t.sum(knot) {
			return
		}
	}
}

// next finds the first lodging from a place on that has room for the need, or −1.
func (t *roster) next(from int, need []int64) int {
	if from >= len(t.lodgings) {
		return -1
	}
	knot := t.size + from
	for {
		if t.holds(knot, need) {
			if knot >= t.size {
				return knot - t.size
			}
			knot *= 2
			continue
		}
		for knot&1 == 1 {
			knot /= 2
		}
		if knot == 0 {
			return -1
		}
		knot++
	}
}

func (t *roster) holds(knot int, need []int64) bool {
	at := t.free[knot*t.d : (knot+1)*t.d]
	for j, n := range need {
		if n > at[j] {
			return false
		}
	}
	return true
}

// Arrange says in which order departures are thought to go, the first first: pods that move fill the nodes that are to stay
// before those that may go, and of these the last to go first.
func (st *Stage) Arrange(order []int) {
	for _, lo := range st.houses {
		lo.rank, lo.leaves = 0, nil
	}
	for at, i := range order {
		if lo := st.flats[i].house; lo != nil {
			lo.rank = len(order) - at
		}
	}
	slices.SortStableFunc(st.houses, func(a, b *lodging) int { return a.rank - b.rank })
	clear(st.trees)
	for _, f := range st.flats {
		for _, b := range f.loads {
			b.tree, b.homeless, b.from = st.roster(b.lodger), false, 0
		}
	}
}

// roster finds the lodgings that suit pods of the kind, room and rules aside.
func (st *Stage) roster(lo *lodger) *roster {
	key := termsText(lo.class.Terms) + "\x00" + tolerationsText(lo.class)
	t := st.trees[key]
	if t == nil {
		var list []*lodging
		for _, h := range st.houses {
			if !h.shut && h.Takes(lo.class) {
				list = append(list, h)
			}
		}
		t = newRoster(list, st.dims)
		st.trees[key] = t
	}
	return t
}
