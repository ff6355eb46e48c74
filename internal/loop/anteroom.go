package loop

import (
	"context"
	"sync"
	"time"
)

const (
	// clerks is how many commands that only write down what has been seen are carried out at the same time: nobody waits for
	// them, and they must not keep the API server from those that somebody waits for.
	clerks = 16
	// shyClerks is how many of them while others are under way; a note that has waited for courtesy is not held up any longer.
	shyClerks = 4
	courtesy  = 2 * time.Second
)

// anteroom is where notes wait while acts are under way. They go in the order in which plans have asked for them: what is told first may
// be what the next act waits for.
type anteroom struct {
	mu sync.Mutex
	// acts are under way or wait for a hand; inside is how many notes are being written.
	acts, inside int
	line         []*caller
}

// caller is a note in the line.
type caller struct {
	since time.Time
	open  chan struct{} // closed when it is its turn
}

// act notes that acts begin, or end.
func (a *anteroom) act(n int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acts += n
	a.admit(now)
}

// enter takes a place in the line.
func (a *anteroom) enter(now time.Time) *caller {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &caller{since: now, open: make(chan struct{})}
	a.line = append(a.line, c)
	a.admit(now)
	return c
}

// await waits for a note's turn; false if the context ends first.
func (a *anteroom) await(ctx context.Context, c *caller) bool {
	late := time.NewTimer(courtesy)
	defer late.Stop()
	for {
		select {
		case <-c.open:
			return true
		case now := <-late.C:
			a.remind(now)
		case <-ctx.Done():
			return false
		}
	}
}

// leave makes room for the next.
func (a *anteroom) leave(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inside--
	a.admit(now)
}

// remind lets in who has waited for long enough.
func (a *anteroom) remind(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.admit(now)
}

// admit lets in as many as there is room for. The lock is held.
func (a *anteroom) admit(now time.Time) {
	for len(a.line) > 0 {
		room := clerks
		if a.acts > 0 && now.Sub(a.line[0].since) < courtesy {
			room = shyClerks
		}
		if a.inside >= room {
			return
		}
		close(a.line[0].open)
		a.line = a.line[1:]
		a.inside++
	}
}
