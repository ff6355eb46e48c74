package hostile_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/plan"
)

const ordinary = 50

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func kept() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkHostile says what each hostile case costs beyond the ordinary pods: to take in, to keep and to plan for.
func BenchmarkHostile(b *testing.B) {
	for _, c := range hostile.Cases() {
		b.Run(c.Name, func(b *testing.B) {
			var intake, pass time.Duration
			var intakeBytes, keptBytes, passBytes uint64
			for b.Loop() {
				book := newBook(b, ordinary)
				book.Snapshot()
				was := kept()
				before, start := allocated(), time.Now()
				for _, o := range c.Objects {
					feed(book, o)
				}
				intake += time.Since(start)
				intakeBytes += allocated() - before
				if now := kept(); now > was {
					keptBytes += now - was
				}
				before, start = allocated(), time.Now()
				plan.Make(book.Snapshot(), policy(), nil, nil)
				pass += time.Since(start)
				passBytes += allocated() - before
				runtime.KeepAlive(book)
			}
			n := float64(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(intake.Milliseconds())/n, "intake-ms")
			b.ReportMetric(float64(intakeBytes)/n/1e6, "intake-MB")
			b.ReportMetric(float64(keptBytes)/n/1e6, "kept-MB")
			b.ReportMetric(float64(pass.Milliseconds())/n, "pass-ms")
			b.ReportMetric(float64(passBytes)/n/1e6, "pass-MB")
		})
	}
}
