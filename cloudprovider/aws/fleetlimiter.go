package aws

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

const (
	// EC2 lets an account create fleets fifty times at once and then five times a second. Others in the account do,
	// too.
	fleetBurst    = 20
	fleetInterval = 250 * time.Millisecond
	// After EC2 has asked us to slow down nobody goes for firstPause, twice as long each further time, longestPause at
	// the longest.
	firstPause   = time.Second
	longestPause = 16 * time.Second
	// longestWait is how long somebody waits at the most before all who came later.
	longestWait = 5 * time.Second
	// admitLimit is how long launches wait for their turn before they are told to come again. It leaves a launch, which
	// has a minute, time for the call itself; 180 launches of which each is of another kind get theirs within it.
	admitLimit = 40 * time.Second
	// In a rush, after streakCalls calls, one for fewer than few is held back while others for more go, until none has
	// gone for fewClaimsWait: more of its kind may come to join it. longestHoldBack is how long at the most.
	fewClaims       = 12
	streakCalls     = 6
	fewClaimsWait   = 2500 * time.Millisecond
	longestHoldBack = 4 * time.Second
)

// fleetLimiter lets calls of CreateFleet through at a rate that EC2 takes. Whoever waits for many goes before whoever
// waits for few: claims that come meanwhile join those who still wait, so the fewest calls serve the most claims.
type fleetLimiter struct {
	now func() time.Time

	mu     sync.Mutex
	tokens int
	refill time.Time
	// pausedUntil is until when nobody goes, because EC2 has asked for it; pause is how long it was the last time.
	pausedUntil time.Time
	pause       time.Duration
	waiting     []*fleetWaiter
	// streak are the calls that were let through; lastLarge is when the last of them that was not for few was.
	streak    callStreak
	lastLarge time.Time
}

// fleetWaiter is somebody who waits for the limiter.
type fleetWaiter struct {
	size func() int
	// joinable says that others may join.
	joinable bool
	since    time.Time
	through  chan struct{}
	// abandoned says that it was sent away because nobody waits for its answer any more.
	abandoned bool
}

func newFleetLimiter(now func() time.Time) *fleetLimiter {
	return &fleetLimiter{now: now, tokens: fleetBurst, refill: now()}
}

// oneClaim is the size of a call that nobody can join.
func oneClaim() int { return 1 }

// pass waits for a turn of a call that nobody can join any more.
func (l *fleetLimiter) pass(ctx context.Context, size func() int) error {
	return l.wait(ctx, l.join(size, false))
}

// admit waits for a turn of a call that others may join meanwhile.
func (l *fleetLimiter) admit(ctx context.Context, size func() int) error {
	return l.wait(ctx, l.join(size, true))
}

func (l *fleetLimiter) wait(ctx context.Context, w *fleetWaiter) error {
	for {
		next := l.serve()
		timer := time.NewTimer(next)
		select {
		case <-w.through:
			timer.Stop()
			if w.abandoned {
				return batch.ErrNobody
			}
			return nil
		case <-ctx.Done():
			timer.Stop()
			return l.leave(w, ctx.Err())
		case <-timer.C:
		}
	}
}

func (l *fleetLimiter) join(size func() int, open bool) *fleetWaiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &fleetWaiter{size: size, joinable: open, since: l.now(), through: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	return w
}

// leave gives the place up. Who has been let through in the same moment gives the turn back.
func (l *fleetLimiter) leave(w *fleetWaiter, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, have := range l.waiting {
		if have == w {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return err
		}
	}
	if !w.abandoned {
		l.tokens = min(fleetBurst, l.tokens+1)
	}
	return err
}

// serve lets through whoever may go now, and tells after how long somebody may be next.
func (l *fleetLimiter) serve() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if earned := int(now.Sub(l.refill) / fleetInterval); earned > 0 {
		l.tokens = min(fleetBurst, l.tokens+earned)
		l.refill = l.refill.Add(time.Duration(earned) * fleetInterval)
	}
	if now.Before(l.pausedUntil) {
		return l.pausedUntil.Sub(now)
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(w *fleetWaiter) bool {
		if w.abandoned = w.size() == 0; w.abandoned {
			close(w.through)
		}
		return w.abandoned
	})
	for l.tokens > 0 {
		at := l.first(now)
		if at < 0 {
			break
		}
		if l.waiting[at].size() >= fewClaims {
			l.lastLarge = now
		}
		l.streak = l.streak.next(now)
		l.tokens--
		close(l.waiting[at].through)
		l.waiting = append(l.waiting[:at], l.waiting[at+1:]...)
	}
	return max(l.refill.Add(fleetInterval).Sub(now), time.Millisecond)
}

// first is the place in the line of who goes first: whoever has waited very long, else those whose waiting, taken
// together, is the longest; -1 if nobody is to go now. The lock is held.
func (l *fleetLimiter) first(now time.Time) int {
	best, most := -1, -1.0
	for i, w := range l.waiting {
		waited := now.Sub(w.since)
		if waited > longestWait {
			return i // the line is in the order of coming
		}
		if weight := float64(w.size()) * float64(waited+fleetInterval); weight > most && !l.isHeldBack(w, now) {
			best, most = i, weight
		}
	}
	return best
}

// isHeldBack tells whether a call had better wait for others to join it. The lock is held.
func (l *fleetLimiter) isHeldBack(w *fleetWaiter, now time.Time) bool {
	return w.joinable && l.streak.length(now) >= streakCalls && now.Sub(l.lastLarge) < fewClaimsWait &&
		now.Sub(w.since) < longestHoldBack && w.size() < fewClaims
}

// slower notes that EC2 has asked us to slow down.
func (l *fleetLimiter) slower() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Before(l.pausedUntil) {
		return // those that were under way together are refused together
	}
	l.pause = min(max(2*l.pause, firstPause), longestPause)
	l.pausedUntil, l.tokens, l.refill = now.Add(l.pause), 1, now.Add(l.pause)
}

// noteTaken notes that EC2 has taken a call.
func (l *fleetLimiter) noteTaken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.now().Before(l.pausedUntil) {
		l.pause = 0
	}
}
