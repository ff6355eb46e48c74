package disrupt

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
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
	return MoveID(command.Drifted, []string{c.Name}) + "-" + poolMark(c.Pool)
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
	why            string
	proven, moving int
	// watching says that what the first nodes have left behind is being watched.
	watching        bool
	wake            time.Time
	watch, patience time.Duration
}

// of looks at the pool's claims.
//
// If replacements fail to come up, more of them would only leave the pool with fewer nodes that work: no more begin until that
// is mended. A canary goes first and alone; when its replacement has been healthy for a while two follow, then four, and so on:
// never more at once than have proven themselves, and one.
func (rs *Rolls) of(p *cluster.Pool) rollout {
	r := rollout{left: len(rs.s.ClaimsOf(p.Name)), watch: p.Care.Watch, patience: rs.set.ReplacementTimeout / 2}
	if r.watch <= 0 {
		r.watch = rs.set.DriftWatch
	}
	if r.watch <= 0 {
		r.watch = defaultWatch
	}
	if r.patience <= 0 {
		r.patience = defaultReplacementTimeout / 2
	}
	if r.paused(rs, p); r.why != "" {
		r.probe(rs.s, p)
		return r
	}
	if p.Care.Canary {
		r.count(rs, p)
		wave := 1
		for 2*wave <= r.proven+1 {
			wave *= 2
		}
		r.left = wave - r.moving
		r.look(rs.s, p)
	}
	return r
}

// probe lets a single node begin now and then while the others wait: it finds out whether replacements come up again. A node
// whose move failed rests for longer each time, and meanwhile nobody else tries.
func (r *rollout) probe(s *cluster.Snapshot, p *cluster.Pool) {
	r.left, r.probing = 1, true
	for _, c := range s.ClaimsOf(p.Name) {
		switch {
		case ReasonOf(c.Move) == command.Drifted:
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

// count counts what has proven itself and what is under way. A replacement that was made before the drift began that is going on
// now proves nothing about it; but as long as it is new itself it is watched like the others: when nodes drift one after
// the other, it may well be of this one.
func (r *rollout) count(rs *Rolls, p *cluster.Pool) {
	s, began := rs.s, driftBegan(rs.s, p)
	under := make(map[string]bool)
	for _, c := range s.ClaimsOf(p.Name) {
		if ReasonOf(c.Move) == command.Drifted && !under[c.Move] {
			under[c.Move] = true
			r.moving++
		}
	}
	for _, c := range rs.made[p.Name] {
		if DriftOf(s, c) != "" {
			continue
		}
		n := s.NodeOf(c.Name)
		sound := c.Is(cluster.Initialized) && n != nil && n.Ready
		due := c.Condition(cluster.Initialized).Since.Add(r.watch)
		fresh := !c.Created.Before(began)
		switch {
		case sound && !s.Now.Before(due):
			if fresh {
				r.proven++
			}
		case under[c.Replaces]: // counted with what it replaces
		case fresh || s.Now.Before(due) || !c.Is(cluster.Initialized):
			r.moving++
			r.watching = true
		}
		if sound && s.Now.Before(due) {
			r.wake = cluster.Earlier(r.wake, due)
		}
	}
}

// look has the first node watched if nothing was made in its place because its pods had room elsewhere: no claim tells of it once
// it has gone, so the pool does.
func (r *rollout) look(s *cluster.Snapshot, p *cluster.Pool) {
	if r.proven > 0 {
		r.watching = false
		return
	}
	told := toldOf(p)
	until := told.Since.Add(r.watch)
	if told.Status == cluster.Unknown {
		r.left = 0 // what goes next waits until it has been said that the watch is over
		if s.Now.Before(until) {
			r.watching = true
			r.wake = cluster.Earlier(r.wake, until)
		}
	}
	for _, c := range s.ClaimsOf(p.Name) {
		if n := s.NodeOf(c.Name); n != nil && ReasonOf(c.Move) == command.Drifted && !c.Deleting.IsZero() {
			r.watching = r.watching || slices.ContainsFunc(s.PodsOn(n.Name), s.Moves)
		}
	}
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

// Proceeds is what a pool's status says about the replacement of its drifted nodes.
func (rs *Rolls) Proceeds(p *cluster.Pool) cluster.Condition {
	r := rs.of(p)
	switch {
	case r.why != "":
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.False, Reason: "ReplacementsFail",
			Message: r.why + "; no more drifted nodes are replaced until that is mended"}
	case r.watching:
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.Unknown, Reason: "CanaryWatched",
			Message: fmt.Sprintf("the first drifted node has been replaced; others follow when all is well for %s", r.watch)}
	}
	return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.True, Reason: "DriftProceeds"}
}
