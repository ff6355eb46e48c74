package batch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

// double answers each number with its double, and an odd key with errors. It notes how many came together.
type double struct {
	mu    sync.Mutex
	sizes []int
}

func (d *double) do(_ context.Context, key string, numbers []int) []batch.Answer[int] {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes = append(d.sizes, len(numbers))
	out := make([]batch.Answer[int], len(numbers))
	for i, n := range numbers {
		out[i].Value = 2 * n
		if key == "bad" {
			out[i].Err = errors.New("no")
		}
	}
	return out
}

func windows(w batch.Window) func(string) batch.Window { return func(string) batch.Window { return w } }

func TestTogether(t *testing.T) {
	d := &double{}
	g := batch.New(windows(batch.Window{Idle: 200 * time.Millisecond, Max: time.Minute, Items: 100}), time.Minute, d.do)
	var group sync.WaitGroup
	for n := range 10 {
		group.Go(func() {
			if got, err := g.Ask(t.Context(), "good", n); err != nil || got != 2*n {
				t.Errorf("asked for %d, got %d (%v)", n, got, err)
			}
		})
	}
	group.Go(func() {
		if _, err := g.Ask(t.Context(), "bad", 1); err == nil {
			t.Error("an error was lost")
		}
	})
	group.Wait()
	if len(d.sizes) != 2 || d.sizes[0]+d.sizes[1] != 11 {
		t.Errorf("the calls had sizes %v, want 10 and 1", d.sizes)
	}
}

func TestFullAndMax(t *testing.T) {
	d := &double{}
	// Nothing ever gets idle here: what fills a batch, or its longest wait, must end it.
	g := batch.New(windows(batch.Window{Idle: time.Hour, Max: 50 * time.Millisecond, Items: 3}), time.Minute, d.do)
	var group sync.WaitGroup
	for n := range 7 {
		group.Go(func() {
			if _, err := g.Ask(t.Context(), "k", n); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, size := range d.sizes {
		if size > 3 {
			t.Errorf("a batch had %d requests, want at most 3", size)
		}
	}
}

func TestGivenUp(t *testing.T) {
	d := &double{}
	g := batch.New(windows(batch.Window{Idle: 100 * time.Millisecond, Max: time.Minute, Items: 10}), time.Minute, d.do)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := g.Ask(ctx, "k", 1)
		first <- err
	}()
	second := make(chan error, 1)
	go func() {
		_, err := g.Ask(t.Context(), "k", 2)
		second <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("who stayed got %v", err)
	}
	if _, err := g.Ask(ctx, "k", 3); err == nil {
		t.Error("a request without anybody was taken")
	}
	for _, size := range d.sizes {
		if size != 1 {
			t.Errorf("a batch of %d was handed on, want without the one that was given up", size)
		}
	}
}

// TestThrough holds a batch up before it is handed on: who comes meanwhile joins it.
func TestThrough(t *testing.T) {
	open, sizes := make(chan struct{}), make(chan int, 10)
	var counted func() int
	waits := make(chan struct{})
	g := batch.New(func(string) batch.Window {
		return batch.Window{Idle: time.Millisecond, Max: time.Second, Items: 100}
	}, time.Minute,
		func(_ context.Context, _ string, all []int) []batch.Answer[int] {
			sizes <- len(all)
			return make([]batch.Answer[int], len(all))
		}).Through(func(_ context.Context, key string, size func() int) error {
		if key == "shut" {
			return errors.New("shut")
		}
		counted = size
		close(waits)
		<-open
		return nil
	})
	var group sync.WaitGroup
	ask := func(ctx context.Context) { group.Go(func() { _, _ = g.Ask(ctx, "k", 1) }) }
	ask(t.Context())
	<-waits
	impatient, cancel := context.WithCancel(t.Context())
	ask(impatient)
	ask(t.Context())
	for counted() != 3 {
		<-time.After(time.Millisecond)
	}
	cancel()
	for counted() != 2 {
		<-time.After(time.Millisecond)
	}
	close(open)
	group.Wait()
	if n := <-sizes; n != 2 || len(sizes) != 0 {
		t.Errorf("%d were handed on together, %d batches more", n, len(sizes))
	}
	if _, err := g.Ask(t.Context(), "shut", 1); err == nil || err.Error() != "shut" {
		t.Errorf("who is not admitted gets %v", err)
	}
}

// Who works on a batch and panics has refused all of it; the next batch is worked on.
func TestPanicIsAnAnswer(t *testing.T) {
	d := &double{}
	window := windows(batch.Window{Idle: time.Millisecond, Max: time.Minute, Items: 3})
	g := batch.New(window, time.Minute, func(ctx context.Context, key string, numbers []int) []batch.Answer[int] {
		if key == "poison" {
			panic("what is that?")
		}
		return d.do(ctx, key, numbers)
	})
	var group sync.WaitGroup
	for n := range 3 {
		group.Go(func() {
			if _, err := g.Ask(t.Context(), "poison", n); err == nil || !strings.Contains(err.Error(),
				"a mistake in Tenon: what is that?") {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if got, err := g.Ask(t.Context(), "good", 4); err != nil || got != 8 {
		t.Errorf("got %d, %v", got, err)
	}
}
