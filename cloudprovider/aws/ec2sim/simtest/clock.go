package simtest

import (
	"sync"
	"time"
)

// Clock stands still until somebody moves it.
type Clock struct {
	mu      sync.Mutex
	changed *sync.Cond
	now     time.Time
	waiting []waiter
}

type waiter struct {
	at   time.Time
	tell chan time.Time
}

// NewClock makes a clock that shows the machine's time of this moment, in whole seconds.
func NewClock() *Clock {
	c := &Clock{now: time.Now().UTC().Truncate(time.Second)}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After is time.After on this clock.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	tell := make(chan time.Time, 1)
	if d <= 0 {
		tell <- c.now
		return tell
	}
	c.waiting = append(c.waiting, waiter{c.now.Add(d), tell})
	c.changed.Broadcast()
	return tell
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	var left []waiter
	for _, w := range c.waiting {
		if w.at.After(c.now) {
			left = append(left, w)
		} else {
			w.tell <- c.now
		}
	}
	c.waiting = left
}

// AwaitWaiters returns when so many somebodies wait for the clock: then it can be moved without leaving them behind.
func (c *Clock) AwaitWaiters(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) < n {
		c.changed.Wait()
	}
}
