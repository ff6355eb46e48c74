package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// inventoryTimeout bounds one answer of the cloud.
const inventoryTimeout = 30 * time.Second

// requestInventory asks for the inventory: something may have happened to a machine. The lock is held.
func (b *Book) requestInventory() {
	if b.inventory.Request() {
		select {
		case b.inventoryWake <- struct{}{}:
		default:
		}
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
		wait := b.inventory.Due().Sub(b.now())
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
	due := b.inventory.Begin(at)
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
		b.inventory.Failed()
		return true, fmt.Errorf("listing the cloud's instances: %w", err)
	}
	return true, b.contain("the list of instances", func() { b.SetInventory(at, list) })
}

// SetInventory takes in what the cloud said it runs when it was asked at the given time.
func (b *Book) SetInventory(at time.Time, list []*cloudprovider.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := b.inventory.Set(at, list)
	b.instancesGone.Recheck(b.inventory.Now())
	if !news {
		b.noteChange(change.None) // it says the same at a later time
		return
	}
	b.noteAndWake(change.None)
}
