package static

import (
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/reason"
)

// slots are the places of a static pool, which have numbers. A slot whose claim is on its way out gets its next
// claim under another name. The names depend on nothing else, so that after a crash the same claims are asked for.
type slots struct {
	s     *cluster.Snapshot
	p     *cluster.Pool
	taken map[int]bool
	// dueSlots are slots whose last node ended too soon and that may have another now, restingSlots those that have to
	// wait.
	dueSlots, restingSlots []cluster.LostSlot
}

// slot is one of them, with the name of its next claim.
type slot struct {
	cluster.Slot
	Name string
}

// maxOldTries is how many names of a slot are looked at for claims that don't say which slot they fill.
const maxOldTries = 8

// SlotsOf finds out which slots of a static pool are taken.
func SlotsOf(s *cluster.Snapshot, p *cluster.Pool) *slots {
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
			out.restingSlots = append(out.restingSlots, l)
		default:
			out.dueSlots = append(out.dueSlots, l)
		}
	}
	return out
}

// takeSlots finds slots for n claims: first those that have lost their nodes, so that their count goes on.
func (s *slots) takeSlots(n int) []slot {
	var out []slot
	for _, l := range s.dueSlots[:min(n, len(s.dueSlots))] {
		out = append(out, s.openSlot(l.Number, l.Tries+1))
	}
	return append(out, s.NewSlots(n-len(out))...)
}

// NewSlots finds slots for n claims, of which nothing is known.
func (s *slots) NewSlots(n int) []slot {
	var out []slot
	for number := 0; len(out) < n; number++ {
		if _, lost := s.p.LostSlot(number); !lost && !s.isTaken(number) {
			out = append(out, s.openSlot(number, 1))
		}
	}
	return out
}

// isTaken reports whether a claim that stays fills the slot.
func (s *slots) isTaken(number int) bool {
	for try := range maxOldTries {
		if c := s.s.Claim(s.claimName(number, try)); c != nil && c.Deleting.IsZero() {
			return true
		}
	}
	return s.taken[number]
}

func (s *slots) openSlot(number, try int) slot {
	for i := 0; ; i++ {
		if name := s.claimName(number, i); s.s.Claim(name) == nil {
			return slot{Slot: cluster.Slot{Number: number, Try: try}, Name: name}
		}
	}
}

func (s *slots) claimName(number, i int) string {
	return command.ClaimName(s.p.Name, s.p.UID, "slot", strconv.Itoa(number), strconv.Itoa(i))
}

// countLeaving counts the claims whose deletion has been asked for and not been shown yet, and that are so young that
// their slots may have to wait: that is known when it shows.
func countLeaving(s *cluster.Snapshot, p *cluster.Pool) int {
	count := 0
	for _, c := range s.ClaimsOf(p.Name) {
		young := s.Now.Before(c.Created.Add(cluster.ShortLife))
		if c.Slot.Try > 0 && young && c.Deleting.IsZero() && s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()] {
			count++
		}
	}
	return count
}

// noteRestingSlots says that nodes are missing because the last ones ended too soon.
func noteRestingSlots(r *disrupt.Result, p *cluster.Pool, missing int, resting []cluster.LostSlot) {
	if len(resting) == 0 {
		return
	}
	var next time.Time
	for _, l := range resting {
		next = cluster.Earlier(next, l.Next)
	}
	note := p.Note("StaticCapacityBlocked", reason.Of(reason.NodesResting, min(missing, len(resting)), p.Replicas,
		DescribeShortLived(resting), next))
	note.Warning = true
	r.Notes = append(r.Notes, note)
}

// DescribeShortLived says what is known of nodes of a static pool that ended too soon, and what to do.
func DescribeShortLived(list []cluster.LostSlot) reason.Text {
	last := slices.MaxFunc(list, func(a, b cluster.LostSlot) int { return a.Tries - b.Tries })
	if last.EndedBy == "" {
		return reason.Of(reason.NodesEndSoon, cluster.ShortLife)
	}
	return reason.Of(reason.NodesEndedSoonBy, cluster.ShortLife, last.EndedBy)
}

// wakeForSlots looks again when a slot may have its next node, and when the node of one has lived for long enough.
func wakeForSlots(r *disrupt.Result, s *cluster.Snapshot, p *cluster.Pool) {
	for _, l := range p.LostSlots {
		for _, at := range []time.Time{l.Next, l.ProvenAt} {
			if at.After(s.Now) {
				r.WakeAt = cluster.Earlier(r.WakeAt, at)
			}
		}
	}
}

// Replacement is the claim that was made for a move of a static pool, or nil. Such a pool replaces one node by one.
func Replacement(s *cluster.Snapshot, pool, move string) *cluster.Claim {
	for _, c := range s.ClaimsOf(pool) {
		if c.Replaces == move && c.Deleting.IsZero() && s.IsReplacement(c) {
			return c
		}
	}
	return nil
}

// HasReplacement reports whether the node is up that was made for a move of a static pool.
func HasReplacement(s *cluster.Snapshot, pool *cluster.Pool, move string) bool {
	c := Replacement(s, pool.Name, move)
	return c != nil && c.Is(cluster.Initialized)
}
