package topology

import (
	"math/rand/v2"
	"testing"
)

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
