package hostile_test

import (
	"runtime"
	"syscall"
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

// busy is how long this thread has worked: what else runs on the machine does not count. Where the system does not say,
// it is zero.
func busy() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var use syscall.Rusage
	if err := syscall.Getrusage(thread, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkHostile says what each hostile case costs beyond the ordinary pods: to take in, to keep and to plan for.
func BenchmarkHostile(b *testing.B) { measure(b, hostile.Cases()) }

// BenchmarkAtTheBounds says the same of pods that are just small enough to be read in full.
func BenchmarkAtTheBounds(b *testing.B) { measure(b, hostile.AtTheBounds()) }

// BenchmarkByAdmins says the same of objects that only an administrator can write.
func BenchmarkByAdmins(b *testing.B) { measure(b, hostile.ByAdmins()) }

func measure(b *testing.B, cases []hostile.Case) {
	for _, c := range cases {
		b.Run(c.Name, func(b *testing.B) {
			var intake, pass time.Duration
			var intakeBytes, keptBytes, passBytes uint64
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				book := newBook(b, ordinary)
				book.Snapshot()
				was := kept()
				before, start := allocated(), busy()
				for _, o := range c.Objects {
					feed(book, o)
				}
				stock(b, book)
				intake += busy() - start
				intakeBytes += allocated() - before
				if now := kept(); now > was {
					keptBytes += now - was
				}
				before, start = allocated(), busy()
				plan.Make(book.Snapshot(), policy(), nil, nil)
				pass += busy() - start
				passBytes += allocated() - before
				runtime.KeepAlive(book)
			}
			n := float64(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(intake.Microseconds())/n/1e3, "intake-ms")
			b.ReportMetric(float64(intakeBytes)/n/1e6, "intake-MB")
			b.ReportMetric(float64(keptBytes)/n/1e6, "kept-MB")
			b.ReportMetric(float64(pass.Microseconds())/n/1e3, "pass-ms")
			b.ReportMetric(float64(passBytes)/n/1e6, "pass-MB")
		})
	}
}

// BenchmarkCrowds says how the cost of planning grows with pods that are each of a class of its own.
func BenchmarkCrowds(b *testing.B) {
	for _, n := range []int{500, 1000, 2000, 5000} {
		measure(b, hostile.ManyClasses(n))
	}
}
