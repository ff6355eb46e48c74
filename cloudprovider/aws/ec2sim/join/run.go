package join

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	workers = 8
	// between is how often nodes without machines are looked for.
	between = time.Minute
	// The pauses between tries when Kubernetes answers with errors.
	firstPause, longestPause = 100 * time.Millisecond, 10 * time.Second
)

// Run lets machines join and leave until the context ends. It begins with those that are there.
func (j *Joiner) Run(ctx context.Context) error {
	for _, i := range j.opts.World.Instances() {
		j.queue.Add(i.ID)
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for j.next(ctx) {
			}
		})
	}
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		if err := j.sweep(ctx); err != nil && ctx.Err() == nil {
			j.opts.Log("looking for nodes without machines: %v", err)
		}
		select {
		case <-ctx.Done():
			j.queue.ShutDown()
			group.Wait()
			return nil
		case <-tick.C:
		}
	}
}

// next looks at the next machine. It says false when there will be no more.
func (j *Joiner) next(ctx context.Context) bool {
	id, over := j.queue.Get()
	if over {
		return false
	}
	defer j.queue.Done(id)
	wait, err := j.Look(ctx, id)
	switch {
	case err != nil && ctx.Err() == nil:
		j.opts.Log("instance %s: %v; trying again", id, err)
		j.queue.AddRateLimited(id)
	case err == nil:
		j.queue.Forget(id)
		if wait > 0 {
			j.queue.AddAfter(id, wait)
		}
	}
	return true
}

// sweep looks at nodes whose machines the world does not know: a cloud controller manager removes them.
func (j *Joiner) sweep(ctx context.Context) error {
	list := &corev1.NodeList{}
	if err := j.opts.API.List(ctx, list); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for n := range list.Items {
		id, ours := instanceOf(list.Items[n].Spec.ProviderID)
		if !ours {
			continue
		}
		if _, known := j.opts.World.Instance(id); !known {
			j.queue.Add(id)
		}
	}
	return nil
}
