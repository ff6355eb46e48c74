package disrupt

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// leastSaving is what a move must save per hour in any case, in dollars: below that there is no telling a saving from the way
// in which numbers are rounded. Every move makes the cluster cheaper by at least that much, so that there is an end to moves.
const leastSaving = 1e-6

// Appraisal is what a move is worth.
type Appraisal struct {
	// Bins are the new nodes, with only those types left that are cheap enough, whichever of them the cloud hands out.
	Bins []schedule.Bin
	// Before is what the nodes that go cost per hour. After is what the new ones are expected to cost, and Worst the most that
	// they may cost.
	Before, After, Worst float64
	// Needed is what the move must save at least: Before - Worst is no less.
	Needed float64
}

// Saving is what the move is expected to save per hour.
func (a *Appraisal) Saving() float64 { return a.Before - a.After }

// Worthwhile leaves those types in the new nodes with which taking the candidates away pays. If there are none for one of them,
// stay says why the move does not pay.
func Worthwhile(set Settings, candidates []Candidate, bins []schedule.Bin) (trimmed []schedule.Bin, stay *Stay) {
	a, stay := Appraise(set, candidates, bins)
	return a.Bins, stay
}

// Appraise says what it is worth to take the candidates away and to make the bins instead.
//
// However the new nodes come out, together they must be cheaper than what goes by the least saving. So each of them gets a
// ceiling, and keeps the types that cost no more than that at worst.
func Appraise(set Settings, candidates []Candidate, bins []schedule.Bin) (Appraisal, *Stay) {
	return appraise(set, candidates, candidates, bins, true)
}

// appraise is Appraise where pods may come from more nodes than the candidates: origins are all of them. With choice, what takes the
// place of several nodes may be none that could be kept instead.
func appraise(set Settings, candidates, origins []Candidate, bins []schedule.Bin, choice bool) (Appraisal, *Stay) {
	var a Appraisal
	for i := range candidates {
		a.Before += candidates[i].Price
	}
	a.Needed = Needed(set, candidates)
	if why := a.trim(set, candidates, origins, bins, choice); why != "" {
		stay := &Stay{Why: why, Saving: a.Before, Needed: a.Needed}
		for i := range bins {
			stay.Saving -= bins[i].Price
			stay.Estimated = stay.Estimated || bins[i].Estimated
		}
		stay.Sure = min(stay.Saving, a.Before-a.Worst)
		if len(candidates) > 0 {
			stay.Claim, stay.Node = candidates[0].Claim.Name, candidates[0].Node.Name
		}
		return Appraisal{}, stay
	}
	return a, nil
}

// Needed is what a move that takes the candidates away must save per hour at least. What it must save by the word of one pool
// holds for the whole of it.
func Needed(set Settings, candidates []Candidate) float64 {
	before, evicted := 0.0, 0
	for i := range candidates {
		before, evicted = before+candidates[i].Price, evicted+candidates[i].Evicted
	}
	least := leastSaving
	for i := range candidates {
		part, perPod := set.MinSaving, set.MinSavingPerPod
		if own := candidates[i].Pool.Care.MinSaving; own != nil {
			part = *own
		}
		if own := candidates[i].Pool.Care.MinSavingPerPod; own != nil {
			perPod = *own
		}
		least = max(least, part*before, perPod*float64(evicted))
	}
	return least
}

// trim gives each bin its ceiling and leaves the types that are below. If that does not pay, Worst is what the bins would count for at
// least, as far as it came to that.
func (a *Appraisal) trim(set Settings, candidates, origins []Candidate, bins []schedule.Bin, choice bool) Why {
	ceiling := a.Before - a.Needed
	if ceiling < 0 {
		return SavesTooLittle
	}
	shelves := make([]*shelf, len(bins))
	cheapest := 0.0
	for i := range bins {
		rule, why := spotRule(set, candidates, origins, &bins[i])
		if why != "" {
			return why
		}
		shelves[i] = newShelf(&bins[i], rule, set.Schedule.RelaxMinValues)
		if choice && outdoes(candidates, bins) {
			shelves[i].outdo(sourcesOf(candidates, &bins[i]))
		}
		if len(shelves[i].wares) == 0 {
			a.Worst = a.Before // nothing is sure to be saved
			return NothingCheaper
		}
		cheapest += shelves[i].wares[0].worst
	}
	a.Worst = cheapest
	switch {
	case cheapest > a.Before-leastSaving:
		return NothingCheaper
	case cheapest > ceiling:
		return SavesTooLittle
	}
	a.Worst = 0
	return a.fill(shelves, ceiling)
}

// outdoes reports whether a single new node takes the place of several: it must then be cheaper than any of these that is like it.
func outdoes(candidates []Candidate, bins []schedule.Bin) bool {
	return len(bins) == 1 && len(candidates) > 1
}

// fill shares the ceiling out: each shelf gets what it needs at least, and what remains is shared in proportion to that.
func (a *Appraisal) fill(shelves []*shelf, ceiling float64) Why {
	least := 0.0
	for _, sh := range shelves {
		if sh.least() < 0 {
			return sh.short()
		}
		least += sh.least()
	}
	if least > ceiling {
		a.Worst = least
		// The one that needs the most beyond its cheapest type is what it fails at.
		return slices.MaxFunc(shelves, func(x, y *shelf) int {
			return cmp.Compare(x.least()-x.wares[0].worst, y.least()-y.wares[0].worst)
		}).short()
	}
	for _, sh := range shelves {
		part := ceiling / float64(len(shelves))
		if least > 0 && len(shelves) > 1 {
			part = sh.least() / least * ceiling
		}
		bin, worst := sh.bin(sh.upTo(part))
		a.Bins, a.After, a.Worst = append(a.Bins, bin), a.After+bin.Price, a.Worst+worst
	}
	return ""
}

// sourcesOf are the candidates whose pods go to the new node; all of them if its pods come from none of them.
func sourcesOf(candidates []Candidate, bin *schedule.Bin) []Candidate {
	of := byNode(candidates)
	var out []Candidate
	for i := range candidates {
		if slices.ContainsFunc(bin.Pods, func(p *cluster.Pod) bool { return of(p) == i }) {
			out = append(out, candidates[i])
		}
	}
	if len(out) == 0 {
		return candidates
	}
	return out
}
