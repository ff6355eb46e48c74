package pack_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// TestBudgetOfSteps: a search that has used up its steps still gives an answer that every rule holds for, the same each
// time, that says so; nobody who would have found a place is left over for want of steps.
func TestBudgetOfSteps(t *testing.T) {
	cut := 0
	for seed := range int64(400) {
		r := rand.New(rand.NewSource(seed))
		p := generate(r, everything(r))
		full := pack.Solve(p)
		p.Steps = 1 + r.Intn(200)
		short := pack.Solve(p)
		if err := check(p, &short); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again := pack.Solve(p); !reflect.DeepEqual(again, short) {
			t.Fatalf("seed %d: another answer the second time", seed)
		}
		if short.Truncated {
			cut++
		}
		if len(p.Reservations) == 0 && p.Suits == nil && unbounded(p) && !slices.Equal(full.Unplaced, short.Unplaced) {
			t.Fatalf("seed %d: %v are left, with more steps %v", seed, short.Unplaced, full.Unplaced)
		}
	}
	if cut < 100 {
		t.Errorf("only %d of 400 searches were cut short", cut)
	}
}

func unbounded(p *pack.Problem) bool {
	return !slices.ContainsFunc(p.Limits, func(s pack.Limit) bool {
		return s.Nodes >= 0 || s.Limited != [resource.Size]bool{}
	})
}

// repelling is a problem of n items of one pod each that all repel each other.
func repelling(n int) *pack.Problem {
	p := &pack.Problem{Limits: []pack.Limit{{Nodes: -1}}}
	for i := range 40 {
		o := pack.BinType{Price: 0.1 + 0.09*float64(i), Reservation: -1}
		o.Room[resource.CPU], o.Room[resource.Memory], o.Room[resource.Pods] = int64(1000*(i+1)), int64(i+1)<<30, 100
		p.BinTypes = append(p.BinTypes, o)
	}
	p.FeasibleSets = []require.Bits{require.AllBits(len(p.BinTypes))}
	for i := range n {
		s := pack.Item{Count: 1, Preference: -1}
		s.Need[resource.CPU], s.Need[resource.Memory], s.Need[resource.Pods] = int64(100+i%700), 1<<20, 1
		s.Excludes = []int32{int32(i)}
		for j := range n {
			if j != i {
				s.ExcludedAs = append(s.ExcludedAs, int32(j))
			}
		}
		p.Items = append(p.Items, s)
	}
	return p
}

// TestRepellingStacks: each gets a node of its own, however many there are.
func TestRepellingStacks(t *testing.T) {
	p := repelling(600)
	s := pack.Solve(p)
	if err := check(p, &s); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	for _, b := range s.Bins {
		nodes += b.Times
	}
	if nodes != 600 || s.Truncated {
		t.Errorf("%d nodes, cut short: %v", nodes, s.Truncated)
	}
}

// TestManySites: more sets than the linear program tells apart come to an end, with an answer and a bound that hold.
func TestManySites(t *testing.T) {
	const n = 2000
	p := repelling(0)
	p.FeasibleSets = nil
	for i := range n {
		bits := require.AllBits(len(p.BinTypes))
		for j := range 11 { // the first bin types are ruled out in a way of its own
			if i>>j&1 == 1 {
				bits[0] &^= 1 << j
			}
		}
		p.FeasibleSets = append(p.FeasibleSets, bits)
		s := pack.Item{Count: 1, Preference: -1, Feasible: i, Unrestricted: i}
		s.Need[resource.CPU], s.Need[resource.Memory], s.Need[resource.Pods] = int64(100+i%700), int64(1+i%9)<<20, 1
		p.Items = append(p.Items, s)
	}
	s := pack.Solve(p)
	if err := check(p, &s); err != nil {
		t.Fatal(err)
	}
	if bound := pack.Bound(p); !s.Truncated || slices.Max(s.Unplaced) > 0 || bound <= 0 || bound > s.Price+1e-9 {
		t.Errorf("cut short: %v, %d left of one, price %g, bound %g", s.Truncated, slices.Max(s.Unplaced),
			s.Price, bound)
	}
}

func BenchmarkRepelling(b *testing.B) {
	for _, n := range []int{250, 500, 1000, 2000} {
		p := repelling(n)
		b.Run(fmt.Sprint(n, "-stacks"), func(b *testing.B) {
			for b.Loop() {
				pack.Solve(p)
			}
		})
	}
}
