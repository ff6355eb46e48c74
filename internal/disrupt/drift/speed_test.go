package drift

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

func BenchmarkTellClaims(b *testing.B) {
	s := disrupttest.City(10_000)
	b.ResetTimer()
	for range b.N {
		if commands, _ := ClaimConditions(s, NewRollouts(s, disrupt.Settings{}), nil); len(commands) != 0 {
			b.Fatalf("%d commands", len(commands))
		}
	}
}
