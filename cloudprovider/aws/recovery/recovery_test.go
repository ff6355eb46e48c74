package recovery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPanicBecomesAnErrorAndIsTold(t *testing.T) {
	var told []Failure
	g := &Guard{Tell: func(f Failure) { told = append(told, f) }}
	if err := g.Run("naming", func() {}); err != nil || len(told) != 0 {
		t.Errorf("nothing fails: %v, told %v", err, told)
	}
	const want = "naming failed, which is a mistake in Tenon: boom"
	if err := g.Run("naming", func() { panic("boom") }); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if len(told) != 1 || told[0].Doing != "naming" || told[0].Panic != want || !strings.Contains(told[0].Stack,
		"recovery_test.go") {
		t.Errorf("told %+v", told)
	}
	for _, silent := range []*Guard{nil, {}} {
		if err := silent.Run("naming", func() { panic("boom") }); err == nil {
			t.Error("a guard that tells nobody does not catch it")
		}
	}
}

// Work that panics begins again, less and less soon, until it ends by itself or the context does.
func TestWorkBeginsAgain(t *testing.T) {
	var pauses []time.Duration
	after := func(d time.Duration) <-chan time.Time {
		pauses = append(pauses, d)
		done := make(chan time.Time, 1)
		done <- time.Time{}
		return done
	}
	tries := 0
	(&Guard{}).Keep(t.Context(), "listening", after, func(context.Context) {
		if tries++; tries < 9 {
			panic("boom")
		}
	})
	const s = time.Second
	if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s}; tries != 9 ||
		!slices.Equal(pauses, want) {
		t.Errorf("%d tries, pauses %v, want %v", tries, pauses, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries = 0
	(&Guard{}).Keep(ctx, "listening", func(time.Duration) <-chan time.Time { return nil }, func(context.Context) {
		tries++
		cancel()
		panic("boom")
	})
	if tries != 1 {
		t.Errorf("%d tries although the context has ended", tries)
	}
}
