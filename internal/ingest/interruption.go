package ingest

import (
	"fmt"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// readInterruption reads that the cloud takes a claim's instance away. A text that can't be read is none, and whoever
// wrote it is told. The lock is held.
func (b *Book) readInterruption(c *cluster.Claim, text string) {
	i, err := cloudprovider.ParseInterruption(text)
	if err == nil {
		c.Interruption = cluster.Interruption{Kind: i.Kind, Deadline: i.Deadline, Force: i.Force}
		return
	}
	note := c.Note("InvalidInterruption", fmt.Sprintf("annotation %s is ignored: %v",
		cloudprovider.InterruptionAnnotation, err))
	note.Warning = true
	b.notes["NodeClaim"+c.UID] = note
}

// noteTakenBack notes that the cloud wants an instance for somebody else: for a while it will have no more of the kind.
// Of a reservation that is taken back there is nothing more; others of the kind are not touched. The lock is held.
func (b *Book) noteTakenBack(old *claimEntry, c *cluster.Claim) change {
	known := old != nil && old.claim.UID == c.UID && old.claim.IsInterrupted()
	if !c.IsInterrupted() || known || !(cloudprovider.Interruption{Kind: c.Interruption.Kind}).ForLackOfCapacity() {
		return noChange
	}
	e, complete := launchedOffering(c)
	e.Within = b.reservationOf(c)
	if !complete || !b.refuseOfferings([]command.UnavailableOffering{e}, b.now()) {
		return noChange
	}
	return changesSupply
}

// reservationOf is the reservation that a claim's instance was taken from; empty if there is none, or nobody sells it.
// The lock is held.
func (b *Book) reservationOf(c *cluster.Claim) string {
	pc := b.poolCatalogs[c.Pool]
	if pc == nil || pc.list == nil {
		return ""
	}
	for id, label := range pc.list.reservations {
		if value, _ := c.Labels.Get(label); value == id {
			return id
		}
	}
	return ""
}
