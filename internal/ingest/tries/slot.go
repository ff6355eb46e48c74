package tries

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Slots remembers the slots of static pools whose last nodes ended too soon.
type Slots struct{ lost map[slotKey]*lostSlot }

// NewSlots remembers none yet.
func NewSlots() Slots { return Slots{lost: make(map[slotKey]*lostSlot)} }

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
	if early := cluster.Later(l.retryAllowed, l.newestMade.Add(RetryAllowedEvery)); l.retryAllowed.After(
		l.newestMade) &&
		early.Before(at) {
		return early
	}
	return at
}

// SlotEnd is what is known about the end of a slot's node: its node object, whether its instance is gone, and whether
// there never was one because the cloud refused.
type SlotEnd struct {
	Node         *cluster.Node
	InstanceGone bool
	Refused      bool
}

// Watch takes in a claim that fills a slot, and what it was before. One that is a later try says what was known
// before a restart.
func (s *Slots) Watch(old, c *cluster.Claim, end SlotEnd) {
	if c.Slot.Try == 0 {
		return
	}
	at := slotKey{c.Pool, c.Slot.Number}
	l := s.lost[at]
	if l == nil && c.Slot.Try > 1 {
		l = &lostSlot{}
		s.lost[at] = l
	}
	if l != nil {
		l.tries = max(l.tries, c.Slot.Try-1)
		l.newestMade = cluster.Later(l.newestMade, c.Created)
	}
	if !c.Deleting.IsZero() && (old == nil || old.UID != c.UID || old.Deleting.IsZero()) {
		s.End(c, c.Deleting, end)
	}
}

// End notes that the node of a slot ends. If it has lived for long enough, what was before does not count any more.
// If it is we who let it go, because it is not wanted or not as the pool asks for, and if it never ran, that says
// nothing.
func (s *Slots) End(c *cluster.Claim, ended time.Time, end SlotEnd) {
	at := slotKey{c.Pool, c.Slot.Number}
	l, lived := s.lost[at], ended.Sub(c.Created)
	switch {
	case c.Slot.Try == 0 || !c.Deleting.IsZero() && !c.Deleting.Equal(ended):
		return // it was noted when its end began
	case lived >= cluster.ShortLife:
		if l != nil && !c.Created.Before(l.newestMade) {
			delete(s.lost, at)
		}
		return
	case end.Refused || chosenByUs(c) && !shortLived(c):
		return
	case l == nil:
		l = &lostSlot{}
		s.lost[at] = l
	}
	l.tries, l.newestMade = max(l.tries, c.Slot.Try), cluster.Later(l.newestMade, c.Created)
	l.lived, l.by = lived, endedBy(c, end.Node)
	if end.InstanceGone && l.by == "" {
		l.by = "the cloud, where the instance is no more"
	}
}

// Allow lets the next nodes be made at once: something has changed that may be the cure.
func (s *Slots) Allow(now time.Time) {
	for _, l := range s.lost {
		l.retryAllowed = now
	}
}

// DropPool forgets the slots of a pool.
func (s *Slots) DropPool(pool string) {
	maps.DeleteFunc(s.lost, func(at slotKey, _ *lostSlot) bool { return at.pool == pool })
}

// Lost lists the pool's slots whose last nodes ended too soon, and forgets those that are over: a node has
// lived there for long enough, or none was asked for in a long time.
//
// claims are all that there are.
func (s *Slots) Lost(p *cluster.Pool, claims iter.Seq[*cluster.Claim], now time.Time) []cluster.LostSlot {
	if len(s.lost) == 0 {
		return nil
	}
	there := make(map[int]time.Time)
	if p.Static {
		for c := range claims {
			if c.Slot.Try > 0 && c.Pool == p.Name && c.Deleting.IsZero() {
				there[c.Slot.Number] = cluster.Later(there[c.Slot.Number], c.Created)
			}
		}
	}
	var out []cluster.LostSlot
	for at, l := range s.lost {
		old := !now.Before(l.newestMade.Add(RememberFor))
		if old {
			delete(s.lost, at)
		}
		if old || at.pool != p.Name {
			continue
		}
		lost := cluster.LostSlot{Number: at.number, Tries: l.tries, Next: l.next(), Lifetime: l.lived, EndedBy: l.by}
		if made, has := there[at.number]; has {
			lost.ProvenAt = made.Add(cluster.ShortLife)
		}
		if !p.Static || !lost.ProvenAt.IsZero() && !now.Before(lost.ProvenAt) {
			delete(s.lost, at)
			continue
		}
		out = append(out, lost)
	}
	slices.SortFunc(out, func(x, y cluster.LostSlot) int { return x.Number - y.Number })
	return out
}
