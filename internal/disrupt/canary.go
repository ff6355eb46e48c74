package disrupt

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// defaultWatch is how long a canary must be healthy if nobody says otherwise.
const defaultWatch = 10 * time.Minute

// Rolls are how far the replacement of drifted nodes has come, pool by pool, as the claims show it.
type Rolls struct {
	s   *cluster.Snapshot
	set Settings
	// made are the claims that were made in place of drifted nodes, by the pool of those: they may be another's.
	made map[string][]*cluster.Claim
}

// NewRolls looks for what was made in place of drifted nodes.
func NewRolls(s *cluster.Snapshot, set Settings) *Rolls {
	rs := &Rolls{s: s, set: set, made: make(map[string][]*cluster.Claim)}
	marked := make(map[string]string, len(s.Pools))
	for _, c := range s.Claims {
		if c.Replaces == "" || ReasonOf(c.Replaces) != command.Drifted || !c.Deleting.IsZero() {
			continue
		}
		if len(marked) == 0 { // most of the time there is none
			for _, p := range s.Pools {
				marked[poolMark(p.Name)] = p.Name
			}
		}
		pool := c.Pool // where the move says nothing else
		if parts := strings.Split(c.Replaces, "-"); len(parts) > 2 {
			pool = marked[parts[2]]
		}
		rs.made[pool] = append(rs.made[pool], c)
	}
	return rs
}

// driftID names the move of a drifted node. Its end says of which pool that is: what is made in its place may be of another, and
// is looked at after the node has gone.
func driftID(c *cluster.Claim) string {
	return MoveID(command.Drifted, []string{Identity(c)}) + "-" + poolMark(c.Pool)
}

// poolMark is a short form of a pool's name.
func poolMark(pool string) string {
	sum := sha256.Sum256([]byte(pool))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:4]))
}

// rollout is how far the replacement of one pool's drifted nodes has come.
type rollout struct {
	// left is how many more nodes may begin now, budgets aside.
	left int
	// probing says that it is to find out whether replacements come up again.
	probing bool
	// why says why none may, if that is because replacements fail; proven counts the new nodes that have been healthy for
	// long enough, moving those that are under way or being watched.
	why string
	// again says that they come up and have drifted themselves.
	again          bool
	proven, moving int
	// wave is how many nodes may go at the same time, budgets aside. leaving says that pods have yet to leave some of the first that
	// go, watching that what these have left behind is being watched.
	wave              int
	leaving, watching bool
	wake              time.Time
	watch, patience   time.Duration
}

// of looks at the pool's claims.
//
// If replacements fail to come up, more of them would only leave the pool with fewer nodes that work: no more begin until that
// is mended. A canary goes first and alone; when its pods have been well elsewhere for a while two follow, then four, and so on:
// never more at once than replacements have proven themselves, and one.
func (rs *Rolls) of(p *cluster.Pool) rollout {
	r := rollout{left: len(rs.s.ClaimsOf(p.Name)), wave: 1, watch: rs.watchFor(p), patience: rs.set.ReplacementTimeout / 2}
	if r.patience <= 0 {
		r.patience = defaultReplacementTimeout / 2
	}
	if r.paused(rs, p); r.why != "" {
		r.probe(rs.s, p)
		return r
	}
	if r.flaps(rs, p); r.again {
		return r
	}
	if p.Care.Canary {
		r.count(rs, p)
		for 2*r.wave <= r.proven+1 {
			r.wave *= 2
		}
		r.left = r.wave - r.moving
		r.look(rs.s, p)
	}
	return r
}

// watchFor is for how long what takes the place of the pool's first drifted nodes is watched.
func (rs *Rolls) watchFor(p *cluster.Pool) time.Duration {
	switch {
	case p.Care.Watch > 0:
		return p.Care.Watch
	case rs.set.DriftWatch > 0:
		return rs.set.DriftWatch
	}
	return defaultWatch
}

