package aws

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns are given one at a time, to whoever has been waiting for longest. Since when is said by the one who comes, so that
// somebody who gave up and comes again has the old place.
type turns struct {
	mu      sync.Mutex
	busy    bool
	waiting []*ticket
}

type ticket struct {
	since  time.Time
	called chan struct{}
}

// enter waits for a turn; leave must follow if there is no error.
func (l *turns) enter(ctx context.Context, since time.Time) error {
	p := l.join(since)
	select {
	case <-p.called:
		return nil
	case <-ctx.Done():
	}
	if l.giveUp(p) {
		l.leave() // it was called in the same moment
	}
	return ctx.Err()
}

func (l *turns) join(since time.Time) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &ticket{since: since, called: make(chan struct{})}
	if !l.busy {
		l.busy = true
		close(p.called)
		return p
	}
	l.waiting = append(l.waiting, p)
	return p
}

// giveUp takes somebody out of the line, and reports whether it had been called.
func (l *turns) giveUp(p *ticket) (called bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, p)
	if i < 0 {
		return true
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return false
}

// leave ends a turn: the next is called.
func (l *turns) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.busy = false
		return
	}
	first := 0
	for i, p := range l.waiting {
		if p.since.Before(l.waiting[first].since) {
			first = i
		}
	}
	close(l.waiting[first].called)
	l.waiting = slices.Delete(l.waiting, first, first+1)
}
