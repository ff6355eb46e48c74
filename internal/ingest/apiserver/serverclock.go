package apiserver

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ServerClock tells the API server's time. Times in objects are that clock's (when a NodeClaim was made, when it was
// deleted), and ours may be hours away from it: compared with ours, each new NodeClaim would be too old at once, or a
// node past its life. Every answer of the API server says what time it is there, to the second. Between answers the
// time goes on by a steady clock, so that it does not matter if somebody sets ours.
type ServerClock struct {
	// Wall is our own clock, which somebody may set; Steady is time that only passes.
	Wall   func() time.Time
	Steady func() time.Duration
	// Stepped is told, once, that the server's clock has been set by more than sameClock while this one ran. What is
	// remembered goes by the time before, so the process has to begin anew. Nil if nobody wants to know.
	Stepped func(by time.Duration)

	mu             sync.Mutex
	known, settled bool
	// start is what time it was at the server when Steady was zero; span is between which times it must have been by
	// all answers that agree with each other.
	start time.Time
	span  timeSpan
	// other is what answers say that contradict it, votes is how many of them in a row agree with each other, and since
	// is when the first came.
	other timeSpan
	votes int
	since time.Duration
}

const (
	// sameClock is by how much an answer may contradict the ones before and be believed at once: clocks are put right
	// by less all the time.
	sameClock = 30 * time.Second
	// enoughVotes is how many answers in a row must say the same to be believed if they say something else, and
	// votesLast how long none may say otherwise once the clock is settled: one may come from a proxy, or from one of
	// several API servers whose clock is wrong.
	enoughVotes = 5
	votesLast   = time.Minute
)

// timeSpan is a time that is not known exactly.
type timeSpan struct{ first, last time.Time }

// meet is what both allow; ok is false if that is nothing.
func (s timeSpan) meet(o timeSpan) (both timeSpan, ok bool) {
	both = s
	if o.first.After(both.first) {
		both.first = o.first
	}
	if o.last.Before(both.last) {
		both.last = o.last
	}
	return both, !both.first.After(both.last)
}

// nearest is the time in the span that is nearest to t.
func (s timeSpan) nearest(t time.Time) time.Time {
	switch {
	case t.Before(s.first):
		return s.first
	case t.After(s.last):
		return s.last
	}
	return t
}

// NewServerClock makes a clock that goes by ours until the API server has answered.
func NewServerClock() *ServerClock {
	began := time.Now()
	return &ServerClock{Wall: time.Now, Steady: func() time.Duration { return time.Since(began) }}
}

// Now is what time it is at the API server.
func (c *ServerClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return c.Wall()
	}
	return c.start.Add(c.Steady())
}

// Observe takes in that the API server said what time it is, to the second, in answer to a request that was sent and
// answered at these times of the steady clock.
func (c *ServerClock) Observe(date time.Time, sent, received time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := timeSpan{date.Add(-received), date.Add(time.Second - sent)}
	if !c.known { // as long as nobody says otherwise ours is right, as far as an answer can tell
		ours := c.Wall().Round(0).Add(-received)
		c.known, c.start, c.span = true, ours, timeSpan{ours, ours}
		if _, agrees := c.span.meet(said); agrees {
			c.span = said
		}
	}
	// Of the times that it may be the earliest counts, rather late than early: nothing must end before its time.
	// Answers that come right after a full second bring it close to the true one.
	if both, agrees := c.span.meet(said); agrees {
		c.start, c.span, c.votes = both.first, both, 0
		return
	}
	if said.nearest(c.start).Sub(c.start).Abs() <= sameClock {
		c.start, c.span, c.votes = said.first, said, 0
		return
	}
	if both, agrees := c.other.meet(said); c.votes > 0 && agrees {
		c.other, c.votes = both, c.votes+1
	} else {
		c.other, c.votes, c.since = said, 1, received
	}
	if c.votes >= enoughVotes {
		c.overrule(received)
	}
}

// overrule believes the answers that contradict the clock. The lock is held.
func (c *ServerClock) overrule(now time.Duration) {
	if !c.settled {
		c.start, c.span, c.votes = c.other.first, c.other, 0
		return
	}
	if now-c.since >= votesLast && c.Stepped != nil {
		c.Stepped(c.other.first.Sub(c.start))
		c.Stepped = nil
	}
}

// Settle finds out what time it is at the API server before anything is remembered by it: it has it answered until the
// answers agree.
func (c *ServerClock) Settle(answer func() error) error {
	for range 2 * enoughVotes {
		if err := answer(); err != nil {
			return fmt.Errorf("asking the API server what time it is: %w", err)
		}
		c.mu.Lock()
		c.settled = !c.known || c.votes == 0 // without a time in its answers there is nothing to find out
		settled := c.settled
		c.mu.Unlock()
		if settled {
			return nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = true
	return nil
}

// Listen has the clock hear what time it is from every answer that comes through a connection.
func (c *ServerClock) Listen(next http.RoundTripper) http.RoundTripper {
	return clockTransport{clock: c, next: next}
}

type clockTransport struct {
	clock *ServerClock
	next  http.RoundTripper
}

func (l clockTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := l.clock.Steady()
	answer, err := l.next.RoundTrip(req)
	if err != nil {
		return answer, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		l.clock.Observe(date, sent, l.clock.Steady())
	}
	return answer, nil
}
