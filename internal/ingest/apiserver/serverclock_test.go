package apiserver

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// twoClocks is a machine whose clock is wrong by skew, and an API server that answers within lag.
type twoClocks struct {
	*ServerClock
	truth   time.Time
	elapsed time.Duration
	skew    time.Duration
	lag     time.Duration
	stepped []time.Duration
}

func newTwoClocks(skew time.Duration) *twoClocks {
	c := &twoClocks{truth: time.Date(2026, 3, 2, 8, 0, 0, 700e6, time.UTC), skew: skew, lag: 20 * time.Millisecond}
	c.ServerClock = &ServerClock{Wall: func() time.Time {
		return c.truth.Add(c.skew)
	}, Steady: func() time.Duration { return c.elapsed },
		Stepped: func(by time.Duration) { c.stepped = append(c.stepped, by) }}
	return c
}

func (c *twoClocks) pass(d time.Duration) { c.truth, c.elapsed = c.truth.Add(d), c.elapsed+d }

// answer is the API server's answer to a request; its clock is wrong by off.
func (c *twoClocks) answer(off time.Duration) {
	sent := c.elapsed
	c.pass(c.lag)
	date := c.truth.Add(off).Truncate(time.Second)
	c.pass(c.lag)
	c.Observe(date, sent, c.elapsed)
}

func (c *twoClocks) settle(t *testing.T, off time.Duration) {
	t.Helper()
	if err := c.Settle(func() error { c.answer(off); return nil }); err != nil {
		t.Fatal(err)
	}
}

// wrong is by how much the clock is wrong.
func (c *twoClocks) wrong() time.Duration { return c.Now().Sub(c.truth) }

// Whatever our own clock says, once the API server has answered its time is known to about a second.
func TestServerClockIsTheServers(t *testing.T) {
	for _, skew := range []time.Duration{
		0, 3 * time.Hour, -3 * time.Hour, 400 * 24 * time.Hour, 20 * time.Second, -2 * time.Second,
		200 * time.Millisecond, -600 * time.Millisecond,
	} {
		c := newTwoClocks(skew)
		if c.wrong() != skew {
			t.Errorf("before the first answer it is wrong by %s, want %s", c.wrong(), skew)
		}
		c.settle(t, 0)
		if c.wrong().Abs() > 1100*time.Millisecond {
			t.Errorf("ours is wrong by %s, and the server's is taken to be wrong by %s", skew, c.wrong())
		}
		if c.wrong() > 0 {
			t.Errorf("ours is wrong by %s, and the server's is taken to be ahead by %s: "+
				"something may end before its time", skew, c.wrong())
		}
		before := c.Now()
		c.skew += 5 * time.Hour // somebody sets our clock
		c.pass(time.Minute)
		if passed := c.Now().Sub(before); passed != time.Minute {
			t.Errorf("after a minute in which our clock was set, %s have passed", passed)
		}
		for range 100 {
			c.answer(0)
			c.pass(370 * time.Millisecond)
		}
		if c.wrong() > 0 || c.wrong() < -100*time.Millisecond || len(c.stepped) > 0 {
			t.Errorf("after 100 answers it is wrong by %s (stepped: %v)", c.wrong(), c.stepped)
		}
	}
}

// A few answers with another time change nothing, nor do those of one of several API servers.
func TestServerClockDoesNotBelieveTheOddAnswer(t *testing.T) {
	c := newTwoClocks(0)
	c.settle(t, 0)
	for i := range 500 {
		off := time.Duration(0)
		if i%10 < 8 {
			off = time.Hour
		}
		c.answer(off)
		c.pass(time.Second)
	}
	if c.wrong().Abs() > time.Second || len(c.stepped) > 0 {
		t.Errorf("it is wrong by %s (stepped: %v)", c.wrong(), c.stepped)
	}
	before := newTwoClocks(0) // the same before it is settled
	for range enoughVotes - 1 {
		before.answer(time.Hour)
	}
	before.answer(0)
	if before.wrong().Abs() > time.Second {
		t.Errorf("it is wrong by %s", before.wrong())
	}
}

// If the server's clock is put right by little that is followed. If it is set by much, and all answers say so for a
// minute, that is told once: what is remembered goes by the time before.
func TestServerClockIsSet(t *testing.T) {
	c := newTwoClocks(0)
	c.settle(t, 0)
	c.answer(20 * time.Second)
	if d := c.wrong() - 20*time.Second; d.Abs() > 1100*time.Millisecond {
		t.Errorf("20s ahead it is wrong by %s", c.wrong())
	}
	was := c.Now()
	began := c.elapsed
	for len(c.stepped) == 0 && c.elapsed < began+time.Hour {
		c.answer(-2 * time.Hour)
		c.pass(time.Second)
	}
	if took := c.elapsed - began; took < votesLast || took > votesLast+10*time.Second || len(c.stepped) != 1 {
		t.Errorf("it was told after %s: %v", took, c.stepped)
	}
	if d := c.stepped[0] + 2*time.Hour; d.Abs() > 25*time.Second {
		t.Errorf("it was told that it was set by %s, and it was by two hours", c.stepped[0])
	}
	if passed := c.Now().Sub(was); passed != c.elapsed-began {
		t.Errorf("time has jumped: %s have passed, the clock says %s", c.elapsed-began, passed)
	}
	for range 100 {
		c.answer(-2 * time.Hour)
		c.pass(2 * time.Second)
	}
	if len(c.stepped) != 1 {
		t.Errorf("it was told %d times", len(c.stepped))
	}
}

func TestSettleNeedsAnAnswer(t *testing.T) {
	c := newTwoClocks(time.Hour)
	away := errors.New("away")
	if err := c.Settle(func() error { return away }); !errors.Is(err, away) {
		t.Errorf("error %v", err)
	}
	if err := c.Settle(func() error { return nil }); err != nil || c.wrong() != time.Hour { // an answer without a time
		t.Errorf("error %v, and it is wrong by %s", err, c.wrong())
	}
	tries := 0
	err := c.Settle(func() error { // answers that never agree
		tries++
		c.answer(time.Duration(tries) * 24 * time.Hour)
		return nil
	})
	if err != nil || tries > 2*enoughVotes {
		t.Errorf("error %v after %d answers", err, tries)
	}
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestServerClockListens(t *testing.T) {
	c := newTwoClocks(time.Hour)
	var answer *http.Response
	var failure error
	door := c.Listen(answers(func(*http.Request) (*http.Response, error) { return answer, failure }))
	say := func(date string) {
		t.Helper()
		answer = &http.Response{Header: http.Header{"Date": {date}}}
		if got, err := door.RoundTrip(&http.Request{}); got != answer || err != nil {
			t.Errorf("the answer is %v, %v", got, err)
		}
	}
	failure = errors.New("away")
	if _, err := door.RoundTrip(&http.Request{}); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	failure = nil
	say("")
	say("yesterday")
	if c.wrong() != time.Hour {
		t.Errorf("it is wrong by %s without having heard anything", c.wrong())
	}
	for range enoughVotes {
		say(c.truth.Format(http.TimeFormat))
	}
	if c.wrong().Abs() > 1100*time.Millisecond {
		t.Errorf("it is wrong by %s", c.wrong())
	}
}
