package drift

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// defaultCanaryWatch is how long a canary must be healthy if nobody says otherwise.
const defaultCanaryWatch = 10 * time.Minute

// Rollouts are how far the replacement of drifted nodes has come, pool by pool, as the claims show it.
type Rollouts struct {
	s            *cluster.Snapshot
	set          disrupt.Settings
	replacements map[string][]*cluster.Claim
}

// NewRollouts looks for what was made in place of drifted nodes.
func NewRollouts(s *cluster.Snapshot, set disrupt.Settings) *Rollouts {
	return &Rollouts{s: s, set: set, replacements: Replacements(s)}
}

// Replacements are the claims that were made in place of drifted nodes, by the pool of those: they may be
// another's.
func Replacements(s *cluster.Snapshot) map[string][]*cluster.Claim {
	out := make(map[string][]*cluster.Claim)
	marked := make(map[string]string, len(s.Pools))
	for _, c := range s.Claims {
		if c.Replaces == "" || disrupt.MoveReason(c.Replaces) != command.Drifted || !c.Deleting.IsZero() {
			continue
		}
		if len(marked) == 0 { // most of the time there is none
			for _, p := range s.Pools {
				marked[shortPoolName(p.Name)] = p.Name
			}
		}
		pool := c.Pool // where the move says nothing else
		if parts := strings.Split(c.Replaces, "-"); len(parts) > 2 {
			pool = marked[parts[2]]
		}
		out[pool] = append(out[pool], c)
	}
	return out
}

// MoveID names the move of a drifted node. Its end says of which pool that is: what is made in its place may be of
// another, and is looked at after the node has gone.
func MoveID(c *cluster.Claim) string {
	return disrupt.MoveID(command.Drifted, []string{disrupt.ClaimIdentity(c)}) + "-" + shortPoolName(c.Pool)
}

// shortPoolName is a short form of a pool's name.
func shortPoolName(pool string) string {
	sum := sha256.Sum256([]byte(pool))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:4]))
}

// rollout is how far the replacement of one pool's drifted nodes has come.
type rollout struct {
	// mayBegin is how many more nodes may begin now, budgets aside.
	mayBegin int
	// probing says that it is to find out whether replacements come up again.
	probing bool
	// paused says why none may, if that is because replacements fail; proven counts the new nodes that have been
	// healthy for long enough, moving those that are under way or being watched.
	paused reason.Text
	// replacementsDrift says that they come up and have drifted themselves.
	replacementsDrift bool
	proven, underWay  int
	// wave is how many nodes may go at the same time, budgets aside. podsLeaving says that pods have yet to leave some
	// of the first that go, watching that what these have left behind is being watched.
	wave                         int
	podsLeaving, watching        bool
	wakeAt                       time.Time
	watchFor, replacementTimeout time.Duration
}

// rolloutOf looks at the pool's claims.
//
// If replacements fail to come up, more of them would only leave the pool with fewer nodes that work: no more begin
// until that is mended. A canary goes first and alone; when its pods have been well elsewhere for a while two follow,
// then four, and so on: never more at once than replacements have proven themselves, and one.
func (rs *Rollouts) rolloutOf(p *cluster.Pool) rollout {
	r := rollout{mayBegin: len(rs.s.ClaimsOf(p.Name)), wave: 1, watchFor: rs.canaryWatch(p),
		replacementTimeout: rs.set.ReplacementTimeout / 2}
	if r.replacementTimeout <= 0 {
		r.replacementTimeout = disrupt.DefaultReplacementTimeout / 2
	}
	if r.checkFailures(rs, p); !r.paused.IsZero() {
		r.allowProbe(rs.s, p)
		return r
	}
	if r.checkReplacementsDrift(rs, p); r.replacementsDrift {
		return r
	}
	if p.Overrides.Canary {
		r.countReplacements(rs, p)
		for 2*r.wave <= r.proven+1 {
			r.wave *= 2
		}
		r.mayBegin = r.wave - r.underWay
		r.watchWithoutReplacement(rs.s, p)
	}
	return r
}

// canaryWatch is for how long what takes the place of the pool's first drifted nodes is watched.
func (rs *Rollouts) canaryWatch(p *cluster.Pool) time.Duration {
	switch {
	case p.Overrides.CanaryWatch > 0:
		return p.Overrides.CanaryWatch
	case rs.set.DriftWatch > 0:
		return rs.set.DriftWatch
	}
	return defaultCanaryWatch
}

