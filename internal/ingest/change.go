package ingest

import (
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// revisions count changes, and wake whoever waits for one.
type revisions struct {
	rev     uint64
	revs    struct{ demand, supply, room, disruption uint64 } // the rev of the last change of each kind
	changed chan struct{}
}

// Changed delivers a value after something has changed; several changes may share one.
func (b *revisions) Changed() <-chan struct{} { return b.changed }

// noteAndWake notes a change and wakes whoever waits for one. The lock is held.
func (b *revisions) noteAndWake(c change.Kind) {
	b.noteChange(c)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// noteChange notes a change that nobody has to be woken for. The lock is held.
func (b *revisions) noteChange(c change.Kind) {
	b.rev++
	if c&change.Demand != 0 {
		b.revs.demand = b.rev
	}
	if c&change.Supply != 0 {
		b.revs.supply = b.rev
	}
	if c&change.GivesRoom != 0 {
		b.revs.room = b.rev
	}
	if c&change.Disruption != 0 {
		b.revs.disruption = b.rev
	}
}
