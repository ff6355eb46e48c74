package pack_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/pack"
)

type workload struct {
	name string
	make func() *pack.Problem
}

func workloads() []workload {
	return []workload{
		{"one", func() *pack.Problem { return fleet(1, 1, 1, 4) }},
		{"fleet-1000", func() *pack.Problem { return fleet(1, 1000, 60, 4) }},
		{"fleet-2000", func() *pack.Problem { return fleet(2, 2000, 150, 4) }},
		{"plain-2000", func() *pack.Problem { return plainFleet(2, 2000, 150) }},
		{"fleet-20000", func() *pack.Problem { return fleet(3, 20000, 400, 4) }},
		{"fleet-100000", func() *pack.Problem { return fleet(4, 100000, 800, 4) }},
		{"memory-heavy-5000", func() *pack.Problem { return fleet(5, 5000, 200, 12) }},
		{"cpu-heavy-5000", func() *pack.Problem { return fleet(6, 5000, 200, 1) }},
		{"gpu-mix-3000", func() *pack.Problem { return gpuMix(7, 3000) }},
		{"diverse-1000", func() *pack.Problem { return diverse(8, 1000) }},
		{"diverse-20000", func() *pack.Problem { return diverse(9, 20000) }},
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			p := w.make()
			bound := pack.Bound(p)
			var s pack.Solution
			b.ReportAllocs()
			for b.Loop() {
				s = pack.Solve(p)
			}
			nodes := 0
			for i := range s.Bins {
				nodes += s.Bins[i].Times
			}
			b.ReportMetric(float64(len(p.Items)), "stacks")
			b.ReportMetric(float64(nodes), "nodes")
			b.ReportMetric(s.Price, "$/h")
			b.ReportMetric(100*(s.Price/bound-1), "%above")
		})
	}
}

func BenchmarkBound(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			p := w.make()
			var bound float64
			b.ReportAllocs()
			for b.Loop() {
				bound = pack.Bound(p)
			}
			b.ReportMetric(bound, "$/h")
		})
	}
}
