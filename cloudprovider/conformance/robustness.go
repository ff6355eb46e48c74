package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
)

func robustnessChecks() []check {
	return []check{
		{"Cancelled", "Every call returns soon, and with an error, once its context is cancelled; nothing is launched.",
			cancelled},
		{"Concurrent", "All methods are safe for concurrent use.", concurrent},
		{"OwnAnswer", "An instance that was returned is the caller's: changing it changes nothing in the cloud.",
			ownAnswer},
	}
}

// soon is how long a call may take to notice that nobody waits for it any more.
func (w *world) soon() time.Duration { return min(w.patience, 5*time.Second) }

func cancelled(ctx context.Context, w *world) error {
	created, err := w.create(ctx)
	if err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	for _, call := range []struct {
		name string
		run  func() error
	}{
		{"Create", func() error { _, err := w.Provider.Create(done, w.claim()); return err }},
		{"Get", func() error { _, err := w.Provider.Get(done, created.ProviderID); return err }},
		{"List", func() error { _, err := w.Provider.List(done); return err }},
		{"Delete", func() error { return w.Provider.Delete(done, created.ProviderID, created.Owner()) }},
	} {
		answer := make(chan error, 1)
		go func() { answer <- call.run() }()
		select {
		case err := <-answer:
			if err == nil {
				return fmt.Errorf("%s with a cancelled context returned no error", call.name)
			}
			if cloudprovider.IsNotFound(err) {
				return fmt.Errorf("%s with a cancelled context says NotFound of an instance that it did not look for",
					call.name)
			}
		case <-time.After(w.soon()):
			return fmt.Errorf("%s with a cancelled context had not returned after %s", call.name, w.soon())
		}
	}
	if err := w.found(ctx, created); err != nil {
		return fmt.Errorf("after calls with a cancelled context: %w", err)
	}
	return w.listed(ctx, 1)
}

// concurrent lives several lives of an instance at once. Run with the race detector, it sees more.
func concurrent(ctx context.Context, w *world) error {
	const lives = 6
	var group sync.WaitGroup
	failures := make([]error, lives)
	for i := range lives {
		group.Go(func() { failures[i] = w.life(ctx) })
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return w.listed(ctx, 0)
}

func (w *world) life(ctx context.Context) error {
	if _, err := w.Provider.InstanceTypes(ctx, w.Pool); err != nil {
		return fmt.Errorf("asking for the catalog: %w", err)
	}
	created, err := w.create(ctx)
	if err != nil {
		return err
	}
	if err := w.found(ctx, created); err != nil {
		return err
	}
	if err := w.end(ctx, created); err != nil {
		return err
	}
	return w.isGone(ctx, created)
}

func ownAnswer(ctx context.Context, w *world) error {
	created, err := w.create(ctx)
	if err != nil {
		return err
	}
	kept, err := w.Provider.Get(ctx, created.ProviderID)
	if err != nil {
		return fmt.Errorf("getting instance %s: %w", created.ProviderID, err)
	}
	for key := range created.Labels {
		created.Labels[key] = "scribble"
	}
	for name := range created.Capacity {
		delete(created.Capacity, name)
	}
	if err := w.found(ctx, kept); err != nil {
		return fmt.Errorf("after the caller changed its copy: %w", err)
	}
	return nil
}
