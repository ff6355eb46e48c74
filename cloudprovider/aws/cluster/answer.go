package cluster

import (
	"context"
	"sync"
	"time"
)

// answer keeps what was answered. It asks again when that is old; if nobody answers then, the old answer holds, and the
// question waits a while before it is repeated.
type answer[T any] struct {
	now func() time.Time

	mu    sync.Mutex
	value T
	known bool
	err   error
	due   time.Time
}

func (a *answer[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.now().Before(a.due) {
		value, err := ask(ctx)
		switch {
		case err == nil:
			a.value, a.known, a.err, a.due = value, true, nil, a.now().Add(keeps)
		case ctx.Err() != nil: // it was our patience that ended
			if !a.known {
				return a.value, err
			}
		default:
			a.err, a.due = err, a.now().Add(retry)
		}
	}
	if a.known {
		return a.value, nil
	}
	return a.value, a.err
}
