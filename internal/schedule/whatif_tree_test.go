package schedule

import (
	"math/rand/v2"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// The twin of a tree walks through its target nodes one after the other.
func TestRosterFindsTheFirstWithRoom(t *testing.T) {
	dims := []int{resource.CPU, resource.Memory}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := make([]*targetNode, 1+r.IntN(40))
		draw := func(target *targetNode) {
			target.Free = resource.Vector{resource.CPU: int64(r.IntN(10) - 1), resource.Memory: int64(r.IntN(10) - 1)}
			target.removed = r.IntN(5) == 0
		}
		for i := range list {
			list[i] = &targetNode{hostState: &hostState{Host: &cluster.Host{}}}
			draw(list[i])
		}
		tree := newTargetTree(list, dims)
		for range 50 {
			i := r.IntN(len(list))
			draw(list[i])
			tree.update(i, list[i], dims)
			need, from := []int64{int64(r.IntN(9)), int64(r.IntN(9))}, r.IntN(len(list)+1)
			want := -1
			for j := from; j < len(list) && want < 0; j++ {
				if target := list[j]; !target.removed && max(target.Free[resource.CPU], 0) >= need[0] &&
					max(target.Free[resource.Memory], 0) >= need[1] {
					want = j
				}
			}
			if got := tree.firstWithRoom(from, need); got != want {
				t.Fatalf("seed %d: from %d on, need %v: got %d, want %d", seed, from, need, got, want)
			}
		}
	}
}

// Pods that are counted and taken away again leave a spread as it was.
func TestSpreadGoesDownAgain(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var s spreadCounts
		counts := make([]int32, 1+r.IntN(4))
		for i := range counts {
			s.addDomain(int32(i))
		}
		for range 60 {
			i, n := r.IntN(len(counts)), int32(1+r.IntN(3))
			if r.IntN(2) == 0 {
				n = -min(n, counts[i])
			}
			counts[i] += n
			s.addPods(int32(i), n)
			least := counts[0]
			for j, c := range counts {
				if least = min(least, c); s.countAt(int32(j)) != c {
					t.Fatalf("seed %d: domain %d has %d, want %d", seed, j, s.countAt(int32(j)), c)
				}
			}
			if s.lowest != least {
				t.Fatalf("seed %d: the emptiest of %v is said to have %d", seed, counts, s.lowest)
			}
		}
	}
}
