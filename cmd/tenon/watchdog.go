package main

import (
	"context"
	"net/http"
	"time"

	"github.com/tenon-sh/tenon/internal/loop"
)

const (
	// longestPass is for how long the replica that leads may come to the end of no pass. The longest that was ever
	// measured, the first on a cluster of 20,000 pods, takes seconds.
	longestPass = 5 * time.Minute
	// watchEvery is how often is looked.
	watchEvery = 10 * time.Second
)

// watchdog ends a leader whose planner hangs: it fails its liveness probe, acts no more and lets the lease go, so that
// another replica takes over. One that is not elected has no passes to come to the end of.
type watchdog struct {
	pulse *loop.Pulse
	reign *term
	lost  func(error)
}

// check is what /healthz tells.
func (w *watchdog) check(*http.Request) error { return w.pulse.Check(longestPass) }

// look ends the replica's term if it hangs.
func (w *watchdog) look() {
	if err := w.check(nil); err != nil {
		w.reign.ended.Store(true)
		w.lost(err)
	}
}

// run looks again and again. It does not wait to be elected: the loop that hangs may never let go of what it waits for.
func (w *watchdog) run(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.look()
		}
	}
}
