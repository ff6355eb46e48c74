package ingest

import (
	"fmt"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
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
	e, complete := offerings.LaunchedAs(c)
	e.Within = b.market.ReservationOf(c)
	if !complete || !b.market.Shortages.Refuse([]command.UnavailableOffering{e}, b.now()) {
		return noChange
	}
	return changesSupply
}
