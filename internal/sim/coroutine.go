package sim

import (
	"iter"
	"math"
	"time"
)

// coroutine carries out one piece of work after the other, and hands back control whenever it waits. A run has
// thousands of them to do: their stacks would grow anew in each.
type coroutine struct {
	resume func() (time.Duration, bool)
	stop   func()
	yield  func(time.Duration) bool
	work   func()
}

// done is what a coroutine yields whose work is done.
const done = time.Duration(math.MinInt64)

// coroutine finds somebody for a piece of work.
func (s *Sim) coroutine(work func()) *coroutine {
	if last := len(s.idle) - 1; last >= 0 {
		c := s.idle[last]
		s.idle = s.idle[:last]
		c.work = work
		return c
	}
	c := &coroutine{work: work}
	c.resume, c.stop = iter.Pull(func(yield func(time.Duration) bool) {
		c.yield = yield
		for more := true; more; more = yield(done) {
			c.work()
		}
	})
	return c
}
