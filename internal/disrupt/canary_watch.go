package disrupt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// count counts what has proven itself and what is under way, be it that its fence is only being put up. A replacement is watched
// from when it has taken over: before that it may be well because nobody runs there. One that was made before the drift began
// that is going on now proves nothing about it; but as long as it is new itself it is watched like the others: when nodes
// drift one after the other, it may well be of this one.
func (r *rollout) count(rs *Rolls, p *cluster.Pool) {
	s, began := rs.s, driftBegan(rs.s, p)
	under := make(map[string]bool)
	for _, c := range s.ClaimsOf(p.Name) {
		switch {
		case ReasonOf(c.Move) == command.Drifted:
			under[c.Move] = true
		case beingFenced(s, c):
			r.moving++
		}
	}
	r.moving += len(under)
	for _, c := range rs.made[p.Name] {
		if DriftOf(s, c) != "" {
			continue
		}
		n := s.NodeOf(c.Name)
		sound := c.Is(cluster.Initialized) && n != nil && n.Ready
		due := c.Condition(cluster.TookOver).Since.Add(r.watch)
		switch {
		case sound && c.Is(cluster.TookOver) && !s.Now.Before(due):
			if fresh(c, began) {
				r.proven++
			}
			continue
		case under[c.Replaces]: // counted with what it replaces
		case rs.watched(p, c, began) || !c.Is(cluster.Initialized):
			r.moving++
			r.watching = true
		}
		if sound && c.Is(cluster.TookOver) {
			r.wake = cluster.Earlier(r.wake, due)
		}
	}
}

// beingFenced reports whether a drifted node is being fenced and its claim does not show yet for what: it may well be for that.
func beingFenced(s *cluster.Snapshot, c *cluster.Claim) bool {
	n := s.NodeOf(c.Name)
	return c.Move == "" && n != nil && c.Is(cluster.Drifted) && c.Deleting.IsZero() && s.Busy[command.Fence{Node: n.Name}.Key()]
}

// fresh reports whether a replacement was made since the drift began that is going on now.
func fresh(c *cluster.Claim, began time.Time) bool {
	return !began.IsZero() && !c.Created.Before(began)
}

// watched reports whether it matters how a replacement of one of the pool's nodes does.
func (rs *Rolls) watched(p *cluster.Pool, c *cluster.Claim, began time.Time) bool {
	return fresh(c, began) || len(rs.s.Members(c.Replaces)) > 0 || rs.s.Now.Before(c.Condition(cluster.Initialized).Since.Add(rs.watchFor(p)))
}

// takenOver are the replacements that have just taken over, where pools watch them: no pod has to leave the nodes any more in
// whose place they were made. Nobody could tell later when that was.
func (rs *Rolls) takenOver() map[*cluster.Claim]bool {
	out := make(map[*cluster.Claim]bool)
	if len(rs.made) == 0 {
		return out
	}
	for _, p := range rs.s.Pools {
		if !p.Care.Canary {
			continue
		}
		began := driftBegan(rs.s, p)
		for _, c := range rs.made[p.Name] {
			if c.Is(cluster.Initialized) && !c.Is(cluster.TookOver) && rs.watched(p, c, began) && !slices.ContainsFunc(rs.s.Members(c.Replaces), rs.filled) {
				out[c] = true
			}
		}
	}
	return out
}

// filled reports whether a node that goes in a move has yet to be emptied.
func (rs *Rolls) filled(c *cluster.Claim) bool {
	n := rs.s.NodeOf(c.Name)
	return c.Deleting.IsZero() || n != nil && slices.ContainsFunc(rs.s.PodsOn(n.Name), rs.s.Moves)
}

// look has the first nodes watched in place of which nothing was made because their pods had room elsewhere: no claim tells of them
// once they have gone, so the pool does. While pods leave them it says so, then since when nobody has to, and at last that
// twice as many may go.
func (r *rollout) look(s *cluster.Snapshot, p *cluster.Pool) {
	if r.proven > 0 {
		r.watching = false
		return
	}
	told := toldOf(p)
	wave, left := waveOf(told.Reason)
	until := told.Since.Add(r.watch)
	r.leaving = slices.ContainsFunc(s.ClaimsOf(p.Name), func(c *cluster.Claim) bool {
		n := s.NodeOf(c.Name)
		return n != nil && !c.Deleting.IsZero() && ReasonOf(c.Move) == command.Drifted && slices.ContainsFunc(s.PodsOn(n.Name), s.Moves)
	})
	switch {
	case r.leaving:
	case left:
		r.watching = true // from when that is said
	case told.Status != cluster.Unknown:
	case s.Now.Before(until):
		r.watching = true
		r.wake = cluster.Earlier(r.wake, until)
	case !r.watching:
		wave = min(2*wave, mostAtOnce)
	}
	if r.wave = wave; driftBegan(s, p).IsZero() && !r.leaving && !r.watching {
		r.wave = 1 // it is over
	}
	if r.left = r.wave - r.moving; r.leaving || left || told.Status == cluster.Unknown || s.Busy[command.SetPool{Pool: p.Name}.Key()] {
		r.left = 0 // what goes next waits until it has been said that the watch is over
	}
}

// mostAtOnce bounds the waves: budgets do from then on.
const mostAtOnce = 1 << 16

// What a pool says of a wave of nodes: pods leave them, or they have gone and the pods are watched.
const (
	waveLeaves  = "Leaves"
	waveWatched = "Watched"
)

// reasonFor is the reason that a pool gives for what becomes of a wave; waveOf reads it.
func reasonFor(wave int, phase string) string {
	switch {
	case wave > 1:
		return fmt.Sprintf("Wave%d%s", wave, phase)
	case phase == "":
		return "DriftProceeds"
	}
	return "Canary" + phase
}

// waveOf is the wave of which a reason tells, and whether it says that pods leave its nodes.
func waveOf(reason string) (wave int, leaving bool) {
	if _, err := fmt.Sscanf(reason, "Wave%d", &wave); err != nil || wave < 1 || wave > mostAtOnce {
		wave = 1
	}
	return wave, strings.HasSuffix(reason, waveLeaves)
}

// toldOf is what the pool's status says now about the replacement of its drifted nodes.
func toldOf(p *cluster.Pool) cluster.Condition {
	for _, c := range p.Status.Conditions {
		if c.Type == cluster.DriftProceeds {
			return c
		}
	}
	return cluster.Condition{}
}
