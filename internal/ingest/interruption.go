package ingest

import (
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/machines"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
)

// noteTakenBack notes that the cloud wants an instance for somebody else: for a while it will have no more of the kind.
// Of a reservation that is taken back there is nothing more; others of the kind are not touched. The lock is held.
func (b *Book) noteTakenBack(old *machines.ClaimEntry, c *cluster.Claim) change.Kind {
	known := old != nil && old.Claim.UID == c.UID && old.Claim.IsInterrupted()
	if !c.IsInterrupted() || known || !(cloudprovider.Interruption{Kind: c.Interruption.Kind}).ForLackOfCapacity() {
		return change.None
	}
	e, complete := offerings.LaunchedAs(c)
	e.Within = b.market.ReservationOf(c)
	if !complete || !b.market.Shortages.Refuse([]command.UnavailableOffering{e}, b.now()) {
		return change.None
	}
	return change.Supply
}
