package events

import (
	"hash/maphash"
	"sync"
	"time"
)

// RepeatAfter is how long the same news about the same object is not told again.
const RepeatAfter = 5 * time.Minute

// News knows what was told lately: within lasts. It keeps two generations and drops the older one when the
// younger has lasted as long: nothing is ever searched for what has aged, and what is kept is bounded by what two
// periods tell.
type News struct {
	now      func() time.Time
	lifetime time.Duration
	seed     maphash.Seed

	mu                sync.Mutex
	began             time.Time
	current, previous map[newsKey]time.Time
}

// newsKey is a piece of news about an object. Both are kept as hashes: the texts are long and pods are many.
type newsKey struct{ about, text uint64 }

// NewNews returns one that remembers for a few minutes.
func NewNews(now func() time.Time) *News { return newRecentNewsFor(now, RepeatAfter) }

func newRecentNewsFor(now func() time.Time, lasts time.Duration) *News {
	return &News{now: now, lifetime: lasts, seed: maphash.MakeSeed(), began: now(),
		current: make(map[newsKey]time.Time)}
}

// Hash makes a text comparable once, for all the objects that it is told of.
func (n *News) Hash(text string) uint64 { return maphash.String(n.seed, text) }

// knows reports whether the text has been told of the object lately.
func (n *News) knows(uid string, text uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.recent(newsKey{n.Hash(uid), text}, n.now())
}

// Learn remembers the text; it reports false if it was known.
func (n *News) Learn(uid string, text uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	key, now := newsKey{n.Hash(uid), text}, n.now()
	if n.recent(key, now) {
		return false
	}
	if now.Sub(n.began) >= n.lifetime {
		n.began, n.previous, n.current = now, n.current, make(map[newsKey]time.Time)
	}
	n.current[key] = now
	return true
}

func (n *News) recent(key newsKey, now time.Time) bool {
	at, ok := n.current[key]
	if !ok {
		at, ok = n.previous[key]
	}
	return ok && now.Sub(at) < n.lifetime
}

// eventLimiter rations events: a burst, and a steady trickle after it.
type eventLimiter struct {
	perSecond, burst float64

	mu   sync.Mutex
	left float64
	at   time.Time
}

func newEventLimiter(perSecond, burst float64, now time.Time) *eventLimiter {
	return &eventLimiter{perSecond: perSecond, burst: burst, left: burst, at: now}
}

// allow reports whether one more event may be written now.
func (b *eventLimiter) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// has reports whether one more event could be written now.
func (b *eventLimiter) has(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	return b.left >= 1
}

func (b *eventLimiter) refill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.left, b.at = min(b.burst, b.left+passed.Seconds()*b.perSecond), now
	}
}
