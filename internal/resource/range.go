package resource

import (
	"cmp"
	"slices"
)

const (
	// maxCombined is of how many of the largest needs all combinations are tried.
	maxCombined = 6
	// ManyNeeds is from how many needs on none is tried: they may take all that is there.
	ManyNeeds = 64
)

// Range is what is left of something at least and at most, whoever comes first of those that don't fit together.
type Range struct{ Low, High Vector }

// Take takes needs out of it that come in an order nobody knows. If all fit together in any case, all are taken. Else
// some of them may stay out: so at most what was left is left, and at least what the worst combination of them leaves.
func (r Range) Take(needs []Vector) Range {
	var sum Vector
	for i := range needs {
		sum = sum.Add(needs[i])
	}
	if sum.Fits(r.Low) {
		return Range{r.Low.Sub(sum), r.High.Sub(sum)}
	}
	for dim := range sum {
		if r.Low[dim] > 0 {
			r.Low[dim] = max(0, r.Low[dim]-mostTaken(needs, dim, sum[dim], r.High[dim]))
		}
	}
	return r
}

// TakeSome takes some of very many needs out of it that come to so much and don't all fit: they may take all that is
// there.
func (r Range) TakeSome(sum Vector) Range {
	for dim := range sum {
		if r.Low[dim] > 0 {
			r.Low[dim] = max(0, r.Low[dim]-min(sum[dim], r.High[dim]))
		}
	}
	return r
}

// mostTaken is how much of one resource the needs take at most, of so much, if others than those that fit stay out. It
// asks of no other resource, and counts the small ones as taken, so that it may be too much and is never too little.
func mostTaken(needs []Vector, dim int, sum, room int64) int64 {
	if sum <= room || len(needs) > ManyNeeds {
		return min(sum, room)
	}
	amounts := make([]int64, len(needs))
	for i := range needs {
		amounts[i] = needs[i][dim]
	}
	slices.SortFunc(amounts, func(a, b int64) int { return cmp.Compare(b, a) })
	large := amounts[:min(len(amounts), maxCombined)]
	most := int64(0)
	for set := range 1 << len(large) {
		taken := int64(0)
		for i, amount := range large {
			if set&(1<<i) != 0 {
				taken += amount
			}
		}
		if taken <= room {
			most = max(most, taken)
		}
	}
	for _, amount := range amounts[len(large):] {
		most += amount
	}
	return min(most, room)
}
