package pack

import (
	"cmp"
	"math"
	"slices"
)

const (
	// floorRate is the part of a kind's price that is spread evenly over its dimensions when pods are chosen, so that
	// dimensions that cost nothing are not wasted either.
	floorRate = 0.05
	// sizePower makes large pods go first among those that bring equally much for what they use.
	sizePower = 0.1
	// haste is the part of what is free that may be taken before the pods are compared again.
	haste = 0.1
	// listWork is the work of putting a stack on a list, compared with looking at one there.
	listWork = 8
)

// filling is a search for the content of one node.
type filling struct {
	m     *model
	worth []float64
	tier  []int32    // by stack; nil if all are equal
	lists []wishlist // by kind
	marks *register

	free  []int64
	cost  []float64 // what a unit of each dimension costs now
	room  []float64
	todo  []line
	used  []int // by stack: pods on the node; all zero between fills
	parts []Part
	value float64 // worth of the parts
	last  int     // the stack that was taken last, −1 for none yet
	work  int     // pods looked at, a measure of time

	wishes float64 // how much more a pod counts on an offer that it likes completely
}

// wishlist is what a kind would take, as lines of stacks that need the same; the best come first.
type wishlist struct {
	pods  []wanted
	lines []line
	rate  []float64
}

// wanted is a stack on a kind's list.
type wanted struct {
	stack int32
	tier  int32
	gain  float64 // what a pod brings
}

// line is a part of the list: stacks that need the same, of which only the first one left is worth a look.
type line struct {
	at, end int32
	top     float64 // the most that gain for use can be
}

func newFilling(m *model) *filling {
	return &filling{m: m, lists: make([]wishlist, len(m.kinds)), marks: newRegister(m.ids), free: make([]int64, m.d), cost: make([]float64, m.d), room: make([]float64, m.d), used: make([]int, len(m.p.Stacks))}
}

// prepare ranks the stacks for each of the kinds by what they bring.
func (f *filling) prepare(kinds []int, worth []float64, rate []float64, tier []int32) {
	f.worth, f.tier = worth, tier
	bonus := make([]float64, len(worth))
	for s, w := range worth {
		bonus[s] = bonusOf(w)
	}
	for _, k := range kinds {
		f.begin(k, rate)
		for _, s := range f.m.holds[k] {
			f.list(k, int(s), bonus[s])
		}
		f.rank(k)
		f.work += listWork * len(f.lists[k].pods)
	}
}

// prepareFew is prepare for only some of the stacks.
func (f *filling) prepareFew(kinds []int, stacks []int, worth []float64, rate []float64) {
	m := f.m
	f.worth, f.tier = worth, nil
	for _, k := range kinds {
		f.begin(k, rate)
		for _, s := range stacks {
			if m.in(k, m.site[s]) && fits(m.needOf(s), m.roomOf(k)) {
				f.list(k, s, bonusOf(worth[s]))
			}
		}
		f.rank(k)
		f.work += listWork * (len(f.lists[k].pods) + 4)
	}
}

func bonusOf(worth float64) float64 { return worth * math.Pow(worth+1e-12, sizePower) }

// begin empties the kind's list.
func (f *filling) begin(k int, rate []float64) {
	f.lists[k].rate = rateOf(f.m, k, rate, f.lists[k].rate)
	f.lists[k].pods = f.lists[k].pods[:0]
}

// list puts a stack on the kind's list.
func (f *filling) list(k, s int, bonus float64) {
	w := wanted{stack: int32(s), gain: bonus * f.liking(s, k)}
	if f.tier != nil {
		w.tier = f.tier[s]
	}
	f.lists[k].pods = append(f.lists[k].pods, w)
}

// rank sorts the kind's list.
func (f *filling) rank(k int) {
	m, list := f.m, &f.lists[k]
	slices.SortFunc(list.pods, func(a, b wanted) int {
		switch {
		case m.class[a.stack] != m.class[b.stack]:
			return cmp.Compare(m.class[a.stack], m.class[b.stack])
		case a.tier != b.tier:
			return cmp.Compare(a.tier, b.tier)
		case a.gain != b.gain:
			return cmp.Compare(b.gain, a.gain)
		}
		return cmp.Compare(a.stack, b.stack)
	})
	list.lines = list.lines[:0]
	for i := 0; i < len(list.pods); {
		l := line{at: int32(i)}
		first := int(list.pods[i].stack)
		uses, gain := 1e-15, 0.0
		for j, c := range list.rate {
			uses += c * m.needf[first*m.d+j]
		}
		for ; i < len(list.pods) && m.class[list.pods[i].stack] == m.class[first]; i++ {
			gain = max(gain, list.pods[i].gain)
		}
		l.end, l.top = int32(i), gain/uses
		list.lines = append(list.lines, l)
	}
	slices.SortFunc(list.lines, func(a, b line) int { return cmp.Or(cmp.Compare(b.top, a.top), cmp.Compare(a.at, b.at)) })
}

func rateOf(m *model, k int, rate, out []float64) []float64 {
	out = out[:0]
	price := m.p.Offers[m.kinds[k]].Price
	for j, room := range m.roomOf(k) {
		r := rate[k*m.d+j]
		if room > 0 {
			r += floorRate * price / float64(room)
		}
		out = append(out, r)
	}
	return out
}

