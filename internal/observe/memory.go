package observe

import (
	"hash/maphash"
	"sync"
	"time"
)

// repeatAfter is how long the same news about the same object is not told again.
const repeatAfter = 5 * time.Minute

// memory knows what was told lately: within lasts. It keeps two generations and drops the older one when the younger has lasted
// as long: nothing is ever searched for what has aged, and what is kept is bounded by what two periods tell.
type memory struct {
	now   func() time.Time
	lasts time.Duration
	seed  maphash.Seed

	mu         sync.Mutex
	began      time.Time
	young, old map[news]time.Time
}

// news is a piece of news about an object. Both are kept as hashes: the texts are long and pods are many.
type news struct{ about, text uint64 }

func newMemory(now func() time.Time) *memory { return newMemoryOf(now, repeatAfter) }

func newMemoryOf(now func() time.Time, lasts time.Duration) *memory {
	return &memory{now: now, lasts: lasts, seed: maphash.MakeSeed(), began: now(), young: make(map[news]time.Time)}
}

// hash makes a text comparable once, for all the objects that it is told of.
func (m *memory) hash(text string) uint64 { return maphash.String(m.seed, text) }

// knows reports whether the text has been told of the object lately.
func (m *memory) knows(uid string, text uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent(news{m.hash(uid), text}, m.now())
}

// learn remembers the text; it reports false if it was known.
func (m *memory) learn(uid string, text uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := news{m.hash(uid), text}, m.now()
	if m.recent(key, now) {
		return false
	}
	if now.Sub(m.began) >= m.lasts {
		m.began, m.old, m.young = now, m.young, make(map[news]time.Time)
	}
	m.young[key] = now
	return true
}

func (m *memory) recent(key news, now time.Time) bool {
	at, ok := m.young[key]
	if !ok {
		at, ok = m.old[key]
	}
	return ok && now.Sub(at) < m.lasts
}

// bucket rations events: a burst, and a steady trickle after it.
type bucket struct {
	perSecond, burst float64

	mu   sync.Mutex
	left float64
	at   time.Time
}

func newBucket(perSecond, burst float64, now time.Time) *bucket {
	return &bucket{perSecond: perSecond, burst: burst, left: burst, at: now}
}

// take reports whether one more event may be written now.
func (b *bucket) take(now time.Time) bool {
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
func (b *bucket) has(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	return b.left >= 1
}

func (b *bucket) refill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.left, b.at = min(b.burst, b.left+passed.Seconds()*b.perSecond), now
	}
}
