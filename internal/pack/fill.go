package pack

import (
	"cmp"
	"math"
	"slices"
)

const (
	// floorRate is the part of an option's price that is spread evenly over its dimensions when pods are chosen, so
	// that dimensions that cost nothing are not wasted either.
	floorRate = 0.05
	// sizePower makes large pods go first among those that bring equally much for what they use.
	sizePower = 0.1
	// takeFraction is the part of what is free that may be taken before the pods are compared again.
	takeFraction = 0.1
	// listWork is the work of putting an item on a list, compared with looking at one there.
	listWork = 8
)

// binFiller is a search for the content of one node.
type binFiller struct {
	m     *model
	worth []float64
	tier  []int32         // by item; nil if all are equal
	lists []candidateList // by option
	marks *nodeMarks

	free  []int64
	cost  []float64 // what a unit of each dimension costs now
	room  []float64
	todo  []needGroup
	used  []int // by item: pods on the node; all zero between fills
	parts []Part
	value float64 // worth of the parts
	last  int     // the item that was taken last, −1 for none yet
	work  int     // pods looked at, a measure of time

	preferenceWeight float64 // how much more a pod counts on a bin type that it likes completely
}

// candidateList is what an option would take, as lines of items that need the same; the best come first.
type candidateList struct {
	entries []listEntry
	lines   []needGroup
	rate    []float64
}

// listEntry is an item on an option's list.
type listEntry struct {
	item int32
	tier int32
	gain float64 // what a pod brings
}

// needGroup is a part of the list: items that need the same, of which only the first one left is worth a look.
type needGroup struct {
	at, end int32
	top     float64 // the most that gain for use can be
}

func newBinFiller(m *model) *binFiller {
	return &binFiller{m: m, lists: make([]candidateList, len(m.options)), marks: newNodeMarks(m.MarkCount),
		free: make([]int64, m.Dims), cost: make([]float64, m.Dims), room: make([]float64, m.Dims),
		used: make([]int, len(m.p.Items))}
}

// prepare ranks the items for each of the options by what they bring.
func (f *binFiller) prepare(options []int, worth []float64, rate []float64, tier []int32) {
	f.worth, f.tier = worth, tier
	bonus := make([]float64, len(worth))
	for s, w := range worth {
		bonus[s] = bonusOf(w)
	}
	for _, k := range options {
		f.beginList(k, rate)
		for _, s := range f.m.FittingItems[k] {
			f.addToList(k, int(s), bonus[s])
		}
		f.sortList(k)
		f.work += listWork * len(f.lists[k].entries)
	}
}

// prepareFew is prepare for only some of the items.
func (f *binFiller) prepareFew(options []int, items []int, worth []float64, rate []float64) {
	m := f.m
	f.worth, f.tier = worth, nil
	for _, k := range options {
		f.beginList(k, rate)
		for _, s := range items {
			if m.IsIn(k, m.SetOf[s]) && fits(m.NeedOf(s), m.RoomOf(k)) {
				f.addToList(k, s, bonusOf(worth[s]))
			}
		}
		f.sortList(k)
		f.work += listWork * (len(f.lists[k].entries) + 4)
	}
}

func bonusOf(worth float64) float64 { return worth * math.Pow(worth+1e-12, sizePower) }

// beginList empties the option's list.
func (f *binFiller) beginList(k int, rate []float64) {
	f.lists[k].rate = rateOf(f.m, k, rate, f.lists[k].rate)
	f.lists[k].entries = f.lists[k].entries[:0]
}

// addToList puts an item on the option's list.
func (f *binFiller) addToList(k, s int, bonus float64) {
	w := listEntry{item: int32(s), gain: bonus * f.preferenceBonus(s, k)}
	if f.tier != nil {
		w.tier = f.tier[s]
	}
	f.lists[k].entries = append(f.lists[k].entries, w)
}

// sortList sorts the option's list.
func (f *binFiller) sortList(k int) {
	m, list := f.m, &f.lists[k]
	slices.SortFunc(list.entries, func(a, b listEntry) int {
		switch {
		case m.needClass[a.item] != m.needClass[b.item]:
			return cmp.Compare(m.needClass[a.item], m.needClass[b.item])
		case a.tier != b.tier:
			return cmp.Compare(a.tier, b.tier)
		case a.gain != b.gain:
			return cmp.Compare(b.gain, a.gain)
		}
		return cmp.Compare(a.item, b.item)
	})
	list.lines = list.lines[:0]
	for i := 0; i < len(list.entries); {
		l := needGroup{at: int32(i)}
		first := int(list.entries[i].item)
		uses, gain := 1e-15, 0.0
		for j, c := range list.rate {
			uses += c * m.NeedsFloat[first*m.Dims+j]
		}
		for ; i < len(list.entries) && m.needClass[list.entries[i].item] == m.needClass[first]; i++ {
			gain = max(gain, list.entries[i].gain)
		}
		l.end, l.top = int32(i), gain/uses
		list.lines = append(list.lines, l)
	}
	slices.SortFunc(list.lines, func(a, b needGroup) int {
		return cmp.Or(cmp.Compare(b.top, a.top), cmp.Compare(a.at, b.at))
	})
}

func rateOf(m *model, k int, rate, out []float64) []float64 {
	out = out[:0]
	price := m.p.BinTypes[m.options[k]].Price
	for j, room := range m.RoomOf(k) {
		r := rate[k*m.Dims+j]
		if room > 0 {
			r += floorRate * price / float64(room)
		}
		out = append(out, r)
	}
	return out
}

