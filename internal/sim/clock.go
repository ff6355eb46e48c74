package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// clock is virtual time: a queue of what will happen, and random numbers. Things that are due at the same time happen
// in the order in which they were asked for.
type clock struct {
	now    time.Time
	queue  queue
	count  uint64
	random *rand.Rand
}

// happening is something that is due at a time.
type happening struct {
	at    time.Time
	count uint64
	do    func()
}

type queue []happening

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if c := q[i].at.Compare(q[j].at); c != 0 {
		return c < 0
	}
	return q[i].count < q[j].count
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(happening)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = happening{}
	*q = (*q)[:last]
	return x
}

func newClock(seed uint64) *clock {
	return &clock{now: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), random: rand.New(rand.NewPCG(seed, 0x7e0))}
}

// after has something happen when the time has passed.
func (c *clock) after(d time.Duration, do func()) { c.at(c.now.Add(d), do) }

func (c *clock) at(t time.Time, do func()) {
	if t.Before(c.now) {
		t = c.now
	}
	c.count++
	heap.Push(&c.queue, happening{at: t, count: c.count, do: do})
}

// runUntil lets everything happen that is due by then, unless stop says so before.
func (c *clock) runUntil(t time.Time, stop func() bool) {
	for len(c.queue) > 0 && !c.queue[0].at.After(t) && !stop() {
		h := heap.Pop(&c.queue).(happening)
		c.now = h.at
		h.do()
	}
	if c.now.Before(t) && !stop() {
		c.now = t
	}
}

// chance is true once in a while.
func (c *clock) chance(p float64) bool { return p > 0 && c.random.Float64() < p }

// between draws a time.
func (c *clock) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(c.random.Int64N(int64(most-least)))
}

// number draws one of least to most, both included.
func (c *clock) number(least, most int) int { return least + c.random.IntN(most-least+1) }

func pick[T any](c *clock, from []T) T { return from[c.random.IntN(len(from))] }

// seconds is the time as Kubernetes keeps it.
func (c *clock) seconds() time.Time { return c.now.Truncate(time.Second) }
