package pack_test

import (
	"math/rand"
	"testing"

	"github.com/tenon-sh/tenon/internal/pack"
)

// No pod stays out while pods of a lower rank are on a node where it could be instead.
func TestRankDecidesWhoIsServed(t *testing.T) {
	short := 0
	for seed := range int64(800) {
		r := rand.New(rand.NewSource(seed))
		c := everything(r)
		c.shelves, c.suits = true, false
		p := generate(r, c)
		s := pack.Solve(p)
		if err := check(p, &s); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, n := range s.Unplaced {
			if n == 0 || homeOf(p, i) < 0 {
				continue
			}
			short++
			for _, b := range s.Bins {
				if content, lower := instead(p, i, b); lower && p.FeasibleSets[p.Items[i].Feasible].Has(b.BinType) {
					probe := pack.Bin{BinType: b.BinType, Parts: content, Times: 1}
					if checkNode(p, &probe) == nil {
						t.Fatalf("seed %d: stack %d (rank %d) has %d left, but could displace lower ranks in %+v", seed,
							i, p.Items[i].Rank, n, b)
					}
				}
			}
		}
	}
	t.Logf("%d stacks were cut short", short)
	if short < 500 {
		t.Error("too few for a meaningful test")
	}
}

// instead is the content of the bin with one more pod of the item and without any of a lower rank; lower says whether
// there were such.
func instead(p *pack.Problem, item int, b pack.Bin) (content []pack.Part, lower bool) {
	added := false
	for _, part := range b.Parts {
		if p.Items[part.Item].Rank < p.Items[item].Rank {
			lower = true
			continue
		}
		if !added && part.Item >= item {
			added = true
			if part.Item == item {
				part.Count++
			} else {
				content = append(content, pack.Part{Item: item, Count: 1})
			}
		}
		content = append(content, part)
	}
	if !added {
		content = append(content, pack.Part{Item: item, Count: 1})
	}
	return content, lower
}
