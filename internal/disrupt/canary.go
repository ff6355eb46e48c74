package disrupt

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// defaultWatch is how long a canary must be healthy if nobody says otherwise.
const defaultWatch = 10 * time.Minute

// rollout is how far the replacement of a pool's drifted nodes has come, as its claims show it.
type rollout struct {
	// left is how many more nodes may begin now, budgets aside.
	left int
	// probing says that it is to find out whether replacements come up again.
	probing bool
	// why says why none may, if that is because replacements fail; proven counts the new nodes that have been healthy for
	// long enough, moving those that are under way or being watched.
	why             string
	proven, moving  int
	wake            time.Time
	watch, patience time.Duration
}

// newRollout looks at the pool's claims.
//
// If replacements fail to come up, more of them would only leave the pool with fewer nodes that work: no more begin until that
// is mended. A canary goes first and alone; when its replacement has been healthy for a while two follow, then four, and so on:
// never more at once than have proven themselves, and one.
func newRollout(s *cluster.Snapshot, set Settings, p *cluster.Pool) rollout {
	r := rollout{left: len(s.ClaimsOf(p.Name)), watch: p.Care.Watch, patience: set.ReplacementTimeout / 2}
	if r.watch <= 0 {
		r.watch = set.DriftWatch
	}
	if r.watch <= 0 {
		r.watch = defaultWatch
	}
	if r.patience <= 0 {
		r.patience = defaultReplacementTimeout / 2
	}
	if r.paused(s, p); r.why != "" {
		r.probe(s, p)
		return r
	}
	if p.Care.Canary {
		r.count(s, p)
		wave := 1
		for 2*wave <= r.proven+1 {
			wave *= 2
		}
		r.left = wave - r.moving
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
func (r *rollout) paused(s *cluster.Snapshot, p *cluster.Pool) {
	if p.Registering == cluster.False {
		r.why = "at least half of the pool's latest launches did not become nodes"
		return
	}
	var young time.Time
	for _, c := range s.ClaimsOf(p.Name) {
		if ReasonOf(c.Replaces) == command.Drifted && c.Is(cluster.Initialized) && c.Created.After(young) {
			young = c.Created
		}
	}
	for _, c := range s.ClaimsOf(p.Name) {
		if ReasonOf(c.Replaces) != command.Drifted || !c.Deleting.IsZero() || c.Expected || c.Is(cluster.Initialized) || c.Created.Before(young) {
			continue
		}
		late := c.Created.Add(r.patience)
		if s.Now.Before(late) {
			r.wake = cluster.Earlier(r.wake, late)
			continue
		}
		r.why = fmt.Sprintf("NodeClaim %s, which replaces a drifted node, is not ready for pods after %s", c.Name, r.patience)
		return
	}
}

// count counts what has proven itself and what is under way.
func (r *rollout) count(s *cluster.Snapshot, p *cluster.Pool) {
	began := driftBegan(s, p)
	under := make(map[string]bool)
	for _, c := range s.ClaimsOf(p.Name) {
		if ReasonOf(c.Move) == command.Drifted && !under[c.Move] {
			under[c.Move] = true
			r.moving++
		}
	}
	for _, c := range s.ClaimsOf(p.Name) {
		if ReasonOf(c.Replaces) != command.Drifted || c.Created.Before(began) || !c.Deleting.IsZero() || DriftOf(s, c) != "" {
			continue
		}
		n := s.NodeOf(c.Name)
		sound := c.Is(cluster.Initialized) && n != nil && n.Ready
		due := c.Condition(cluster.Initialized).Since.Add(r.watch)
		switch {
		case sound && !s.Now.Before(due):
			r.proven++
		case under[c.Replaces]: // counted with what it replaces
		default:
			r.moving++
		}
		if sound && s.Now.Before(due) {
			r.wake = cluster.Earlier(r.wake, due)
		}
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

// DriftProceeds is what a pool's status says about the replacement of its drifted nodes.
func DriftProceeds(s *cluster.Snapshot, set Settings, p *cluster.Pool) cluster.Condition {
	if r := newRollout(s, set, p); r.why != "" {
		return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.False, Reason: "ReplacementsFail",
			Message: r.why + "; no more drifted nodes are replaced until that is mended"}
	}
	return cluster.Condition{Type: cluster.DriftProceeds, Status: cluster.True, Reason: "DriftProceeds"}
}