// allowProbe lets a single node begin now and then while the others wait: it finds out whether replacements come up
// again. A node whose move failed rests for longer each time, and meanwhile nobody else tries.
func (r *rollout) allowProbe(s *cluster.Snapshot, p *cluster.Pool) {
	r.mayBegin, r.probing = 1, true
	for _, c := range s.ClaimsOf(p.Name) {
		switch {
		case disrupt.MoveReason(c.Move) == command.Drifted || disrupt.BeingFenced(s, c):
			r.mayBegin = 0
		case c.Is(cluster.Drifted) && c.Deleting.IsZero() && s.Now.Before(c.RestUntil):
			r.mayBegin = 0
			r.wakeAt = cluster.Earlier(r.wakeAt, c.RestUntil)
		}
	}
}

// checkFailures finds out whether the replacements of drifted nodes fail. One that is late says nothing once a younger
// one has come up: then it is that machine.
func (r *rollout) checkFailures(rollouts *Rollouts, p *cluster.Pool) {
	if p.RegistrationHealth == cluster.False {
		r.paused = reason.Of(reason.LaunchesDidNotJoinLately)
		return
	}
	var young time.Time
	for _, c := range rollouts.replacements[p.Name] {
		if c.Is(cluster.Initialized) && c.Created.After(young) {
			young = c.Created
		}
	}
	for _, c := range rollouts.replacements[p.Name] {
		if c.Expected || c.Is(cluster.Initialized) || c.Created.Before(young) {
			continue
		}
		late := c.Created.Add(r.replacementTimeout)
		if rollouts.s.Now.Before(late) {
			r.wakeAt = cluster.Earlier(r.wakeAt, late)
			continue
		}
		r.paused = reason.Of(reason.ReplacementLate, c.Name, r.replacementTimeout)
		return
	}
}

// driftStarted is when the first of the pool's nodes that are drifted now was found to be: what was made before proves
// nothing about what is made now.
func driftStarted(s *cluster.Snapshot, p *cluster.Pool) time.Time {
	var began time.Time
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Is(cluster.Drifted) && c.Deleting.IsZero() {
			began = cluster.Earlier(began, c.Condition(cluster.Drifted).Since)
		}
	}
	return began
}

// staticBlocked says why no drifted node of a static pool can be replaced; empty if one can, or none is to be.
func (rs *Rollouts) staticBlocked(p *cluster.Pool) reason.Text {
	if !p.Static || p.Catalog == nil || !p.NodeClass.Ready || len(p.Problems) > 0 {
		return reason.Text{} // the pool says that elsewhere
	}
	waits := false
	for _, c := range rs.s.ClaimsOf(p.Name) {
		if disrupt.MoveReason(c.Move) == command.Drifted || disrupt.BeingFenced(rs.s, c) {
			return reason.Text{} // it goes on when this one has gone
		}
		waits = waits || c.Is(cluster.Drifted) && c.Deleting.IsZero()
	}
	if !waits {
		return reason.Text{}
	}
	_, why := schedule.EmptyBins(rs.s, p, rs.set.Schedule, 1)
	return why
}

// DriftCondition is what a pool's status says about the replacement of its drifted nodes.
func (rs *Rollouts) DriftCondition(p *cluster.Pool) command.Condition {
	r, stuck := rs.rolloutOf(p), rs.staticBlocked(p)
	says := func(status cluster.ConditionStatus, why string, text reason.Text) command.Condition {
		return command.Condition{Type: cluster.DriftProceeds, Status: status, Reason: why, Text: text}
	}
	switch {
	case r.replacementsDrift:
		return says(cluster.False, "ReplacementsDrift", reason.Of(reason.DriftOneAtATime, r.paused, lastProbe))
	case !r.paused.IsZero():
		return says(cluster.False, "ReplacementsFail", reason.Of(reason.DriftStopped, r.paused))
	case !stuck.IsZero():
		return says(cluster.False, "NoRoomForReplacements", reason.Of(reason.DriftNoRoom, stuck))
	case r.podsLeaving:
		return says(cluster.True, waveReason(r.wave, waveLeaving), reason.Of(reason.DriftPodsLeaving))
	case r.watching:
		return says(cluster.Unknown, waveReason(r.wave, waveWatched), reason.Of(reason.DriftWatched, r.watchFor))
	case r.proven > 0:
		r.wave = 1 // the claims tell
	}
	return says(cluster.True, waveReason(r.wave, ""), reason.Text{})
}
