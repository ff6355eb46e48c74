package pack_test

import (
	"math/rand"
	"testing"

	"github.com/tenon-sh/tenon/internal/pack"
)

func TestEveryRuleHolds(t *testing.T) {
	placed, left := 0, 0
	for seed := range int64(2000) {
		r := rand.New(rand.NewSource(seed))
		p := generate(r, everything(r))
		s := pack.Solve(p)
		if err := check(p, &s); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all := true
		for i, n := range s.Unplaced {
			all = all && n == 0
			left += n
			placed += p.Items[i].Count - n
		}
		// What nothing stands in the way of is placed.
		if len(p.Reservations) == 0 && len(p.Limits) == 1 {
			for i, n := range s.Unplaced {
				if n > 0 && homeOf(p, i) >= 0 {
					t.Fatalf("seed %d: %d of stack %d are left, offer %d holds them", seed, n, i, homeOf(p, i))
				}
			}
			if bound := pack.Bound(p); all && bound > s.Price+1e-9 {
				t.Fatalf("seed %d: the bound is %g, we pay %g", seed, bound, s.Price)
			}
		}
	}
	t.Logf("%d pods placed, %d left", placed, left)
	if placed < 2*left {
		t.Errorf("too few are placed for a meaningful test")
	}
}

// homeOf is a bin type that can hold a pod of the item, or −1.
func homeOf(p *pack.Problem, item int) int {
	s := &p.Items[item]
	for _, c := range s.Caps {
		for _, id := range s.Counts {
			if id == c.ID && c.Most == 0 {
				return -1
			}
		}
	}
	for o := range p.FeasibleSets[s.Feasible].All {
		alone := []pack.Part{{Item: item, Count: 1}}
		if s.Need.Fits(p.BinTypes[o].Room) && (p.Suits == nil || p.Suits(o, alone)) {
			return o
		}
	}
	return -1
}
