package whatif

import (
	"math/rand/v2"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
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
			list[i] = &targetNode{Host: &topology.Host{Host: &cluster.Host{}}}
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
