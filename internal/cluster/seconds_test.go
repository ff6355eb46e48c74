package cluster

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever number somebody writes: it is never less than none, more is never shorter, and what is added to it or taken
// from a time stays what it is.
func TestSecondsNeverComeRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 7200), rapid.Int64Range(9_223_372_030, 9_300_000_000),
			rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0})).Draw(t, "n")
		m := rapid.Int64Range(0, math.MaxInt64).Draw(t, "m")
		d, now := Seconds(n), time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "now"), 0)
		switch {
		case d < 0, d > LongestGrace, d%time.Second != 0:
			t.Fatalf("%d seconds are %s", n, d)
		case n >= 0 && n <= int64(LongestGrace/time.Second) && int64(d/time.Second) != n:
			t.Fatalf("%d seconds are %s", n, d)
		case m >= n && Seconds(m) < d:
			t.Fatalf("%d seconds are longer than %d", n, m)
		case d+24*time.Hour < d, now.Add(d).Before(now), now.Add(-d).After(now):
			t.Fatalf("what follows %d seconds has passed", n)
		}
	})
}
