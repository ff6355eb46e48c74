package ratelimit

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

const (
	// FleetBurst is how many calls go at once, before one goes in every fleetInterval: EC2 lets an account create
	// fleets fifty times at once and then five times a second, and others in the account do, too.
	FleetBurst    = 20
	fleetInterval = 250 * time.Millisecond
	// After EC2 has asked us to slow down nobody goes for firstPause, twice as long each further time, longestPause at
	// the longest.
	firstPause   = time.Second
	longestPause = 16 * time.Second
	// longestWait is how long somebody waits at the most before all who came later.
	longestWait = 5 * time.Second
	// In a rush, after streakCalls calls, one for fewer than few is held back while others for more go, until none has
	// gone for fewClaimsWait: more of its kind may come to join it. longestHoldBack is how long at the most.
	fewClaims       = 12
	streakCalls     = 6
	fewClaimsWait   = 2500 * time.Millisecond
	longestHoldBack = 4 * time.Second
)

// Fleet lets calls of CreateFleet through at a rate that EC2 takes. Whoever waits for many goes before whoever
// waits for few: claims that come meanwhile join those who still wait, so the fewest calls serve the most claims.
type Fleet struct {
	now func() time.Time

	mu     sync.Mutex
	tokens *rate.Limiter
	// returned are turns that were given back.
	returned int
	// pausedUntil is until when nobody goes, because EC2 has asked for it; pause is how long it was the last time.
	pausedUntil time.Time
	pause       time.Duration
	waiting     []*fleetWaiter
	// streak are the calls that were let through; lastLarge is when the last of them that was not for few was.
	streak    Streak
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

// NewFleet returns a limiter that has let nobody through.
func NewFleet(now func() time.Time) *Fleet {
	return &Fleet{now: now, tokens: newTokens()}
}

func newTokens() *rate.Limiter { return rate.NewLimiter(rate.Every(fleetInterval), FleetBurst) }

// Pass waits for a turn of a call for so many claims that no other can join any more.
func (l *Fleet) Pass(ctx context.Context, claims int) error {
	return l.wait(ctx, l.join(func() int { return claims }, false))
}

// Admit waits for a turn of a call that others may join meanwhile.
func (l *Fleet) Admit(ctx context.Context, size func() int) error {
	return l.wait(ctx, l.join(size, true))
}

func (l *Fleet) wait(ctx context.Context, w *fleetWaiter) error {
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

func (l *Fleet) join(size func() int, open bool) *fleetWaiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &fleetWaiter{size: size, joinable: open, since: l.now(), through: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	return w
}

// leave gives the place up. Who has been let through in the same moment gives the turn back.
func (l *Fleet) leave(w *fleetWaiter, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, have := range l.waiting {
		if have == w {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return err
		}
	}
	if !w.abandoned {
		l.returned++
	}
	return err
}

// serve lets through whoever may go now, and tells after how long somebody may be next.
func (l *Fleet) serve() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Before(l.pausedUntil) {
		return l.pausedUntil.Sub(now)
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(w *fleetWaiter) bool {
		if w.abandoned = w.size() == 0; w.abandoned {
			close(w.through)
		}
		return w.abandoned
	})
	// A turn that was given back is worth one only while the burst is not full anyway.
	l.returned = min(l.returned, int(FleetBurst-l.tokens.TokensAt(now)))
	for {
		at := l.first(now)
		if at < 0 || !l.takeToken(now) {
			break
		}
		if l.waiting[at].size() >= fewClaims {
			l.lastLarge = now
		}
		l.streak = l.streak.Next(now)
		close(l.waiting[at].through)
		l.waiting = append(l.waiting[:at], l.waiting[at+1:]...)
	}
	next := l.tokens.ReserveN(now, 1)
	defer next.CancelAt(now)
	if wait := next.DelayFrom(now); wait > 0 {
		return max(wait, time.Millisecond)
	}
	return fleetInterval // those who wait are held back
}

// takeToken takes a turn if there is one. The lock is held.
func (l *Fleet) takeToken(now time.Time) bool {
	if l.returned > 0 {
		l.returned--
		return true
	}
	return l.tokens.AllowN(now, 1)
}

// first is the place in the line of who goes first: whoever has waited very long, else those whose waiting, taken
// together, is the longest; -1 if nobody is to go now. The lock is held.
func (l *Fleet) first(now time.Time) int {
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
func (l *Fleet) isHeldBack(w *fleetWaiter, now time.Time) bool {
	return w.joinable && l.streak.Length(now) >= streakCalls && now.Sub(l.lastLarge) < fewClaimsWait &&
		now.Sub(w.since) < longestHoldBack && w.size() < fewClaims
}

// Slower notes that EC2 has asked us to slow down.
func (l *Fleet) Slower() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Before(l.pausedUntil) {
		return // those that were under way together are refused together
	}
	l.pause = min(max(2*l.pause, firstPause), longestPause)
	l.pausedUntil, l.tokens, l.returned = now.Add(l.pause), newTokens(), 0
	l.tokens.ReserveN(l.pausedUntil, FleetBurst-1)
}

// NoteTaken notes that EC2 has taken a call.
func (l *Fleet) NoteTaken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.now().Before(l.pausedUntil) {
		l.pause = 0
	}
}
