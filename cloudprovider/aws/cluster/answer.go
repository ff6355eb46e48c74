package cluster

import (
	"context"
	"sync"
	"time"
)

// answer keeps what was answered. It asks again when that is old; if nobody answers then, the old answer holds, and the
// question waits a while before it is repeated. One asks at a time: the others take what is known, or wait for the answer
// as long as they like.
type answer[T any] struct {
	now  func() time.Time
	turn chan struct{} // holds one token while somebody asks

	mu    sync.Mutex
	value T
	known bool
	err   error
	due   time.Time
}

func newAnswer[T any](now func() time.Time) *answer[T] {
	return &answer[T]{now: now, turn: make(chan struct{}, 1)}
}

func (a *answer[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	value, known, fresh, err := a.have()
	if fresh {
		return value, err
	}
	if known {
		select {
		case a.turn <- struct{}{}:
		default:
			return value, nil
		}
	} else {
		select {
		case a.turn <- struct{}{}:
		case <-ctx.Done():
			return value, context.Cause(ctx)
		}
	}
	defer func() { <-a.turn }()
	if value, _, fresh, err := a.have(); fresh { // somebody else has asked meanwhile
		return value, err
	}
	value, err = ask(ctx)
	return a.take(ctx, value, err)
}

// have is what is known, and whether that will do.
func (a *answer[T]) have() (value T, known, fresh bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		err = a.err
	}
	return a.value, a.known, a.now().Before(a.due), err
}

// take keeps an answer, or that there was none, and returns what holds now.
func (a *answer[T]) take(ctx context.Context, value T, err error) (T, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.value, a.known, a.err, a.due = value, true, nil, a.now().Add(keeps)
	case ctx.Err() == nil: // else it was only our patience that ended
		a.err, a.due = err, a.now().Add(retry)
	}
	if a.known {
		return a.value, nil
	}
	return a.value, err
}
