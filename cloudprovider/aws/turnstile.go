package aws

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

const (
	// EC2 lets an account create fleets fifty times at once and then five times a second. Others in the account do, too.
	fleetBurst    = 20
	fleetInterval = 250 * time.Millisecond
	// After EC2 has asked us to slow down nobody goes for slowFirst, twice as long each further time, slowMost at the longest.
	slowFirst = time.Second
	slowMost  = 16 * time.Second
	// queueLongest is how long somebody waits at the most before all who came later.
	queueLongest = 5 * time.Second
	// admitLimit is how long launches wait for their turn before they are told to come again. It leaves a launch, which has a minute,
	// time for the call itself; 180 launches of which each is of another kind get theirs within it.
	admitLimit = 40 * time.Second
	// In a rush, after rushCalls calls, one for fewer than few is held back while others for more go, until none has gone for
	// fewWait: more of its kind may come to join it. holdLongest is how long at the most.
	few         = 12
	rushCalls   = 6
	fewWait     = 2500 * time.Millisecond
	holdLongest = 4 * time.Second
)

// turnstile lets calls of CreateFleet through at a rate that EC2 takes. Whoever waits for many goes before whoever waits
// for few: claims that come meanwhile join those who still wait, so the fewest calls serve the most claims.
type turnstile struct {
	now func() time.Time

	mu     sync.Mutex
	tokens int
	refill time.Time
	// shut is until when nobody goes, because EC2 has asked for it; slow is how long it was shut the last time.
	shut time.Time
	slow time.Duration
	line []*waiter
	// went are the calls that were let through; many is when the last of them that was not for few was.
	went rush
	many time.Time
}

// waiter is somebody before the turnstile.
type waiter struct {
	size func() int
	// open says that others may join.
	open    bool
	since   time.Time
	through chan struct{}
	// alone says that it was sent away because nobody waits for its answer any more.
	alone bool
}

func newTurnstile(now func() time.Time) *turnstile {
	return &turnstile{now: now, tokens: fleetBurst, refill: now()}
}

// one is the size of a call that nobody can join.
func one() int { return 1 }

// pass waits for a turn of a call that nobody can join any more.
func (t *turnstile) pass(ctx context.Context, size func() int) error {
	return t.wait(ctx, t.join(size, false))
}

// admit waits for a turn of a call that others may join meanwhile.
func (t *turnstile) admit(ctx context.Context, size func() int) error {
	return t.wait(ctx, t.join(size, true))
}

func (t *turnstile) wait(ctx context.Context, w *waiter) error {
	for {
		next := t.serve()
		timer := time.NewTimer(next)
		select {
		case <-w.through:
			timer.Stop()
			if w.alone {
				return batch.ErrNobody
			}
			return nil
		case <-ctx.Done():
			timer.Stop()
			return t.leave(w, ctx.Err())
		case <-timer.C:
		}
	}
}

func (t *turnstile) join(size func() int, open bool) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{size: size, open: open, since: t.now(), through: make(chan struct{})}
	t.line = append(t.line, w)
	return w
}

// leave gives the place up. Who has been let through in the same moment gives the turn back.
func (t *turnstile) leave(w *waiter, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, have := range t.line {
		if have == w {
			t.line = append(t.line[:i], t.line[i+1:]...)
			return err
		}
	}
	if !w.alone {
		t.tokens = min(fleetBurst, t.tokens+1)
	}
	return err
}

// serve lets through whoever may go now, and tells after how long somebody may be next.
func (t *turnstile) serve() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if earned := int(now.Sub(t.refill) / fleetInterval); earned > 0 {
		t.tokens = min(fleetBurst, t.tokens+earned)
		t.refill = t.refill.Add(time.Duration(earned) * fleetInterval)
	}
	if now.Before(t.shut) {
		return t.shut.Sub(now)
	}
	t.line = slices.DeleteFunc(t.line, func(w *waiter) bool {
		if w.alone = w.size() == 0; w.alone {
			close(w.through)
		}
		return w.alone
	})
	for t.tokens > 0 {
		at := t.first(now)
		if at < 0 {
			break
		}
		if t.line[at].size() >= few {
			t.many = now
		}
		t.went = t.went.next(now)
		t.tokens--
		close(t.line[at].through)
		t.line = append(t.line[:at], t.line[at+1:]...)
	}
	return max(t.refill.Add(fleetInterval).Sub(now), time.Millisecond)
}

// first is the place in the line of who goes first: whoever has waited very long, else those whose waiting, taken
// together, is the longest; -1 if nobody is to go now. The lock is held.
func (t *turnstile) first(now time.Time) int {
	best, most := -1, -1.0
	for i, w := range t.line {
		waited := now.Sub(w.since)
		if waited > queueLongest {
			return i // the line is in the order of coming
		}
		if weight := float64(w.size()) * float64(waited+fleetInterval); weight > most && !t.isHeldBack(w, now) {
			best, most = i, weight
		}
	}
	return best
}

// isHeldBack tells whether a call had better wait for others to join it. The lock is held.
func (t *turnstile) isHeldBack(w *waiter, now time.Time) bool {
	return w.open && t.went.length(now) >= rushCalls && now.Sub(t.many) < fewWait && now.Sub(w.since) < holdLongest && w.size() < few
}

// slower notes that EC2 has asked us to slow down.
func (t *turnstile) slower() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Before(t.shut) {
		return // those that were under way together are refused together
	}
	t.slow = min(max(2*t.slow, slowFirst), slowMost)
	t.shut, t.tokens, t.refill = now.Add(t.slow), 1, now.Add(t.slow)
}

// fine notes that EC2 has taken a call.
func (t *turnstile) fine() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.now().Before(t.shut) {
		t.slow = 0
	}
}
