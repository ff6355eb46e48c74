package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// answer keeps what was answered. When that is old it is asked for again in the background, within a limit of its own,
// so that nobody's patience decides what is known; meanwhile, and if nobody answers, the old answer holds. After a
// question that was not answered nobody asks for a while.
type answer[T any] struct {
	guard *recovery.Guard
	now   func() time.Time
	limit time.Duration
	ask   func(context.Context) (T, error)

	mu    sync.Mutex
	value T
	known bool
	err   error
	due   time.Time
	// asking is closed when the question that is out has ended; nil if there is none.
	asking chan struct{}
}

func newAnswer[T any](guard *recovery.Guard, now func() time.Time, limit time.Duration, ask func(context.Context) (T,
	error)) *answer[T] {
	return &answer[T]{guard: guard, now: now, limit: limit, ask: ask}
}

// get is the answer. Where nothing is known it waits for one as long as the context lasts.
func (a *answer[T]) get(ctx context.Context) (T, error) { return a.take(ctx, true) }

// glance is get for those who can do without: where the last question was not answered it does not wait for the next.
func (a *answer[T]) glance(ctx context.Context) (T, error) { return a.take(ctx, false) }

func (a *answer[T]) take(ctx context.Context, patient bool) (value T, err error) {
	if err := context.Cause(ctx); err != nil {
		return value, err
	}
	a.mu.Lock()
	asking := a.renew(ctx)
	value, known, err := a.value, a.known, a.err
	a.mu.Unlock()
	switch {
	case known:
		return value, nil
	case asking == nil || err != nil && !patient:
		return value, err
	}
	select {
	case <-asking:
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.value, a.err
}

// renew has the question asked if it is time, and tells when the one that is out ends; nil if there is none. The lock
// is held.
func (a *answer[T]) renew(ctx context.Context) <-chan struct{} {
	if a.asking == nil && !a.now().Before(a.due) {
		a.asking = make(chan struct{})
		go a.inquire(context.WithoutCancel(ctx))
	}
	if a.asking == nil {
		return nil
	}
	return a.asking
}

// inquire asks, and keeps the answer, or that there was none.
func (a *answer[T]) inquire(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	var value T
	var err error
	if broken := a.guard.Run("asking about the cluster", func() { value, err = a.ask(ctx) }); broken != nil {
		err = broken
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.value, a.known, a.err, a.due = value, true, nil, a.now().Add(keeps)
	case a.known:
		a.due = a.now().Add(retry)
	default:
		a.err, a.due = err, a.now().Add(retry)
	}
	close(a.asking)
	a.asking = nil
}
