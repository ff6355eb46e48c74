package resource_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/resource"
)

func cores(n ...int64) []resource.Vector {
	out := make([]resource.Vector, len(n))
	for i := range n {
		out[i][resource.CPU] = n[i]
	}
	return out
}

func TestRangeTake(t *testing.T) {
	many := make([]int64, 65)
	for i := range many {
		many[i] = 3
	}
	cases := map[string]struct {
		room      int64
		needs     []int64
		low, high int64
	}{
		"all fit":                       {8, []int64{2, 5}, 1, 1},
		"the larger may come first":     {8, []int64{2, 7}, 1, 8},
		"two of three fill it":          {8, []int64{3, 5, 6}, 0, 8},
		"the small ones count as taken": {10, []int64{9, 8, 8, 8, 8, 8, 1}, 0, 10},
		"so many may take all of it":    {100, many, 0, 100},
	}
	for name, c := range cases {
		room := cores(c.room)[0]
		got := resource.Range{Low: room, High: room}.Take(cores(c.needs...))
		if got.Low[resource.CPU] != c.low || got.High[resource.CPU] != c.high {
			t.Errorf("%s: at least %d and at most %d are left; expected %d and %d",
				name, got.Low[resource.CPU], got.High[resource.CPU], c.low, c.high)
		}
	}
}

// Very many needs are taken as their sum: the same as one by one.
func TestRangeTakesManyBySum(t *testing.T) {
	needs := make([]resource.Vector, resource.ManyNeeds+1)
	var sum resource.Vector
	for i := range needs {
		needs[i][resource.CPU], needs[i][resource.Memory] = 3, 1
		sum = sum.Add(needs[i])
	}
	room := resource.Vector{resource.CPU: 100, resource.Memory: 1000}
	r := resource.Range{Low: room, High: room}
	one, all := r.Take(needs), r.TakeSome(sum)
	if one != all || all.Low[resource.CPU] != 0 || all.Low[resource.Memory] != 1000-int64(len(needs)) {
		t.Errorf("one by one %v is left, by their sum %v", one, all)
	}
}

// Whoever comes first, in two groups of which the second comes after the first, what is left is within the range.
func TestRangeHoldsForEveryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vector := rapid.Custom(func(t *rapid.T) resource.Vector {
			var v resource.Vector
			v[resource.CPU], v[resource.Memory] = rapid.Int64Range(0, 9).Draw(t, "cpu"),
				rapid.Int64Range(0, 9).Draw(t, "memory")
			return v
		})
		var left resource.Vector
		left[resource.CPU] = rapid.Int64Range(0, 20).Draw(t, "cpus")
		left[resource.Memory] = rapid.Int64Range(0, 20).Draw(t, "memories")
		want := resource.Range{Low: left, High: left}
		for range 2 {
			needs := rapid.SliceOfN(vector, 0, 9).Draw(t, "needs")
			want = want.Take(needs)
			for _, need := range rapid.Permutation(needs).Draw(t, "order") {
				if need.Fits(left) {
					left = left.Sub(need)
				}
			}
		}
		if !want.Low.Within(left) || !left.Within(want.High) {
			t.Fatalf("%v is left; expected something between %v and %v", left, want.Low, want.High)
		}
	})
}
