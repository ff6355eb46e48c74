package loop

import (
	"context"
	"sync"
	"time"
)

const (
	// statusWorkers is how many commands that only write down what has been seen are carried out at the same time:
	// nobody waits for them, and they must not keep the API server from those that somebody waits for.
	statusWorkers = 16
	// fewStatusWorkers is how many of them while others are under way; one that has waited for courtesy is not held up
	// any longer.
	fewStatusWorkers  = 4
	longestStatusWait = 2 * time.Second
)

// statusQueue is where status commands wait while others are under way. They go in the order in which plans have asked
// for them: what is told first may be what the next act waits for.
type statusQueue struct {
	mu sync.Mutex
	// active are under way or wait for a worker; writing is how many status commands are being written.
	active, writing int
	waiting         []*queuedStatus
}

// queuedStatus is a status command that waits.
type queuedStatus struct {
	since time.Time
	ready chan struct{} // closed when it is its turn
}

// noteActive notes that other commands begin, or end.
func (q *statusQueue) noteActive(n int, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.active += n
	q.admit(now)
}

// join takes a place in the line.
func (q *statusQueue) join(now time.Time) *queuedStatus {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued := &queuedStatus{since: now, ready: make(chan struct{})}
	q.waiting = append(q.waiting, queued)
	q.admit(now)
	return queued
}

// await waits for a status command's turn; false if the context ends first.
func (q *statusQueue) await(ctx context.Context, queued *queuedStatus) bool {
	late := time.NewTimer(longestStatusWait)
	defer late.Stop()
	for {
		select {
		case <-queued.ready:
			return true
		case now := <-late.C:
			q.admitOverdue(now)
		case <-ctx.Done():
			return false
		}
	}
}

// leave makes room for the next.
func (q *statusQueue) leave(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing--
	q.admit(now)
}

// admitOverdue lets in who has waited for long enough.
func (q *statusQueue) admitOverdue(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.admit(now)
}

// admit lets in as many as there is room for. The lock is held.
func (q *statusQueue) admit(now time.Time) {
	for len(q.waiting) > 0 {
		room := statusWorkers
		if q.active > 0 && now.Sub(q.waiting[0].since) < longestStatusWait {
			room = fewStatusWorkers
		}
		if q.writing >= room {
			return
		}
		close(q.waiting[0].ready)
		q.waiting = q.waiting[1:]
		q.writing++
	}
}