// liking is how much more a stack counts on a kind because it likes it.
func (f *filling) liking(s, kind int) float64 {
	if like := f.m.p.Stacks[s].Like; f.wishes > 0 && like >= 0 {
		return 1 + f.wishes*float64(f.m.p.Likes[like][f.m.kinds[kind]])
	}
	return 1
}

// liked is the worth of the parts, with wishes counted.
func (f *filling) liked(kind int) float64 {
	if f.wishes == 0 {
		return f.value
	}
	sum := 0.0
	for _, p := range f.parts {
		sum += f.worth[p.Stack] * float64(p.Count) * f.liking(p.Stack, kind)
	}
	return sum
}

// fill puts pods on an empty node of the kind, taking from what is left. It takes the pods that bring the most worth for
// what they use, where a dimension costs the more the less of it is left: so the node becomes full in all of them at
// once.
func (f *filling) fill(kind int, left []int) {
	m := f.m
	copy(f.free, m.roomOf(kind))
	for j, x := range f.free {
		f.room[j] = float64(x)
	}
	f.marks.clear()
	f.parts, f.value, f.last = f.parts[:0], 0, -1
	list := &f.lists[kind]
	f.todo = append(f.todo[:0], list.lines...)
	f.work += len(list.lines)/4 + 20
	for {
		best := f.pick(list.pods, f.reprice(list.rate), left)
		if best < 0 {
			break
		}
		s := int(list.pods[f.todo[best].at].stack)
		if n := f.portion(s, left[s]-f.used[s]); n > 0 {
			f.take(s, n)
		} else {
			f.todo[best].at++
		}
	}
	for _, p := range f.parts {
		f.used[p.Stack] = 0
	}
	f.tidy()
}

// reprice makes dear what is nearly used up; it says by how much at least.
func (f *filling) reprice(rate []float64) float64 {
	least := math.Inf(1)
	for j, r := range rate {
		x := f.room[j] / float64(max(f.free[j], 1))
		x *= x
		least = min(least, x)
		f.cost[j] = r * x
	}
	return least
}

// pick finds the line whose pods bring the most for what they use now, −1 if nothing fits any more. Lines that don't fit
// are forgotten.
func (f *filling) pick(pods []wanted, least float64, left []int) int {
	m := f.m
	best, bestScore, bestTier := -1, 0.0, int32(0)
	kept, i := 0, 0
	for ; i < len(f.todo); i++ {
		l := f.todo[i]
		if best >= 0 && f.tier == nil && l.top <= bestScore*least {
			break
		}
		for l.at < l.end && (left[pods[l.at].stack] <= f.used[pods[l.at].stack] || f.kept(int(pods[l.at].stack))) {
			l.at++
		}
		if l.at == l.end {
			continue
		}
		w := pods[l.at]
		base := int(w.stack) * m.d
		if !fits(m.need[base:base+m.d], f.free) {
			continue
		}
		f.todo[kept] = l
		kept++
		uses := 1e-15
		for j, c := range f.cost {
			uses += c * m.needf[base+j]
		}
		if score := w.gain / uses; best < 0 || w.tier < bestTier || w.tier == bestTier && score > bestScore {
			best, bestScore, bestTier = kept-1, score, w.tier
		}
	}
	f.work += i
	if kept < i {
		f.todo = slices.Delete(f.todo, kept, i)
	}
	return best
}

// kept reports whether the pods that were taken last keep those of the stack away. Whoever earlier ones keep away is found out
// when it is picked.
func (f *filling) kept(s int) bool {
	return f.last >= 0 && f.m.marked[s] && f.m.marked[f.last] && f.m.clash(s, f.last)
}

func (f *filling) allows(s, limit int) int {
	n := times(f.m.needOf(s), f.free, limit)
	if n > 0 && f.m.marked[s] {
		n = f.marks.allows(&f.m.p.Stacks[s], f.m.solo[s], n)
	}
	return n
}

// portion is how many pods to take at once: few enough that the balance can still be kept.
func (f *filling) portion(s, limit int) int {
	n := f.allows(s, limit)
	for j, x := range f.m.needOf(s) {
		if x > 0 && n > 1 {
			n = min(n, max(1, int(haste*float64(f.free[j])/float64(x))))
		}
	}
	return n
}

func (f *filling) take(s, n int) {
	for j, x := range f.m.needOf(s) {
		f.free[j] -= x * int64(n)
	}
	if f.m.marked[s] {
		f.marks.add(&f.m.p.Stacks[s], n)
	}
	f.value += f.worth[s] * float64(n)
	f.used[s] += n
	f.last = s
	for i := range f.parts {
		if f.parts[i].Stack == s {
			f.parts[i].Count += n
			return
		}
	}
	f.parts = append(f.parts, Part{Stack: s, Count: n})
}

// firstTier is the tier of the pods on the node that come first.
func (f *filling) firstTier() int32 {
	if f.tier == nil {
		return 0
	}
	first := int32(math.MaxInt32)
	for _, p := range f.parts {
		first = min(first, f.tier[p.Stack])
	}
	return first
}

// tidy sorts the parts.
func (f *filling) tidy() {
	slices.SortFunc(f.parts, func(a, b Part) int { return cmp.Compare(a.Stack, b.Stack) })
}
