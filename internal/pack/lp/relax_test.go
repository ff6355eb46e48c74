package lp

import (
	"math"
	"testing"
)

// problem has one kind of node with room for 10 CPU and 40 memory at a price of 2, and two items.
func problem() *Problem {
	return &Problem{Dims: 2,
		Counts: []int{6, 4}, Needs: []int64{4, 1, 1, 15}, NeedsFloat: []float64{4, 1, 1, 15}, SetOf: []int32{0, 0},
		Prices: []float64{2}, Room: []int64{10, 40}, OptionSets: []uint64{1}, Words: 1, FittingItems: [][]int32{{0, 1}},
		Shares: func(int, func(int32, float64)) {}}
}

func TestTheBoundIsWhatDividedNodesCost(t *testing.T) {
	// 28 CPU of 10 take 2.8 nodes and 66 memory of 40 take 1.65: CPU decides.
	if r := Relax(problem(), true); math.Abs(r.Bound-2*2.8) > 0.01*r.Bound || r.Bound > 2*2.8+1e-9 {
		t.Errorf("the bound is %v, want at most and nearly 5.6", r.Bound)
	}
}

func TestNoRateMakesANodeDearerThanItsPrice(t *testing.T) {
	p := problem()
	r := Relax(p, false)
	if sum := r.Rate[0]*10 + r.Rate[1]*40; sum > 2*(1+1e-9) {
		t.Errorf("at the rates %v a node's room costs %v, and its price is 2", r.Rate, sum)
	}
	for s := range p.Counts {
		if pays := r.Rate[0]*p.NeedsFloat[2*s] + r.Rate[1]*p.NeedsFloat[2*s+1]; r.Worth[s] > pays+1e-9 {
			t.Errorf("item %d is worth %v and would pay %v on the only node", s, r.Worth[s], pays)
		}
	}
}

func TestMarksThatPodsShareForceNodes(t *testing.T) {
	p := problem()
	p.MarkCount, p.Shares = 1, func(item int, each func(int32, float64)) {
		if item == 0 {
			each(0, 1) // one pod of the item to a node
		}
	}
	if r := Relax(p, true); r.Bound < 2*6*0.99 {
		t.Errorf("six pods that each want a node of their own have a bound of %v, want nearly 12", r.Bound)
	}
}

func TestAnItemThatNothingHoldsHasNoRowAndCountsNothing(t *testing.T) {
	p := problem()
	p.FittingItems = [][]int32{{1}}
	r := Relax(p, true)
	if r.RowOf[0] != -1 || r.Worth[0] != 0 || r.RowOf[1] < 0 {
		t.Errorf("rows %v, worth %v: want no row for the first item", r.RowOf, r.Worth)
	}
}
