package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/inflight"
)

// Begin notes that a command is being carried out.
func (b *Book) Begin(c command.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commands.Begin(c)
	if _, create := c.(command.CreateClaim); create {
		b.noteChange(change.Supply)
		return
	}
	b.noteChange(b.bindChange(c))
}

// Abandon notes that a command that was begun is not carried out after all: it is planned anew if need be.
func (b *Book) Abandon(c command.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteAndWake(b.endChange(b.commands.End(c.Key())))
}

// Record notes what became of a command.
func (b *Book) Record(o command.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what := b.applyOutcome(o)
	b.noteAndWake(what | b.endChange(b.commands.Done(o, b.look)))
}

// Quarantine notes what the planner has failed on. It is left out of the next snapshots' plans until its time is over.
func (b *Book) Quarantine(q cluster.Quarantine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quarantined.Add(q, b.now())
	b.noteAndWake(change.Demand | change.Room | change.Disruption)
}

// endChange says what it means that a command is under way no longer; there may be none. A claim that was counted on
// and has not appeared is one less to count on. The lock is held.
func (b *Book) endChange(c command.Command) change.Kind {
	if c == nil {
		return change.None
	}
	if create, ok := c.(command.CreateClaim); ok && b.claims[create.Name] == nil {
		return change.Room
	}
	return b.bindChange(c)
}

// applyOutcome takes in what an outcome says about the cloud. The lock is held.
func (b *Book) applyOutcome(o command.Outcome) change.Kind {
	what := change.None
	if b.market.Shortages.Refuse(o.Unavailable, o.At) {
		what |= change.Supply
	}
	switch c := o.Command.(type) {
	case command.Terminate:
		if o.InstanceGone {
			b.instancesGone.Note(c, o.At)
			what |= change.Supply
		}
		b.noteOrphanEnd(c, o)
		if o.Err != nil {
			b.requestInventory()
		}
	case command.LaunchInstance:
		what |= b.applyLaunch(c, o)
	case command.Evict:
		if o.Err == nil {
			b.noteEviction(c, o.At)
			what |= change.Disruption
		}
	case command.DeleteClaim:
		if e := b.claims[c.Claim]; e != nil && o.Err == nil && isFailedLaunch(c) {
			b.noteLaunchResult(e.Claim.Pool, false)
		}
	}
	return what
}

// applyLaunch takes in what became of a launch. The lock is held.
func (b *Book) applyLaunch(c command.LaunchInstance, o command.Outcome) change.Kind {
	if o.Err != nil {
		b.requestInventory() // the cloud may have launched it all the same
	}
	e := b.claims[c.Claim]
	if e == nil || e.Claim.UID != c.UID { // a namesake is another claim
		return change.None
	}
	what := change.None
	switch held, freed := b.launches.Update(e.Claim.Pool, o); {
	case freed:
		what = change.Room
	case held:
		what = change.Supply
	}
	if o.Refused && o.Err == nil {
		b.launches.Refuse(e.Claim.UID, o.At, o.Refusal)
		what |= change.Supply // its pods look for another place
	}
	return what
}

// noteOrphanEnd remembers that the cloud was asked to end an instance which no claim accounted for. One that was
// launched for a claim that has another instance does not count: it was certain to be one too many. The lock is held.
func (b *Book) noteOrphanEnd(c command.Terminate, o command.Outcome) {
	for _, e := range b.claims {
		if e.Claim.UID == c.UID && c.UID != "" {
			return
		}
	}
	b.orphanEnds.Note(c, o)
}

// settleWrites lets go of the commands that were waiting for the watch to show what it has just shown, and reports
// whether there were any. The lock is held.
func (b *Book) settleWrites(kind, name string) (settled bool) {
	return b.commands.Settle(kind, name, b.look)
}

// look finds an object as the watch has shown it. The lock is held.
func (b *Book) look(kind, name string) inflight.Seen {
	switch kind {
	case command.KindClaim:
		if e := b.claims[name]; e != nil {
			return inflight.Seen{There: true, Leaving: !e.Claim.Deleting.IsZero(),
				Version: decode.ParseVersion(e.Claim.Version)}
		}
	case command.KindNode:
		if e := b.nodes[name]; e != nil {
			return inflight.Seen{There: true, Leaving: !e.Node.Deleting.IsZero(),
				Version: decode.ParseVersion(e.Node.Version)}
		}
	case command.KindPool:
		if e := b.pools[name]; e != nil {
			return inflight.Seen{There: true, Leaving: e.Pool.Deleting, Version: e.Version}
		}
	case command.KindPod:
		if p, found := b.pods.Get(name); found {
			return inflight.Seen{There: true, Leaving: !p.Deleting.IsZero(), Node: p.Node, Nominated: p.Nominated}
		}
	}
	return inflight.Seen{}
}

// expireOld forgets what time has settled. The lock is held.
func (b *Book) expireOld(now time.Time) {
	b.instancesGone.Forget(b.machinesLeft)
	for _, c := range b.commands.Expire(now) {
		b.noteChange(b.endChange(c))
	}
	opened, forgotten := b.market.Shortages.Update(now)
	for range opened + b.launches.EndBackoffs(now) {
		b.noteChange(change.Room)
	}
	for range forgotten {
		b.noteChange(change.Supply)
	}
	b.endProtections(now)
	b.evictions.Forget(now)
	b.orphanEnds.Forget(now)
}

// machinesLeft yields what identifies the machines of which a claim or a node is left, or that the cloud still lists.
// The lock is held.
func (b *Book) machinesLeft(yield func(string) bool) {
	for _, e := range b.claims {
		if !yield(e.Claim.UID) || !yield(e.Claim.ProviderID) {
			return
		}
	}
	for _, e := range b.nodes {
		if !yield(e.Node.ProviderID) {
			return
		}
	}
	if all := b.inventory.Now(); all != nil { // what it listed before the end may still be in it
		for _, i := range all.Instances {
			if !yield(i.ProviderID) {
				return
			}
		}
	}
}
