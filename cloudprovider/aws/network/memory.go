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
)

// memory keeps answers for a time. Several callers that need the same answer wait for one question.
type memory[T any] struct {
	fresh time.Duration
	now   func() time.Time
	empty func(T) bool

	mu      sync.Mutex
	entries map[string]*entry[T]
}

type entry[T any] struct {
	mu     sync.Mutex
	answer T
	// at is when the answer was given; zero means never.
	at time.Time
	// retry is when EC2 may be asked again after it was too busy.
	retry time.Time
}

// get returns the remembered answer, or asks.
func (m *memory[T]) get(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	e := m.entry(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := m.now()
	known := !e.at.IsZero()
	fresh := m.fresh
	if known && m.empty(e.answer) {
		fresh = min(fresh, emptyFresh)
	}
	if known && (now.Before(e.at.Add(fresh)) || now.Before(e.retry)) {
		return e.answer, nil
	}
	answer, err := ask(ctx)
	if err == nil {
		e.answer, e.at, e.retry = answer, now, time.Time{}
		return answer, nil
	}
	if known && now.Before(e.at.Add(usable)) && busy(ctx, err) {
		e.retry = now.Add(pause)
		return e.answer, nil
	}
	var none T
	return none, err
}

// busy tells whether EC2 could not answer just now, which says nothing about what it would answer.
func busy(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (fault.IsThrottled(err) || fault.Lost(err))
}

func (m *memory[T]) entry(key string) *entry[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[string]*entry[T]{}
	}
	// Selectors that nobody uses any more would stay for ever; there are as many as users make edits, so this is rare.
	if len(m.entries) > most {
		clear(m.entries)
	}
	e := m.entries[key]
	if e == nil {
		e = &entry[T]{}
		m.entries[key] = e
	}
	return e
}

// most is how many answers are kept at a time.
const most = 1000

// forget drops the answers that drop says yes to.
func (m *memory[T]) forget(drop func(T) bool) {
	m.mu.Lock()
	entries := make([]*entry[T], 0, len(m.entries))
	for _, e := range m.entries {
		entries = append(entries, e)
	}
	m.mu.Unlock()
	for _, e := range entries {
		e.mu.Lock()
		if !e.at.IsZero() && drop(e.answer) {
			e.at = time.Time{}
		}
		e.mu.Unlock()
	}
}
