// Package batch gathers requests that arrive at about the same time, so that one call to AWS answers many of them.
//
// It is public and knows nothing of AWS: values in, values out.
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Window says how long requests are gathered: until none has come for Idle, whatever its key, for Max at the longest,
// and never more than Items of them. That others still come means that more of the same kind may come, too.
type Window struct {
	Idle, Max time.Duration
	Items     int
}

// Answer is what one request gets.
type Answer[R any] struct {
	Value R
	Err   error
}

// Gatherer gathers requests with the same key and hands them on together.
type Gatherer[K comparable, T, R any] struct {
	window func(K) Window
	limit  time.Duration
	do     func(context.Context, K, []T) []Answer[R]
	admit  func(ctx context.Context, key K, size func() int) error
	more   func(size int) bool

	mu   sync.Mutex
	open map[K]*gathering[T, R]
	// last is when the last request came.
	last time.Time
}

// New returns a gatherer. do gets one or more requests and returns as many answers, in the same order. Its context is
// nobody's in particular, because whoever stops waiting must not take the others' answer away; it ends after limit.
func New[K comparable, T, R any](window func(K) Window, limit time.Duration, do func(context.Context, K,
	[]T) []Answer[R]) *Gatherer[K, T, R] {
	return &Gatherer[K, T, R]{window: window, limit: limit, do: do, open: make(map[K]*gathering[T, R])}
}

// ErrNobody is what admit returns if size was 0: nobody of the batch waits any more, so it needs no turn. Should
// somebody have joined in that very moment, it is asked again.
var ErrNobody = errors.New("no caller waits for the answer any more")

// Through has every batch ask admit before it is handed on. While it waits there it goes on gathering, so that those
// who have to wait anyway are answered by one call. size tells how many want an answer so far. If it is not admitted,
// all of it get the error.
func (g *Gatherer[K, T, R]) Through(admit func(ctx context.Context, key K, size func() int) error) *Gatherer[K, T, R] {
	g.admit = admit
	return g
}

// While has a batch of that size go on gathering as long as more says that others are about to come, for Max at the
// longest.
func (g *Gatherer[K, T, R]) While(more func(size int) bool) *Gatherer[K, T, R] {
	g.more = more
	return g
}

// gathering is a batch that is still open.
type gathering[T, R any] struct {
	requests []*request[T, R]
	full     chan struct{} // closed when there is no room for more
}

type request[T, R any] struct {
	value  T
	gone   <-chan struct{} // closed once nobody waits any more
	answer chan Answer[R]
}

// isGone tells whether nobody waits for the answer any more.
func (r *request[T, R]) isGone() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// Ask adds the request to those of its key and waits for its answer. A request that is given up before its batch is
// handed on is left out of it.
func (g *Gatherer[K, T, R]) Ask(ctx context.Context, key K, value T) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	r := &request[T, R]{value: value, gone: ctx.Done(), answer: make(chan Answer[R], 1)}
	g.add(ctx, key, r)
	select {
	case a := <-r.answer:
		return a.Value, a.Err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (g *Gatherer[K, T, R]) add(ctx context.Context, key K, r *request[T, R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	window := g.window(key)
	g.last = time.Now()
	b := g.open[key]
	if b == nil {
		b = &gathering[T, R]{full: make(chan struct{})}
		g.open[key] = b
		go g.gather(context.WithoutCancel(ctx), key, b, window)
	}
	b.requests = append(b.requests, r)
	if len(b.requests) >= window.Items {
		close(b.full)
		delete(g.open, key)
	}
}

// quiet is for how long nobody has come.
func (g *Gatherer[K, T, R]) quiet() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.last)
}

// gather waits until the batch is complete and hands it on.
func (g *Gatherer[K, T, R]) gather(ctx context.Context, key K, b *gathering[T, R], window Window) {
	longest, idle := time.NewTimer(window.Max), time.NewTimer(window.Idle)
	defer longest.Stop()
	defer idle.Stop()
	for waiting := true; waiting; {
		select {
		case <-idle.C:
			left := window.Idle - g.quiet()
			if left <= 0 && g.more != nil && g.more(g.waiting(b)) {
				left = window.Idle
			}
			if waiting = left > 0; waiting {
				idle.Reset(left)
			}
		case <-longest.C:
			waiting = false
		case <-b.full:
			waiting = false
		}
	}
	var refused error
	for closed := false; !closed; {
		if g.admit != nil {
			refused = g.admit(ctx, key, func() int { return g.waiting(b) })
		}
		closed = g.shut(key, b, errors.Is(refused, ErrNobody))
	}
	if refused == nil {
		g.run(ctx, key, b.requests)
		return
	}
	for _, r := range b.requests {
		r.answer <- Answer[R]{Err: refused}
	}
}

// shut lets nobody join the batch any more; but one that is only given up because nobody waits is kept if somebody
// does.
func (g *Gatherer[K, T, R]) shut(key K, b *gathering[T, R], idle bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if idle && b.waiting() > 0 {
		return false
	}
	if g.open[key] == b {
		delete(g.open, key)
	}
	return true
}

// waiting counts those of a batch who have not given up.
func (g *Gatherer[K, T, R]) waiting(b *gathering[T, R]) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return b.waiting()
}

func (b *gathering[T, R]) waiting() int {
	n := 0
	for _, r := range b.requests {
		if !r.isGone() {
			n++
		}
	}
	return n
}

func (g *Gatherer[K, T, R]) run(ctx context.Context, key K, requests []*request[T, R]) {
	var wanted []*request[T, R]
	var values []T
	for _, r := range requests {
		if !r.isGone() {
			wanted, values = append(wanted, r), append(values, r.value)
		}
	}
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	for i, a := range g.answers(ctx, key, values) {
		wanted[i].answer <- a
	}
}

// answers has the batch worked on. It runs in a goroutine that nobody else looks after: a panic would end the process,
// and the same requests would end it again after its restart. So it becomes the answer to all of them.
func (g *Gatherer[K, T, R]) answers(ctx context.Context, key K, values []T) (out []Answer[R]) {
	defer func() {
		if r := recover(); r != nil {
			err := fmt.Errorf("working on %d requests together failed, which is a mistake in Tenon: %v", len(values), r)
			log.FromContext(ctx).Error(err, "requests will be tried again", "stack", string(debug.Stack()))
			out = make([]Answer[R], len(values))
			for i := range out {
				out[i].Err = err
			}
		}
	}()
	return g.do(ctx, key, values)
}