// probe lets a single node begin now and then while the others wait: it finds out whether replacements come up again. A node
// whose move failed rests for longer each time, and meanwhile nobody else tries.
func (r *rollout) probe(s *cluster.Snapshot, p *cluster.Pool) {
	r.left, r.probing = 1, true
	for _, c := range s.ClaimsOf(p.Name) {
		switch {
		case ReasonOf(c.Move) == command.Drifted || beingFenced(s, c):
			r.left = 0
		case c.Is(cluster.Drifted) && c.Deleting.IsZero() && s.Now.Before(c.RestUntil):
			r.left = 0
			r.wake = cluster.Earlier(r.wake, c.RestUntil)
		}
	}
}

// paused finds out whether the replacements of drifted nodes fail. One that is late says nothing once a younger one has come
// up: then it is that machine.
func (r *rollout) paused(rs *Rolls, p *cluster.Pool) {
	if p.Registering == cluster.False {
		r.why = "at least half of the pool's latest launches did not become nodes"
		return
	}
	var young time.Time
	for _, c := range rs.made[p.Name] {
		if c.Is(cluster.Initialized) && c.Created.After(young) {
			young = c.Created
		}
	}
	for _, c := range rs.made[p.Name] {
		if c.Expected || c.Is(cluster.Initialized) || c.Created.Before(young) {
			continue
		}
		late := c.Created.Add(r.patience)
		if rs.s.Now.Before(late) {
			r.wake = cluster.Earlier(r.wake, late)
			continue
		}
		r.why = fmt.Sprintf("NodeClaim %s, which replaces a drifted node, is not ready for pods after %s", c.Name, r.patience)
		return
	}
}

// driftBegan is when the first of the pool's nodes that are drifted now was found to be: what was made before proves nothing
// about what is made now.
func driftBegan(s *cluster.Snapshot, p *cluster.Pool) time.Time {
	var began time.Time
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Is(cluster.Drifted) && c.Deleting.IsZero() {
			began = cluster.Earlier(began, c.Condition(cluster.Drifted).Since)
		}
	}
	return began
}

// stuck says why no drifted node of a static pool can be replaced; empty if one can, or none is to be.
func (rs *Rolls) stuck(p *cluster.Pool) string {
	if !p.Static || p.Catalog == nil || !p.NodeClass.Ready || len(p.Problems) > 0 {
		return "" // the pool says that elsewhere
	}
	waits := false
	for _, c := range rs.s.ClaimsOf(p.Name) {
		if ReasonOf(c.Move) == command.Drifted || beingFenced(rs.s, c) {
			return "" // it goes on when this one has gone
		}
		waits = waits || c.Is(cluster.Drifted) && c.Deleting.IsZero()
	}
	if !waits {
		return ""
	}
	_, why := schedule.Blank(rs.s, p, rs.set.Schedule, 1)
	return why
}

// Proceeds is what a pool's status says about the replacement of its drifted nodes.
func (rs *Rolls) Proceeds(p *cluster.Pool) cluster.Condition {
	r, stuck := rs.of(p), rs.stuck(p)
	switch {
	case r.again:
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.False, Reason: "ReplacementsDrift",
			Message: r.why + fmt.Sprintf("; drifted nodes are replaced one at a time, less and less often (up to %s apart), until one does not drift. "+
				"Look for what is not the same at each question: selectors, an alias, a provider's answer", lastProbe)}
	case r.why != "":
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.False, Reason: "ReplacementsFail",
			Message: r.why + "; no more drifted nodes are replaced until that is mended"}
	case stuck != "":
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.False, Reason: "NoRoomForReplacements",
			Message: "a drifted node of a static NodePool goes when another is there in its place, and none can be made: " + stuck}
	case r.leaving:
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.True, Reason: reasonFor(r.wave, waveLeaves),
			Message: "pods leave the first drifted nodes; others follow when these are gone and all is well"}
	case r.watching:
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.Unknown, Reason: reasonFor(r.wave, waveWatched),
			Message: fmt.Sprintf("the first drifted nodes have gone; others follow when all is well for %s", r.watch)}
	case r.proven > 0:
		r.wave = 1 // the claims tell
	}
	return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.True, Reason: reasonFor(r.wave, "")}
}
