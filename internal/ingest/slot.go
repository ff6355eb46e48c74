package ingest

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// slotKey names a slot of a static pool.
type slotKey struct {
	pool   string
	number int
}

// lostSlot is what is remembered of a slot whose last node ended too soon. What ends one node of a static pool may end
// each: a pool that lets nodes live for seconds, an agent that deletes them. So the next one is made less and less
// often.
type lostSlot struct {
	tries int
	// newestMade is when the newest of its claims was; retryAllowed is when something changed that may be the cure.
	newestMade, retryAllowed time.Time
	lived                    time.Duration
	by                       string
}

// next is when the next node may be made.
func (l *lostSlot) next() time.Time {
	at := l.newestMade.Add(cluster.TryAfter(l.tries))
	if early := later(l.retryAllowed, l.newestMade.Add(retryAllowedEvery)); l.retryAllowed.After(l.newestMade) &&
		early.Before(at) {
		return early
	}
	return at
}

// watchSlot takes in a claim that fills a slot. One that is a later try says what was known before a restart. The lock
// is held.
func (b *Book) watchSlot(old *claimEntry, c *cluster.Claim) {
	if c.Slot.Try == 0 {
		return
	}
	at := slotKey{c.Pool, c.Slot.Number}
	l := b.lostSlots[at]
	if l == nil && c.Slot.Try > 1 {
		l = &lostSlot{}
		b.lostSlots[at] = l
	}
	if l != nil {
		l.tries = max(l.tries, c.Slot.Try-1)
		l.newestMade = later(l.newestMade, c.Created)
	}
	if !c.Deleting.IsZero() && (old == nil || old.claim.UID != c.UID || old.claim.Deleting.IsZero()) {
		b.endSlot(c, c.Deleting)
	}
}

// endSlot notes that the node of a slot ends. If it has lived for long enough, what was before does not count any more.
// If it is we who let it go, because it is not wanted or not as the pool asks for, and if it never ran, that says
// nothing. The lock is held.
func (b *Book) endSlot(c *cluster.Claim, ended time.Time) {
	at := slotKey{c.Pool, c.Slot.Number}
	l, lived := b.lostSlots[at], ended.Sub(c.Created)
	switch {
	case c.Slot.Try == 0 || !c.Deleting.IsZero() && !c.Deleting.Equal(ended):
		return // it was noted when its end began
	case lived >= cluster.ShortLife:
		if l != nil && !c.Created.Before(l.newestMade) {
			delete(b.lostSlots, at)
		}
		return
	case b.launchRefused(c) || chosenByUs(c) && !shortLived(c):
		return
	case l == nil:
		l = &lostSlot{}
		b.lostSlots[at] = l
	}
	l.tries, l.newestMade = max(l.tries, c.Slot.Try), later(l.newestMade, c.Created)
	l.lived, l.by = lived, endedBy(c, b.nodeOf(c))
	if _, gone := b.instancesGone[c.UID]; gone && l.by == "" {
		l.by = "the cloud, where the instance is no more"
	}
}

// launchRefused reports whether the cloud has not launched an instance for the claim. When it is asked again is not a
// matter of slots. The lock is held.
func (b *Book) launchRefused(c *cluster.Claim) bool {
	_, refused := b.refusedLaunches[c.UID]
	return refused || c.Condition(cluster.Launched).Status == cluster.False
}

// nodeOf is the node of a claim, if it is known. The lock is held.
func (b *Book) nodeOf(c *cluster.Claim) *cluster.Node {
	if e := b.nodes[b.nodeBy[c.ProviderID]]; e != nil {
		return e.node
	}
	return nil
}

// lostSlotsNow lists the pool's slots whose last nodes ended too soon, and forgets those that are over: a node has
// lived there for long enough, or none was asked for in a long time. The lock is held.
func (b *Book) lostSlotsNow(p *cluster.Pool, now time.Time) []cluster.LostSlot {
	if len(b.lostSlots) == 0 {
		return nil
	}
	there := make(map[int]time.Time)
	if p.Static {
		for _, e := range b.claims {
			if c := e.claim; c.Slot.Try > 0 && c.Pool == p.Name && c.Deleting.IsZero() {
				there[c.Slot.Number] = cluster.Later(there[c.Slot.Number], c.Created)
			}
		}
	}
	var out []cluster.LostSlot
	for at, l := range b.lostSlots {
		old := !now.Before(l.newestMade.Add(rememberFor))
		if old {
			delete(b.lostSlots, at)
		}
		if old || at.pool != p.Name {
			continue
		}
		lost := cluster.LostSlot{Number: at.number, Tries: l.tries, Next: l.next(), Lifetime: l.lived, EndedBy: l.by}
		if made, has := there[at.number]; has {
			lost.ProvenAt = made.Add(cluster.ShortLife)
		}
		if !p.Static || !lost.ProvenAt.IsZero() && !now.Before(lost.ProvenAt) {
			delete(b.lostSlots, at)
			continue
		}
		out = append(out, lost)
	}
	slices.SortFunc(out, func(x, y cluster.LostSlot) int { return x.Number - y.Number })
	return out
}
