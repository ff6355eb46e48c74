package disrupt_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

func TestRestsGrowAndAreForgotten(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := &cluster.Claim{}
	var waits []time.Duration
	for range 8 {
		until, rests := disrupt.RestOf(c, now)
		waits = append(waits, until.Sub(now))
		c.RestUntil, c.Rests = until, rests
		now = until.Add(time.Minute)
	}
	want := "[1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s]"
	if got := fmt.Sprint(waits); got != want {
		t.Errorf("a node that fails again and again rests for %s, want %s", got, want)
	}
	now = now.Add(2 * time.Hour)
	if until, rests := disrupt.RestOf(c, now); rests != 1 || until.Sub(now) != time.Minute {
		t.Errorf("after hours of peace it rests for %s as if for the %d. time", until.Sub(now), rests)
	}
}

// A node that pods needed whenever it was fenced rests for minutes at most.
func TestRestsOfNeededNodesAreShort(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := &cluster.Claim{}
	var waits []time.Duration
	for range 6 {
		until, rests := disrupt.SavingRestOf(c, now)
		waits = append(waits, until.Sub(now))
		c.SavingRestUntil, c.SavingRests = until, rests
		now = until
	}
	if got, want := fmt.Sprint(waits), "[1m0s 2m0s 4m0s 8m0s 10m0s 10m0s]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
