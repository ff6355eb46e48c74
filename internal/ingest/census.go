package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// The cloud is asked what it runs every earlyCensus for the first earlyCensuses times, then every lateCensus: what a
	// crash has left behind is found soon, and nobody is bothered for long.
	earlyCensus   = 10 * time.Second
	earlyCensuses = 20
	lateCensus    = 2 * time.Minute
	// urgentCensus is the least time between two, however much there is to be in doubt about.
	urgentCensus = 5 * time.Second
	// censusTimeout bounds one answer.
	censusTimeout = 30 * time.Second
	lastCensus    = lateCensus // the longest wait after failures
)

// census is when the cloud was asked what it runs, and when it is to be asked again.
type census struct {
	now      *cluster.Census
	asked    int // how often it has answered
	failures int // in a row
	last     time.Time
	urgent   bool
}

// due is when the cloud is to be asked again.
func (c *census) due() time.Time {
	wait := lateCensus
	switch {
	case c.last.IsZero():
		return time.Time{}
	case c.failures > 0:
		wait = min(urgentCensus<<min(c.failures-1, 20), lastCensus)
	case c.urgent:
		wait = urgentCensus
	case c.asked < earlyCensuses:
		wait = earlyCensus
	}
	return c.last.Add(wait)
}

// countSoon asks for a census: something may have happened to a machine. The lock is held.
func (b *Book) countSoon() {
	if b.census.urgent {
		return
	}
	b.census.urgent = true
	select {
	case b.count <- struct{}{}:
	default:
	}
}

// Census asks the cloud again and again what it runs, until the context ends. trouble is told once when it ceases to
// answer, and with nil when it answers again.
func (b *Book) Census(ctx context.Context, cloud cloudprovider.Instances, trouble func(error)) error {
	failing := false
	for {
		asked, err := b.TakeCensus(ctx, cloud)
		if asked && ctx.Err() == nil && failing != (err != nil) {
			failing = err != nil
			trouble(err)
		}
		b.mu.Lock()
		wait := b.census.due().Sub(b.now())
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-b.count:
		case <-time.After(max(wait, 0)):
		}
	}
}

// TakeCensus asks the cloud what it runs if that is due: one round of what Census does without end. asked is false if it
// is not due.
func (b *Book) TakeCensus(ctx context.Context, cloud cloudprovider.Instances) (asked bool, err error) {
	b.mu.Lock()
	at := b.now()
	due := !at.Before(b.census.due())
	if due {
		b.census.last, b.census.urgent = at, false
	}
	b.mu.Unlock()
	if !due {
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	var list []*cloudprovider.Instance
	if broken := b.shield("the list of instances", func() { list, err = cloud.List(limited) }); broken != nil {
		err = broken
	}
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.census.failures++
		return true, fmt.Errorf("listing the cloud's instances: %w", err)
	}
	return true, b.shield("the list of instances", func() { b.SetCensus(at, list) })
}

// SetCensus takes in what the cloud said it runs when it was asked at the given time.
func (b *Book) SetCensus(at time.Time, list []*cloudprovider.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := &cluster.Census{At: at, Instances: make([]cluster.Instance, 0, len(list))}
	for _, i := range list {
		next.Instances = append(next.Instances, cluster.Instance{
			ProviderID: i.ProviderID, Claim: i.ClaimName, ClaimUID: i.ClaimUID, Created: i.CreatedAt, Terminating: i.Terminating,
			Unproven: i.Unproven,
		})
	}
	slices.SortFunc(next.Instances, func(x, y cluster.Instance) int { return strings.Compare(x.ProviderID, y.ProviderID) })
	b.doubtGone(next)
	before := b.census.now
	b.census.now, b.census.failures = next, 0
	b.census.asked++
	if before != nil && slices.Equal(before.Instances, next.Instances) {
		b.note(nothing) // it says the same at a later time
		return
	}
	b.touch(nothing)
}

// believeGone is how long the cloud may list an instance after it has said that it does not know it.
const believeGone = 30 * time.Second

// doubtGone takes the cloud by its later word: what it still lists long after it has said that it was gone is there. The
// lock is held.
func (b *Book) doubtGone(now *cluster.Census) {
	for i := range now.Instances {
		x := &now.Instances[i]
		if at, gone := b.gone[x.ProviderID]; gone && !x.Terminating && now.At.After(at.Add(believeGone)) {
			delete(b.gone, x.ProviderID)
		}
	}
}
