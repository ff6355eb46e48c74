package pack

import (
	"cmp"
	"slices"
)

// maxRefusals bounds how often Suits is asked about stacks that could fill up a node.
const maxRefusals = 40

// suit takes pods away until the node may be bought as the kind, and then fills it up with others that suit; nothing may be
// left in the end.
func (f *filling) suit(kind int, left []int) {
	suits, offer := f.m.p.Suits, f.m.kinds[kind]
	if suits == nil || len(f.parts) == 0 || suits(offer, f.parts) {
		return
	}
	wanted := slices.Clone(f.parts)
	slices.SortStableFunc(wanted, func(a, b Part) int {
		if f.tier != nil && f.tier[a.Stack] != f.tier[b.Stack] {
			return cmp.Compare(f.tier[a.Stack], f.tier[b.Stack])
		}
		return cmp.Compare(f.worth[b.Stack]*float64(b.Count), f.worth[a.Stack]*float64(a.Count))
	})
	copy(f.free, f.m.roomOf(kind))
	f.marks.clear()
	f.parts, f.value = f.parts[:0], 0
	refused := make(map[int]bool)
	for _, w := range wanted {
		if f.squeeze(offer, w.Stack, w.Count) == 0 {
			refused[w.Stack] = true
		}
	}
	for _, l := range f.lists[kind].lines {
		for _, w := range f.lists[kind].pods[l.at:l.end] {
			s := int(w.stack)
			if len(refused) >= maxRefusals || refused[s] || f.used[s] > 0 {
				continue
			}
			if n := f.allows(s, left[s]); n > 0 && f.squeeze(offer, s, n) == 0 {
				refused[s] = true
			}
		}
	}
	for _, p := range f.parts {
		f.used[p.Stack] = 0
	}
	f.tidy()
}

// squeeze adds as many pods of the stack, at most n, as suit together with what is on the node. Since what suits also
// suits with less in it, halving finds how many.
func (f *filling) squeeze(offer, s, n int) int {
	low, high := 0, n // low pods suit, more than high don't
	for try := n; low < high; try = (low + high + 1) / 2 {
		if f.m.p.Suits(offer, insertPart(f.parts, s, try)) {
			low = try
		} else {
			high = try - 1
		}
	}
	if low > 0 {
		f.take(s, low)
		f.tidy()
	}
	return low
}
