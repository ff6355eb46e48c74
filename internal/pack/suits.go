package pack

import (
	"cmp"
	"slices"
)

// maxRefusals bounds how often Suits is asked about items that could fill up a node.
const maxRefusals = 40

// removeUntilSuits takes pods away until the node may be bought as the option, and then fills it up with others that
// suit; nothing may be left in the end.
func (f *binFiller) removeUntilSuits(option int, left []int) {
	suits, binType := f.m.p.Suits, f.m.options[option]
	if suits == nil || len(f.parts) == 0 || suits(binType, f.parts) {
		return
	}
	wanted := slices.Clone(f.parts)
	slices.SortStableFunc(wanted, func(a, b Part) int {
		if f.tier != nil && f.tier[a.Item] != f.tier[b.Item] {
			return cmp.Compare(f.tier[a.Item], f.tier[b.Item])
		}
		return cmp.Compare(f.worth[b.Item]*float64(b.Count), f.worth[a.Item]*float64(a.Count))
	})
	copy(f.free, f.m.RoomOf(option))
	f.marks.clear()
	f.parts, f.value = f.parts[:0], 0
	refused := make(map[int]bool)
	for _, w := range wanted {
		if f.addSuiting(binType, w.Item, w.Count) == 0 {
			refused[w.Item] = true
		}
	}
	for _, l := range f.lists[option].lines {
		for _, w := range f.lists[option].entries[l.at:l.end] {
			s := int(w.item)
			if len(refused) >= maxRefusals || refused[s] || f.used[s] > 0 {
				continue
			}
			if n := f.allows(s, left[s]); n > 0 && f.addSuiting(binType, s, n) == 0 {
				refused[s] = true
			}
		}
	}
	for _, p := range f.parts {
		f.used[p.Item] = 0
	}
	f.sortParts()
}

// addSuiting adds as many pods of the item, at most n, as suit together with what is on the node. Since what suits also
// suits with less in it, halving finds how many.
func (f *binFiller) addSuiting(binType, s, n int) int {
	low, high := 0, n // low pods suit, more than high don't
	for try := n; low < high; try = (low + high + 1) / 2 {
		if f.m.p.Suits(binType, insertPart(f.parts, s, try)) {
			low = try
		} else {
			high = try - 1
		}
	}
	if low > 0 {
		f.take(s, low)
		f.sortParts()
	}
	return low
}
