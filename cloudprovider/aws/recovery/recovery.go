// Package recovery keeps a panic in the background work of the provider from ending the process: it would meet the same
// state after its restart and end again.
//
// It is an edge and touches nothing itself.
package recovery

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// Work that has failed begins again after firstPause, and after twice as long each time, up to lastPause.
	firstPause = time.Second
	lastPause  = time.Minute
)

// Failure is a panic that was caught.
type Failure struct {
	// Doing is what failed, such as "listening to the interruption queue".
	Doing string
	// Panic is what it failed with, Stack is where.
	Panic, Stack string
}

// Guard runs work and catches its panics. The zero value and nil work; nobody is told then.
type Guard struct {
	// Tell is told of every panic; may be nil.
	Tell func(Failure)
}

// Run does something once. A panic in it becomes an error.
func (g *Guard) Run(doing string, work func()) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		err = fmt.Errorf("%s failed, which is a mistake in Tenon: %.200s", doing, fmt.Sprint(r))
		if g != nil && g.Tell != nil {
			g.Tell(Failure{Doing: doing, Panic: err.Error(), Stack: string(debug.Stack())})
		}
	}()
	work()
	return nil
}

// Keep does something that lasts until the context ends. If it panics, it begins again after a while; if it ends by
// itself, it is over. after tells when a time has passed; time.After if it is nil.
func (g *Guard) Keep(ctx context.Context, doing string, after func(time.Duration) <-chan time.Time,
	work func(context.Context)) {
	if after == nil {
		after = time.After
	}
	for pause := firstPause; g.Run(doing, func() { work(ctx) }) != nil; pause = min(2*pause, lastPause) {
		select {
		case <-ctx.Done():
			return
		case <-after(pause):
		}
	}
}
