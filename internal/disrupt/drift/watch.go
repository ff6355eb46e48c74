package drift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// countReplacements counts what has proven itself and what is under way, be it that its fence is only being put up. A
// replacement is watched from when it has taken over: before that it may be well because nobody runs there. One that
// was made before the drift began that is going on now proves nothing about it; but as long as it is new itself it is
// watched like the others: when nodes drift one after the other, it may well be of this one.
func (r *rollout) countReplacements(rollouts *Rollouts, p *cluster.Pool) {
	s, began := rollouts.s, driftStarted(rollouts.s, p)
	under := make(map[string]bool)
	for _, c := range s.ClaimsOf(p.Name) {
		switch {
		case disrupt.MoveReason(c.Move) == command.Drifted:
			under[c.Move] = true
		case disrupt.BeingFenced(s, c):
			r.underWay++
		}
	}
	r.underWay += len(under)
	for _, c := range rollouts.replacements[p.Name] {
		if Of(s, c) != "" {
			continue
		}
		n := s.NodeOf(c.Name)
		sound := c.Is(cluster.Initialized) && n != nil && n.Ready
		due := c.Condition(cluster.TookOver).Since.Add(r.watchFor)
		switch {
		case sound && c.Is(cluster.TookOver) && !s.Now.Before(due):
			if madeSinceDrift(c, began) {
				r.proven++
			}
			continue
		case under[c.Replaces]: // counted with what it replaces
		case rollouts.needsWatch(p, c, began) || !c.Is(cluster.Initialized):
			r.underWay++
			r.watching = true
		}
		if sound && c.Is(cluster.TookOver) {
			r.wakeAt = cluster.Earlier(r.wakeAt, due)
		}
	}
}

// madeSinceDrift reports whether a replacement was made since the drift began that is going on now.
func madeSinceDrift(c *cluster.Claim, began time.Time) bool {
	return !began.IsZero() && !c.Created.Before(began)
}

// needsWatch reports whether it matters how a replacement of one of the pool's nodes does.
func (rs *Rollouts) needsWatch(p *cluster.Pool, c *cluster.Claim, began time.Time) bool {
	return madeSinceDrift(c, began) || len(rs.s.MoveClaims(c.Replaces)) > 0 ||
		rs.s.Now.Before(c.Condition(cluster.Initialized).Since.Add(rs.canaryWatch(p)))
}

// takenOver are the replacements that have just taken over, where pools watch them: no pod has to leave the nodes any
// more in whose place they were made. Nobody could tell later when that was.
func (rs *Rollouts) takenOver() map[*cluster.Claim]bool {
	out := make(map[*cluster.Claim]bool)
	if len(rs.replacements) == 0 {
		return out
	}
	for _, p := range rs.s.Pools {
		if !p.Overrides.Canary {
			continue
		}
		began := driftStarted(rs.s, p)
		for _, c := range rs.replacements[p.Name] {
			if c.Is(cluster.Initialized) && !c.Is(cluster.TookOver) && rs.needsWatch(p, c, began) &&
				!slices.ContainsFunc(rs.s.MoveClaims(c.Replaces), rs.stillHasPods) {
				out[c] = true
			}
		}
	}
	return out
}

// stillHasPods reports whether a node that goes in a move has yet to be emptied.
func (rs *Rollouts) stillHasPods(c *cluster.Claim) bool {
	n := rs.s.NodeOf(c.Name)
	return c.Deleting.IsZero() || n != nil && slices.ContainsFunc(rs.s.PodsOn(n.Name), rs.s.NeedsNewPlace)
}

// watchWithoutReplacement has the first nodes watched in place of which nothing was made because their pods had room
// elsewhere: no claim tells of them once they have gone, so the pool does. While pods leave them it says so, then since
// when nobody has to, and at last that twice as many may go.
func (r *rollout) watchWithoutReplacement(s *cluster.Snapshot, p *cluster.Pool) {
	if r.proven > 0 {
		r.watching = false
		return
	}
	described := currentDriftCondition(p)
	wave, left := parseWaveReason(described.Reason)
	until := described.Since.Add(r.watchFor)
	r.podsLeaving = slices.ContainsFunc(s.ClaimsOf(p.Name), func(c *cluster.Claim) bool {
		n := s.NodeOf(c.Name)
		return n != nil && !c.Deleting.IsZero() && disrupt.MoveReason(c.Move) == command.Drifted &&
			slices.ContainsFunc(s.PodsOn(n.Name), s.NeedsNewPlace)
	})
	switch {
	case r.podsLeaving:
	case left:
		r.watching = true // from when that is said
	case described.Status != cluster.Unknown:
	case s.Now.Before(until):
		r.watching = true
		r.wakeAt = cluster.Earlier(r.wakeAt, until)
	case !r.watching:
		wave = min(2*wave, maxWave)
	}
	if r.wave = wave; driftStarted(s, p).IsZero() && !r.podsLeaving && !r.watching {
		r.wave = 1 // it is over
	}
	if r.mayBegin = r.wave - r.underWay; r.podsLeaving || left || described.Status == cluster.Unknown ||
		s.InFlight[command.SetPool{Pool: p.Name}.Key()] {
		r.mayBegin = 0 // what goes next waits until it has been said that the watch is over
	}
}

// maxWave bounds the waves: budgets do from then on.
const maxWave = 1 << 16

// What a pool says of a wave of nodes: pods leave them, or they have gone and the pods are watched.
const (
	waveLeaving = "Leaves"
	waveWatched = "Watched"
)

// waveReason is the reason that a pool gives for what becomes of a wave; parseWaveReason reads it.
func waveReason(wave int, phase string) string {
	switch {
	case wave > 1:
		return fmt.Sprintf("Wave%d%s", wave, phase)
	case phase == "":
		return "DriftProceeds"
	}
	return "Canary" + phase
}

// parseWaveReason is the wave of which a reason tells, and whether it says that pods leave its nodes.
func parseWaveReason(reason string) (wave int, leaving bool) {
	if _, err := fmt.Sscanf(reason, "Wave%d", &wave); err != nil || wave < 1 || wave > maxWave {
		wave = 1
	}
	return wave, strings.HasSuffix(reason, waveLeaving)
}

// currentDriftCondition is what the pool's status says now about the replacement of its drifted nodes.
func currentDriftCondition(p *cluster.Pool) cluster.Condition {
	for _, c := range p.Status.Conditions {
		if c.Type == cluster.DriftProceeds {
			return c
		}
	}
	return cluster.Condition{}
}
