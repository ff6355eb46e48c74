package pack

import (
	"math"
	"slices"
)

// Solve finds a cheap set of nodes for the stacks. It tries several ways and keeps the best answer: one that leaves the
// fewest pods of the highest rank, then of the next, and costs the least.
func Solve(p *Problem) Solution {
	m := newModel(p, false)
	relaxed := relax(m, false)
	s := newSearch(m, &relaxed)
	if p.Brief {
		s.learn(briefRuns)
	} else {
		s.learn(maxRuns)
	}
	if s.best.Price > relaxed.bound*plainAbove || s.scarce() {
		s.plain()
	}
	if s.scarce() {
		s.ration()
	} else if len(s.best.Bins) <= polishBins && !p.Brief {
		s.polish()
	}
	s.please()
	if s.scarce() {
		s.settle()
	}
	s.best.Cut = s.cut || relaxed.plain
	return s.best
}

// How much is tried: runs of the greedy packing, as long as the pods looked at stay below the budget. Once the answer is
// good, a small part of the budget is enough.
const (
	maxRuns    = 12
	briefRuns  = 3
	workBase   = 100_000
	workPerPod = 1000
	workMost   = 4_000_000
	mostWork   = 8_000_000 // of one run; then it is brought to an end in haste
	goodAbove  = 1.025
	goodPart   = 24
	learnPower = 0.5
	plainAbove = 1.03 // nearer to the bound than this, the plain way has nothing to add
	fewKinds   = 40
)

// search keeps the best answer so far.
type search struct {
	m       *model
	relaxed *relaxation
	fill    *filling
	kinds   []int
	price   []float64 // by kind
	worth   []float64 // by stack, as learned for the best run
	ranks   []int32   // from high to low
	best    Solution
	found   bool
	cut     bool // a run was brought to an end in haste
	budget  int
}

func newSearch(m *model, relaxed *relaxation) *search {
	s := &search{m: m, relaxed: relaxed, fill: newFilling(m), kinds: m.contenders(relaxed)}
	for _, o := range m.kinds {
		s.price = append(s.price, m.p.Offers[o].Price)
	}
	pods := 0
	for i := range m.p.Stacks {
		pods += m.p.Stacks[i].Count
		s.ranks = append(s.ranks, m.p.Stacks[i].Rank)
	}
	s.budget = min(workBase+workPerPod*pods, workMost)
	slices.Sort(s.ranks)
	s.ranks = slices.Compact(s.ranks)
	slices.Reverse(s.ranks)
	return s
}

// contenders are the kinds that could be good for something: nearly worth their price in the linear program, or the
// cheapest that holds a pod of some stack. Where there are few, all are.
func (m *model) contenders(r *relaxation) []int {
	in := make([]bool, len(m.kinds))
	held := make([]bool, len(m.p.Stacks))
	for k, list := range m.holds {
		in[k] = r.merit[k] > 0.85 || len(m.kinds) <= fewKinds
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

// learn packs greedily again and again. Pods that ended up on nodes that are not worth their price become more worth, so
// that the next time they come before others who have it easier.
func (s *search) learn(runs int) {
	worth := slices.Clone(s.relaxed.worth)
	for range runs {
		s.fill.prepare(s.kinds, worth, s.relaxed.rate, nil)
		r := newRun(s.m)
		r.greedy(s.fill, s.kinds, s.price)
		s.cut = s.cut || r.cut
		r.finish()
		if s.offer(r) {
			s.worth = slices.Clone(worth)
		}
		good := s.best.Price <= s.relaxed.bound*goodAbove && s.fill.work > s.budget/goodPart
		if good || s.fill.work > s.budget || s.best.Price <= s.relaxed.bound*1.0005 {
			return
		}
		s.m.raise(worth, r.bins)
	}
}

// raise makes the pods of dear nodes more worth.
func (m *model) raise(worth []float64, bins []Bin) {
	paid, pods := make([]float64, len(worth)), make([]float64, len(worth))
	for i := range bins {
		value := 1e-12
		for _, p := range bins[i].Parts {
			value += worth[p.Stack] * float64(p.Count)
		}
		score := m.p.Offers[bins[i].Offer].Price / value
		for _, p := range bins[i].Parts {
			n := float64(p.Count * bins[i].Times)
			paid[p.Stack] += score * n
			pods[p.Stack] += n
		}
	}
	for s := range worth {
		if pods[s] > 0 {
			worth[s] *= math.Pow(paid[s]/pods[s], learnPower)
		}
	}
}

// plain tries the plain way.
func (s *search) plain() {
	r := newRun(s.m)
	if r.firstFit(); r.cut {
		s.cut = true // it would have been a yardstick, no more
		return
	}
	r.finish()
	s.offer(r)
}

// finish completes a run.
func (r *run) finish() {
	r.rescue()
	r.trim()
}

// offer keeps the run's answer if it is better than the best so far.
func (s *search) offer(r *run) bool {
	answer := r.solution()
	if s.found && !s.better(&answer, &s.best) {
		return false
	}
	s.best, s.found = answer, true
	return true
}

// better reports whether a leaves fewer pods of a high rank than b, or as many of each and costs less.
func (s *search) better(a, b *Solution) bool {
	x, y := s.byRank(a.Left), s.byRank(b.Left)
	if c := slices.Compare(x, y); c != 0 {
		return c < 0
	}
	return a.Price < b.Price
}

// byRank counts pods by rank, the highest first.
func (s *search) byRank(left []int) []int {
	out := make([]int, len(s.ranks))
	for i, n := range left {
		if n > 0 {
			out[slices.Index(s.ranks, s.m.p.Stacks[i].Rank)] += n
		}
	}
	return out
}

// scarce reports whether pods are left for which there would be a kind.
func (s *search) scarce() bool {
	for i, n := range s.best.Left {
		if n > 0 && s.relaxed.row[i] >= 0 && s.m.sane(i) {
			return true
		}
	}
	return false
}
