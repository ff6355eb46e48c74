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
	// The cloud is asked what it runs every earlyInventory for the first earlyInventories times, then every
	// lateInventory: what a crash has left behind is found soon, and nobody is bothered for long.
	earlyInventory   = 10 * time.Second
	earlyInventories = 20
	lateInventory    = 2 * time.Minute
	// urgentInventory is the least time between two, however much there is to be in doubt about.
	urgentInventory = 5 * time.Second
	// inventoryTimeout bounds one answer.
	inventoryTimeout     = 30 * time.Second
	longestInventoryWait = lateInventory // the longest wait after failures
)

// inventoryState is when the cloud was asked what it runs, and when it is to be asked again.
type inventoryState struct {
	now      *cluster.Inventory
	answers  int // how often it has answered
	failures int // in a row
	last     time.Time
	urgent   bool
}

// due is when the cloud is to be asked again.
func (c *inventoryState) due() time.Time {
	wait := lateInventory
	switch {
	case c.last.IsZero():
		return time.Time{}
	case c.failures > 0:
		wait = min(urgentInventory<<min(c.failures-1, 20), longestInventoryWait)
	case c.urgent:
		wait = urgentInventory
	case c.answers < earlyInventories:
		wait = earlyInventory
	}
	return c.last.Add(wait)
}

// requestInventory asks for the inventory: something may have happened to a machine. The lock is held.
func (b *Book) requestInventory() {
	if b.inventory.urgent {
		return
	}
	b.inventory.urgent = true
	select {
	case b.inventoryWake <- struct{}{}:
	default:
	}
}

// KeepInventory asks the cloud again and again what it runs, until the context ends. trouble is told once when it
// ceases to answer, and with nil when it answers again.
func (b *Book) KeepInventory(ctx context.Context, cloud cloudprovider.Instances, tellError func(error)) error {
	failing := false
	for {
		asked, err := b.RefreshInventory(ctx, cloud)
		if asked && ctx.Err() == nil && failing != (err != nil) {
			failing = err != nil
			tellError(err)
		}
		b.mu.Lock()
		wait := b.inventory.due().Sub(b.now())
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-b.inventoryWake:
		case <-time.After(max(wait, 0)):
		}
	}
}

// RefreshInventory asks the cloud what it runs if that is due: one round of what Census does without end. asked is
// false if it is not due.
func (b *Book) RefreshInventory(ctx context.Context, cloud cloudprovider.Instances) (asked bool, err error) {
	b.mu.Lock()
	at := b.now()
	due := !at.Before(b.inventory.due())
	if due {
		b.inventory.last, b.inventory.urgent = at, false
	}
	b.mu.Unlock()
	if !due {
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	var list []*cloudprovider.Instance
	if broken := b.contain("the list of instances", func() { list, err = cloud.List(limited) }); broken != nil {
		err = broken
	}
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.inventory.failures++
		return true, fmt.Errorf("listing the cloud's instances: %w", err)
	}
	return true, b.contain("the list of instances", func() { b.SetInventory(at, list) })
}

// SetInventory takes in what the cloud said it runs when it was asked at the given time.
func (b *Book) SetInventory(at time.Time, list []*cloudprovider.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := &cluster.Inventory{At: at, Instances: make([]cluster.Instance, 0, len(list))}
	for _, i := range list {
		next.Instances = append(next.Instances, cluster.Instance{
			ProviderID: i.ProviderID, Claim: i.ClaimName, ClaimUID: i.ClaimUID, Created: i.CreatedAt,
			Terminating: i.Terminating,
			Unproven:    i.Unproven,
		})
	}
	slices.SortFunc(next.Instances, func(x, y cluster.Instance) int {
		return strings.Compare(x.ProviderID, y.ProviderID)
	})
	b.recheckGone(next)
	before := b.inventory.now
	b.inventory.now, b.inventory.failures = next, 0
	b.inventory.answers++
	if before != nil && slices.Equal(before.Instances, next.Instances) {
		b.noteChange(noChange) // it says the same at a later time
		return
	}
	b.noteAndWake(noChange)
}

// goneDoubtAfter is how long the cloud may list an instance after it has said that it does not know it.
const goneDoubtAfter = 30 * time.Second

// recheckGone takes the cloud by its later word: what it still lists long after it has said that it was gone is there.
// The lock is held.
func (b *Book) recheckGone(now *cluster.Inventory) {
	for i := range now.Instances {
		x := &now.Instances[i]
		if at, gone := b.instancesGone[x.ProviderID]; gone && !x.Terminating && now.At.After(at.Add(goneDoubtAfter)) {
			delete(b.instancesGone, x.ProviderID)
		}
	}
}
