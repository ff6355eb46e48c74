package operator

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/loop"
)

// readiness is what /readyz tells: the first list of every watched kind has arrived. The informers must have been made
// before, since a cache without any counts as filled.
type readiness struct {
	synced atomic.Bool
	// ended says that this replica has been told to end, so that nobody sends it anything new.
	ended func() error
	// mustConvert says that the caches can only be filled once this replica is asked for conversions, which its Service
	// leads here for when it is ready; nil if that never is so.
	mustConvert func() bool
}

func (r *readiness) check(*http.Request) error {
	if r.ended() != nil {
		return errors.New("the controller has been told to end")
	}
	if !r.synced.Load() && (r.mustConvert == nil || !r.mustConvert()) {
		return errors.New("the first list of some kind has not arrived yet")
	}
	return nil
}

// standby watches the caches on every replica, elected or not.
func (r *readiness) standby(informers cache.Cache) manager.Runnable {
	return everywhere(func(ctx context.Context) error {
		if informers.WaitForCacheSync(ctx) {
			r.synced.Store(true)
		}
		return nil
	})
}

// everywhere is a runnable that does not wait to be elected.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }
func (e everywhere) NeedLeaderElection() bool        { return false }

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
	pulse *loop.Liveness
	term  *lease.Term
	lost  func(error)
}

// check is what /healthz tells.
func (w *watchdog) check(*http.Request) error { return w.pulse.Check(longestPass) }

// look ends the replica's term if it hangs.
func (w *watchdog) look() {
	if err := w.check(nil); err != nil {
		w.term.End()
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
