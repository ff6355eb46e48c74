package disrupt

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// slots are the places of a static pool, which have numbers. A slot whose claim is on its way out gets its next claim under another name.
// The names depend on nothing else, so that after a crash the same claims are asked for.
type slots struct {
	s     *cluster.Snapshot
	p     *cluster.Pool
	taken map[int]bool
	// due are slots whose last node ended too soon and that may have another now, resting those that have to wait.
	due, resting []cluster.LostSlot
}

// slot is one of them, with the name of its next claim.
type slot struct {
	cluster.Slot
	name string
}

// oldTries is how many names of a slot are looked at for claims that don't say which slot they fill.
const oldTries = 8

func newSlots(s *cluster.Snapshot, p *cluster.Pool) *slots {
	out := &slots{s: s, p: p, taken: make(map[int]bool)}
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Slot.Try > 0 && c.Deleting.IsZero() {
			out.taken[c.Slot.Number] = true
		}
	}
	for _, l := range p.LostSlots {
		switch {
		case out.taken[l.Number]:
		case s.Now.Before(l.Next):
			out.resting = append(out.resting, l)
		default:
			out.due = append(out.due, l)
		}
	}
	return out
}

// take finds slots for n claims: first those that have lost their nodes, so that their count goes on.
func (x *slots) take(n int) []slot {
	var out []slot
	for _, l := range x.due[:min(n, len(x.due))] {
		out = append(out, x.open(l.Number, l.Tries+1))
	}
	return append(out, x.fresh(n-len(out))...)
}

// fresh finds slots for n claims, of which nothing is known.
func (x *slots) fresh(n int) []slot {
	var out []slot
	for number := 0; len(out) < n; number++ {
		if _, lost := x.p.Lost(number); !lost && !x.takenAt(number) {
			out = append(out, x.open(number, 1))
		}
	}
	return out
}

// takenAt reports whether a claim that stays fills the slot.
func (x *slots) takenAt(number int) bool {
	for try := range oldTries {
		if c := x.s.Claim(x.name(number, try)); c != nil && c.Deleting.IsZero() {
			return true
		}
	}
	return x.taken[number]
}

func (x *slots) open(number, try int) slot {
	for i := 0; ; i++ {
		if name := x.name(number, i); x.s.Claim(name) == nil {
			return slot{Slot: cluster.Slot{Number: number, Try: try}, name: name}
		}
	}
}

func (x *slots) name(number, i int) string {
	return command.ClaimName(x.p.Name, x.p.UID, "slot", strconv.Itoa(number), strconv.Itoa(i))
}

// leaving counts the claims whose deletion has been asked for and not been shown yet, and that are so young that their slots may have to
// wait: that is known when it shows.
func leaving(s *cluster.Snapshot, p *cluster.Pool) int {
	count := 0
	for _, c := range s.ClaimsOf(p.Name) {
		young := s.Now.Before(c.Created.Add(cluster.ShortLife))
		if c.Slot.Try > 0 && young && c.Deleting.IsZero() && s.Busy[command.DeleteClaim{Claim: c.Name}.Key()] {
			count++
		}
	}
	return count
}

// tellResting says that nodes are missing because the last ones ended too soon.
func (r *Result) tellResting(p *cluster.Pool, missing int, resting []cluster.LostSlot) {
	if len(resting) == 0 {
		return
	}
	var next time.Time
	for _, l := range resting {
		next = cluster.Earlier(next, l.Next)
	}
	note := p.Note("StaticCapacityBlocked", fmt.Sprintf("%d of %d nodes are missing: %s. The next is created at %s",
		min(missing, len(resting)), p.Replicas, EndTooSoon(resting), next.UTC().Format(time.RFC3339)))
	note.Warning = true
	r.Notes = append(r.Notes, note)
}

// EndTooSoon says what is known of nodes of a static pool that ended too soon, and what to do.
func EndTooSoon(list []cluster.LostSlot) string {
	last := slices.MaxFunc(list, func(a, b cluster.LostSlot) int { return a.Tries - b.Tries })
	if last.By == "" {
		return fmt.Sprintf("nodes of the pool end within %s, so new ones are created less and less often; find out who ends them "+
			"(the events of its NodeClaims and Nodes, the account's log), or lower spec.replicas", cluster.ShortLife)
	}
	return fmt.Sprintf("nodes of the pool end within %s, so new ones are created less and less often; the last one was ended by %s",
		cluster.ShortLife, last.By)
}

// wakeForSlots looks again when a slot may have its next node, and when the node of one has lived for long enough.
func (r *Result) wakeForSlots(s *cluster.Snapshot, p *cluster.Pool) {
	for _, l := range p.LostSlots {
		for _, at := range []time.Time{l.Next, l.Proven} {
			if at.After(s.Now) {
				r.WakeAt = cluster.Earlier(r.WakeAt, at)
			}
		}
	}
}
