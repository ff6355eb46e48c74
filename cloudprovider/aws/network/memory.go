package network

import (
	"context"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// usable is how old an answer may be to be given again while EC2 is too busy to give a new one.
	usable = time.Hour
	// pause is how long EC2 is left alone after such a failure.
	pause = 5 * time.Second
	// emptyFresh is how long it is remembered that nothing was found: somebody may be about to mend it.
	emptyFresh = 10 * time.Second
	// most is how many answers are kept at a time. There are as many as users make edits.
	most = 1000
)

// memory keeps answers for a time. Several callers that need the same answer wait for one question, each as long as its
// context lets it.
type memory[T any] struct {
	fresh time.Duration
	now   func() time.Time
	empty func(T) bool

	mu      sync.Mutex
	entries map[string]*entry[T]
}

// entry is what is known about one question. The memory's lock guards it.
type entry[T any] struct {
	answer T
	// at is when the answer was given; zero means never.
	at time.Time
	// doubts counts how often the answer was said to be no longer so, and asked is that count when it was asked for.
	doubts, asked int
	// retry is when EC2 may be asked again after it was too busy, and trouble what it said.
	retry   time.Time
	trouble error
	// used is when somebody last wanted the answer.
	used time.Time
	// asking is the question that is under way; nil if none is.
	asking *question[T]
}

type question[T any] struct {
	done   chan struct{}
	answer T
	err    error
	// gaveUp means that the error is that of the caller who asked, not EC2's: its time was up.
	gaveUp bool
}

// get returns the remembered answer, or asks.
func (m *memory[T]) get(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	var none T
	for {
		q, first := m.join(key)
		if first {
			m.ask(ctx, key, q, ask)
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return none, ctx.Err()
		}
		if first || !q.gaveUp {
			return q.answer, q.err
		}
		// Whoever asked has given up; that is no answer for us.
	}
}

// join returns what is known as a question that has been answered, the question that is under way, or a new one, which
// the caller has to ask.
func (m *memory[T]) join(key string) (q *question[T], first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	e := m.entry(key)
	e.used = now
	if q := m.known(e, now); q != nil {
		return q, false
	}
	if e.asking != nil {
		return e.asking, false
	}
	e.asking = &question[T]{done: make(chan struct{})}
	return e.asking, true
}

// known is the answer if there is one that need not be asked for again.
func (m *memory[T]) known(e *entry[T], now time.Time) *question[T] {
	fresh := m.fresh
	if m.empty(e.answer) {
		fresh = min(fresh, emptyFresh)
	}
	have := !e.at.IsZero()
	switch {
	case have && e.doubts == e.asked && now.Before(e.at.Add(fresh)):
		return answered(e.answer, nil)
	case now.Before(e.retry) && have && now.Before(e.at.Add(usable)):
		return answered(e.answer, nil)
	case now.Before(e.retry):
		var none T
		return answered(none, e.trouble)
	}
	return nil
}

func answered[T any](answer T, err error) *question[T] {
	q := &question[T]{done: make(chan struct{}), answer: answer, err: err}
	close(q.done)
	return q
}

// ask asks EC2 and notes what it says. While EC2 is too busy, an answer that is not too old is given again.
func (m *memory[T]) ask(ctx context.Context, key string, q *question[T], ask func(context.Context) (T, error)) {
	m.mu.Lock()
	e := m.entry(key)
	doubts := e.doubts
	m.mu.Unlock()
	began := m.now()
	answer, err := ask(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(q.done)
	e.asking = nil
	switch {
	case err == nil:
		q.answer = answer
		e.answer, e.at, e.asked, e.retry, e.trouble = answer, began, doubts, time.Time{}, nil
	case !busy(ctx, err):
		q.err, q.gaveUp = err, ctx.Err() != nil
	default:
		now := m.now()
		e.retry, e.trouble = now.Add(pause), err
		if !e.at.IsZero() && now.Before(e.at.Add(usable)) {
			q.answer = e.answer
		} else {
			q.err = err
		}
	}
}

// busy tells whether EC2 could not answer just now, which says nothing about what it would answer.
func busy(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (fault.IsThrottled(err) || fault.Lost(err))
}

// entry finds or makes the entry of a key. The lock is held.
func (m *memory[T]) entry(key string) *entry[T] {
	if m.entries == nil {
		m.entries = map[string]*entry[T]{}
	}
	e := m.entries[key]
	if e == nil {
		m.makeRoom()
		e = &entry[T]{}
		m.entries[key] = e
	}
	return e
}

// makeRoom drops the answer that nobody has wanted for longest, if there are too many. The lock is held.
func (m *memory[T]) makeRoom() {
	if len(m.entries) < most {
		return
	}
	oldest := ""
	for key, e := range m.entries {
		if e.asking == nil && (oldest == "" || e.used.Before(m.entries[oldest].used)) {
			oldest = key
		}
	}
	delete(m.entries, oldest)
}

// forget has the answers that doubtful says yes to asked for again. They stay in case EC2 is too busy to give others.
func (m *memory[T]) forget(doubtful func(T) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if doubtful(e.answer) {
			e.doubts++
		}
	}
}
