package search_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// settings are the program's own, with spot nodes replaced by spot nodes.
func settings() disrupt.Settings {
	return disrupt.Settings{MinSaving: 0.05, MinSavingPerPod: 0.0001, SpotToSpot: true, SpotTypes: 15}
}

// parish is how many nodes are made at once.
const parish = 1000

// scaledDown is a cluster of about n nodes, 20 pods each, of which half have gone.
func scaledDown(n int) *town {
	r := rand.New(rand.NewPCG(uint64(n), 5))
	catalog := region(r, 40, []int64{4, 8, 16, 24})
	w := newTown(catalog, threePools(catalog)...)
	w.daemons = []*cluster.Daemon{agent(150)}
	for left := n; left > 0; left -= parish { // in parts, because that is quicker
		w.populate(r, min(left, parish)*40)
	}
	w.shrink(r, 0.1, 0.9)
	w.sweep()
	return w
}

// BenchmarkConsolidate makes decisions about whole clusters after a scale-down, and says where they settle.
func BenchmarkConsolidate(b *testing.B) {
	for _, n := range []int{100, 500, 2000, 10000} {
		b.Run(fmt.Sprint("consolidate-", n), func(b *testing.B) {
			w := scaledDown(n)
			s := w.snapshot()
			b.ReportAllocs()
			for b.Loop() {
				search.Find(s, settings())
			}
			b.StopTimer()
			report(w, n)
		})
	}
}

// report lets the cluster settle and prints what came of it: decision_s is the longest of its searches, cost_fresh what
// the same pods cost if they are packed from nothing.
func report(w *town, n int) {
	nodes, pods, before, moved, rounds := len(w.nodes), w.workload(), w.cost(), 0, 0
	for searching := true; searching; rounds++ {
		p, count := w.round(settings(), nil)
		moved += count
		searching = len(p.Moves) > 0
	}
	fresh := schedule.Place(w.afresh().SchedulerView(), schedule.Settings{})
	fmt.Printf("workload=consolidate-%d nodes=%d pods=%d decision_s=%.3f cost_before=%.2f cost_after=%.2f "+
		"cost_fresh=%.2f pods_moved=%d alloc_mb=%d rounds=%d nodes_after=%d\n",
		n, nodes, pods, w.took.Seconds(), before, w.cost(), fresh.Price, moved, w.alloc>>20, rounds, len(w.nodes))
}

// workload counts the pods that are not daemons'.
func (w *town) workload() int {
	n := 0
	for _, p := range w.pods {
		if !p.Daemon {
			n++
		}
	}
	return n
}
