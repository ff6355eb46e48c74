package pack

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/pack/lp"
)

// Solve finds a cheap set of nodes for the items. It tries several ways and keeps the best answer: one that leaves the
// fewest pods of the highest rank, then of the next, and costs the least.
func Solve(p *Problem) Solution {
	m := newModel(p, false)
	relaxed := lp.Relax(&m.Problem, false)
	s := newSolver(m, &relaxed)
	if p.Brief {
		s.learnWorth(briefRuns)
	} else {
		s.learnWorth(maxRuns)
	}
	if s.best.Price > relaxed.Bound*firstFitAbove || s.isScarce() {
		s.tryFirstFit()
	}
	if s.isScarce() {
		s.solveScarce()
	} else if len(s.best.Bins) <= polishBins && !p.Brief {
		s.polish()
	}
	s.improvePreferences()
	if s.isScarce() {
		s.exchangeRanks()
	}
	s.best.Truncated = s.truncated || relaxed.IsGuess
	return s.best
}

// How much is tried: runs of the greedy packing, as long as the pods looked at stay below the budget. Once the answer
// is good, a small part of the budget is enough.
const (
	maxRuns       = 12
	briefRuns     = 3
	workBase      = 100_000
	workPerPod    = 1000
	workMost      = 4_000_000
	mostWork      = 8_000_000 // of one run; then it is brought to an end in haste
	goodAbove     = 1.025
	goodPart      = 24
	learnPower    = 0.5
	firstFitAbove = 1.03 // nearer to the bound than this, the plain way has nothing to add
	fewOptions    = 40
)

// solver keeps the best answer so far.
type solver struct {
	m          *model
	relaxation *lp.Relaxation
	filler     *binFiller
	options    []int
	price      []float64 // by option
	worth      []float64 // by item, as learned for the best run
	ranks      []int32   // from high to low
	best       Solution
	found      bool
	truncated  bool // a run was brought to an end in haste
	budget     int
}

func newSolver(m *model, relaxed *lp.Relaxation) *solver {
	s := &solver{m: m, relaxation: relaxed, filler: newBinFiller(m), options: m.usefulOptions(relaxed)}
	for _, o := range m.options {
		s.price = append(s.price, m.p.BinTypes[o].Price)
	}
	pods := 0
	for i := range m.p.Items {
		pods += m.p.Items[i].Count
		s.ranks = append(s.ranks, m.p.Items[i].Rank)
	}
	s.budget = min(workBase+workPerPod*pods, workMost)
	slices.Sort(s.ranks)
	s.ranks = slices.Compact(s.ranks)
	slices.Reverse(s.ranks)
	return s
}

// usefulOptions are the options that could be good for something: nearly worth their price in the linear program, or
// the cheapest that holds a pod of some item. Where there are few, all are.
func (m *model) usefulOptions(r *lp.Relaxation) []int {
	in := make([]bool, len(m.options))
	held := make([]bool, len(m.p.Items))
	for k, list := range m.FittingItems {
		in[k] = r.Merit[k] > 0.85 || len(m.options) <= fewOptions
		for _, s := range list {
			if !held[s] {
				held[s], in[k] = true, true
			}
		}
	}
	var out []int
	for k, ok := range in {
		if ok {
			out = append(out, k)
		}
	}
	return out
}

// learnWorth packs greedily again and again. Pods that ended up on nodes that are not worth their price become more
// worth, so that the next time they come before others who have it easier.
func (s *solver) learnWorth(runs int) {
	worth := slices.Clone(s.relaxation.Worth)
	for range runs {
		s.filler.prepare(s.options, worth, s.relaxation.Rate, nil)
		r := newPackingRun(s.m)
		r.greedy(s.filler, s.options, s.price)
		s.truncated = s.truncated || r.truncated
		r.finish()
		if s.keepIfBetter(r) {
			s.worth = slices.Clone(worth)
		}
		good := s.best.Price <= s.relaxation.Bound*goodAbove && s.filler.work > s.budget/goodPart
		if good || s.filler.work > s.budget || s.best.Price <= s.relaxation.Bound*1.0005 {
			return
		}
		s.m.raiseWorth(worth, r.bins)
	}
}

// raiseWorth makes the pods of dear nodes more worth.
func (m *model) raiseWorth(worth []float64, bins []Bin) {
	paid, pods := make([]float64, len(worth)), make([]float64, len(worth))
	for i := range bins {
		value := 1e-12
		for _, p := range bins[i].Parts {
			value += worth[p.Item] * float64(p.Count)
		}
		score := m.p.BinTypes[bins[i].BinType].Price / value
		for _, p := range bins[i].Parts {
			n := float64(p.Count * bins[i].Times)
			paid[p.Item] += score * n
			pods[p.Item] += n
		}
	}
	for s := range worth {
		if pods[s] > 0 {
			worth[s] *= math.Pow(paid[s]/pods[s], learnPower)
		}
	}
}

// tryFirstFit tries the plain way.
func (s *solver) tryFirstFit() {
	r := newPackingRun(s.m)
	if r.firstFit(); r.truncated {
		s.truncated = true // it would have been a yardstick, no more
		return
	}
	r.finish()
	s.keepIfBetter(r)
}

// finish completes a run.
func (r *packingRun) finish() {
	r.placeLeftOver()
	r.cheapenBins()
}

// keepIfBetter keeps the run's answer if it is better than the best so far.
func (s *solver) keepIfBetter(r *packingRun) bool {
	answer := r.solution()
	if s.found && !s.better(&answer, &s.best) {
		return false
	}
	s.best, s.found = answer, true
	return true
}

// better reports whether a leaves fewer pods of a high rank than b, or as many of each and costs less.
func (s *solver) better(a, b *Solution) bool {
	x, y := s.byRank(a.Unplaced), s.byRank(b.Unplaced)
	if c := slices.Compare(x, y); c != 0 {
		return c < 0
	}
	return a.Price < b.Price
}

// byRank counts pods by rank, the highest first.
func (s *solver) byRank(left []int) []int {
	out := make([]int, len(s.ranks))
	for i, n := range left {
		if n > 0 {
			out[slices.Index(s.ranks, s.m.p.Items[i].Rank)] += n
		}
	}
	return out
}

// isScarce reports whether pods are left for which there would be an option.
func (s *solver) isScarce() bool {
	for i, n := range s.best.Unplaced {
		if n > 0 && s.relaxation.RowOf[i] >= 0 && s.m.fitsEmptyNode(i) {
			return true
		}
	}
	return false
}
