package schedule

import (
	"math/rand/v2"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// The twin of a roster walks through its lodgings one after the other.
func TestRosterFindsTheFirstWithRoom(t *testing.T) {
	dims := []int{resource.CPU, resource.Memory}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := make([]*lodging, 1+r.IntN(40))
		draw := func(lo *lodging) {
			lo.Free = resource.Vector{resource.CPU: int64(r.IntN(10) - 1), resource.Memory: int64(r.IntN(10) - 1)}
			lo.gone = r.IntN(5) == 0
		}
		for i := range list {
			list[i] = &lodging{house: &house{Host: &cluster.Host{}}}
			draw(list[i])
		}
		tree := newRoster(list, dims)
		for range 50 {
			i := r.IntN(len(list))
			draw(list[i])
			tree.update(i, list[i], dims)
			need, from := []int64{int64(r.IntN(9)), int64(r.IntN(9))}, r.IntN(len(list)+1)
			want := -1
			for j := from; j < len(list) && want < 0; j++ {
				if lo := list[j]; !lo.gone && max(lo.Free[resource.CPU], 0) >= need[0] && max(lo.Free[resource.Memory], 0) >= need[1] {
					want = j
				}
			}
			if got := tree.next(from, need); got != want {
				t.Fatalf("seed %d: from %d on, need %v: got %d, want %d", seed, from, need, got, want)
			}
		}
	}
}

// Pods that are counted and taken away again leave a spread as it was.
func TestSpreadGoesDownAgain(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var s spread
		counts := make([]int32, 1+r.IntN(4))
		for i := range counts {
			s.present(int32(i))
		}
		for range 60 {
			i, n := r.IntN(len(counts)), int32(1+r.IntN(3))
			if r.IntN(2) == 0 {
				n = -min(n, counts[i])
			}
			counts[i] += n
			s.raise(int32(i), n)
			least := counts[0]
			for j, c := range counts {
				if least = min(least, c); s.at(int32(j)) != c {
					t.Fatalf("seed %d: domain %d has %d, want %d", seed, j, s.at(int32(j)), c)
				}
			}
			if s.floor != least {
				t.Fatalf("seed %d: the emptiest of %v is said to have %d", seed, counts, s.floor)
			}
		}
	}
}
