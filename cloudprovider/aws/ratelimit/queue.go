package ratelimit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue gives turns, one at a time, to whoever has been waiting for longest. Since when is said by the one who comes,
// so that somebody who gave up and comes again has the old place.
type Queue struct {
	mu      sync.Mutex
	busy    bool
	waiting []*queueTicket
}

type queueTicket struct {
	since  time.Time
	called chan struct{}
}

// Wait waits for a turn; Next must follow if there is no error.
func (q *Queue) Wait(ctx context.Context, since time.Time) error {
	p := q.join(since)
	select {
	case <-p.called:
		return nil
	case <-ctx.Done():
	}
	if q.giveUp(p) {
		q.Next() // it was called in the same moment
	}
	return ctx.Err()
}

func (q *Queue) join(since time.Time) *queueTicket {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &queueTicket{since: since, called: make(chan struct{})}
	if !q.busy {
		q.busy = true
		close(p.called)
		return p
	}
	q.waiting = append(q.waiting, p)
	return p
}

// giveUp takes somebody out of the line, and reports whether it had been called.
func (q *Queue) giveUp(p *queueTicket) (called bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, p)
	if i < 0 {
		return true
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return false
}

// Next ends a turn: the next is called.
func (q *Queue) Next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.busy = false
		return
	}
	first := 0
	for i, p := range q.waiting {
		if p.since.Before(q.waiting[first].since) {
			first = i
		}
	}
	close(q.waiting[first].called)
	q.waiting = slices.Delete(q.waiting, first, first+1)
}
