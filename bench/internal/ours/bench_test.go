package ours

import (
	"testing"

	"github.com/tenon-sh/tenon/bench/internal/contest"
	"github.com/tenon-sh/tenon/bench/internal/outcome"
	"github.com/tenon-sh/tenon/bench/internal/workload"
)

// BenchmarkPlace solves each workload of the comparison with the peer, cold, from API objects to a placement.
func BenchmarkPlace(b *testing.B) {
	for _, k := range workload.Kinds() {
		b.Run(k.Name, func(b *testing.B) {
			w, err := k.Make()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var last contest.Run
			for b.Loop() {
				b.StopTimer()
				r, err := Solver{}.Prepare(w, contest.Policy{})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := r.Solve(b.Context()); err != nil {
					b.Fatal(err)
				}
				last = r
			}
			o := last.Outcome()
			a := outcome.Audit(w, &o, false)
			if !a.Valid() {
				b.Fatalf("the placement is not valid: %v", a.Problems)
			}
			b.ReportMetric(float64(a.Nodes), "nodes")
			b.ReportMetric(a.Cost, "$/h")
			b.ReportMetric(last.Bound(), "bound-$/h")
			b.ReportMetric(float64(a.Unplaced), "unplaced")
		})
	}
}