// preferenceBonus is how much more an item counts on an option because it likes it.
func (f *binFiller) preferenceBonus(s, option int) float64 {
	if preference := f.m.p.Items[s].Preference; f.preferenceWeight > 0 && preference >= 0 {
		return 1 + f.preferenceWeight*float64(f.m.p.Preferences[preference][f.m.options[option]])
	}
	return 1
}

// worthWithPreferences is the worth of the parts, with preferences counted.
func (f *binFiller) worthWithPreferences(option int) float64 {
	if f.preferenceWeight == 0 {
		return f.value
	}
	sum := 0.0
	for _, p := range f.parts {
		sum += f.worth[p.Item] * float64(p.Count) * f.preferenceBonus(p.Item, option)
	}
	return sum
}

// fill puts pods on an empty node of the option, taking from what is left. It takes the pods that bring the most worth
// for what they use, where a dimension costs the more the less of it is left: so the node becomes full in all of them
// at once.
func (f *binFiller) fill(option int, left []int) {
	m := f.m
	copy(f.free, m.RoomOf(option))
	for j, x := range f.free {
		f.room[j] = float64(x)
	}
	f.marks.clear()
	f.parts, f.value, f.last = f.parts[:0], 0, -1
	list := &f.lists[option]
	f.todo = append(f.todo[:0], list.lines...)
	f.work += len(list.lines)/4 + 20
	for {
		best := f.pick(list.entries, f.reprice(list.rate), left)
		if best < 0 {
			break
		}
		s := int(list.entries[f.todo[best].at].item)
		if n := f.takeAtOnce(s, left[s]-f.used[s]); n > 0 {
			f.take(s, n)
		} else {
			f.todo[best].at++
		}
	}
	for _, p := range f.parts {
		f.used[p.Item] = 0
	}
	f.sortParts()
}

// reprice makes dear what is nearly used up; it says by how much at least.
func (f *binFiller) reprice(rate []float64) float64 {
	least := math.Inf(1)
	for j, r := range rate {
		x := f.room[j] / float64(max(f.free[j], 1))
		x *= x
		least = min(least, x)
		f.cost[j] = r * x
	}
	return least
}

// pick finds the line whose pods bring the most for what they use now, −1 if nothing fits any more. Lines that don't
// fit are forgotten.
func (f *binFiller) pick(pods []listEntry, least float64, left []int) int {
	m := f.m
	best, bestScore, bestTier := -1, 0.0, int32(0)
	kept, i := 0, 0
	for ; i < len(f.todo); i++ {
		l := f.todo[i]
		if best >= 0 && f.tier == nil && l.top <= bestScore*least {
			break
		}
		for l.at < l.end && (left[pods[l.at].item] <= f.used[pods[l.at].item] || f.isKeptAway(int(pods[l.at].item))) {
			l.at++
		}
		if l.at == l.end {
			continue
		}
		w := pods[l.at]
		base := int(w.item) * m.Dims
		if !fits(m.Needs[base:base+m.Dims], f.free) {
			continue
		}
		f.todo[kept] = l
		kept++
		uses := 1e-15
		for j, c := range f.cost {
			uses += c * m.NeedsFloat[base+j]
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

// isKeptAway reports whether the pods that were taken last keep those of the item away. Whoever earlier ones keep away
// is found out when it is picked.
func (f *binFiller) isKeptAway(s int) bool {
	return f.last >= 0 && f.m.hasMarks[s] && f.m.hasMarks[f.last] && f.m.itemsClash(s, f.last)
}

func (f *binFiller) allows(s, limit int) int {
	n := times(f.m.NeedOf(s), f.free, limit)
	if n > 0 && f.m.hasMarks[s] {
		n = f.marks.allows(&f.m.p.Items[s], f.m.onePerNode[s], n)
	}
	return n
}

// takeAtOnce is how many pods to take at once: few enough that the balance can still be kept.
func (f *binFiller) takeAtOnce(s, limit int) int {
	n := f.allows(s, limit)
	for j, x := range f.m.NeedOf(s) {
		if x > 0 && n > 1 {
			n = min(n, max(1, int(takeFraction*float64(f.free[j])/float64(x))))
		}
	}
	return n
}

func (f *binFiller) take(s, n int) {
	for j, x := range f.m.NeedOf(s) {
		f.free[j] -= x * int64(n)
	}
	if f.m.hasMarks[s] {
		f.marks.add(&f.m.p.Items[s], n)
	}
	f.value += f.worth[s] * float64(n)
	f.used[s] += n
	f.last = s
	for i := range f.parts {
		if f.parts[i].Item == s {
			f.parts[i].Count += n
			return
		}
	}
	f.parts = append(f.parts, Part{Item: s, Count: n})
}

// firstTier is the tier of the pods on the node that come first.
func (f *binFiller) firstTier() int32 {
	if f.tier == nil {
		return 0
	}
	first := int32(math.MaxInt32)
	for _, p := range f.parts {
		first = min(first, f.tier[p.Item])
	}
	return first
}

// sortParts sorts the parts.
func (f *binFiller) sortParts() {
	slices.SortFunc(f.parts, func(a, b Part) int { return cmp.Compare(a.Item, b.Item) })
}
