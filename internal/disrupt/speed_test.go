package disrupt_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

func BenchmarkCandidates(b *testing.B) {
	s := disrupttest.City(10_000)
	b.ResetTimer()
	for range b.N {
		if got, _, _ := disrupt.Candidates(s, disrupt.Settings{EvictionsPerHour: 2},
			command.Underutilized); len(got) != 10_000 {
			b.Fatalf("%d candidates", len(got))
		}
	}
}

func BenchmarkLedger(b *testing.B) {
	s := disrupttest.City(10_000)
	b.ResetTimer()
	for range b.N {
		if disrupt.NewBudgetTracker(s).Remaining("default", command.Drifted) != 1000 {
			b.Fatal("the budget is 10%")
		}
	}
}

func BenchmarkTotals(b *testing.B) {
	s := disrupttest.City(10_000)
	b.ResetTimer()
	for range b.N {
		if disrupt.NewPoolTotals(s)["default"].Price != 40_000 {
			b.Fatal("all cost 4")
		}
	}
}
