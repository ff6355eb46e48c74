package fuzz

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
)

// ordinary is how many clusters an ordinary test run draws.
const ordinary = 3000

func TestMain(m *testing.M) {
	flag.Int("clusters", ordinary, "how many clusters TestRandomClusters draws")
	flag.Uint64("from", 1, "the first seed of TestRandomClusters")
	os.Exit(m.Run())
}

// TestRandomClusters does with random bytes what FuzzCluster does with bytes that the fuzzer has chosen. It needs no
// build of its own, so every test run can afford it.
func TestRandomClusters(t *testing.T) {
	count := flag.Lookup("clusters").Value.(flag.Getter).Get().(int)
	from := flag.Lookup("from").Value.(flag.Getter).Get().(uint64)
	for seed := from; seed < from+uint64(count) && !t.Failed(); seed++ {
		random := rand.New(rand.NewPCG(seed, 0xf022))
		data := make([]byte, 30+random.IntN(900))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if !t.Run("", func(t *testing.T) { judge(t, data) }) {
			t.Errorf("seed %d; again with: go test ./internal/fuzz -run TestRandomClusters -from %d -clusters 1",
				seed, seed)
		}
	}
}
