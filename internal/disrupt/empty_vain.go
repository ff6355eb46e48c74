package disrupt

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// madeInVain is why a claim goes that nobody has waited for.
const madeInVain = "the nodes that it was to replace stay"

// vain reports whether the claim has yet to become a node that takes pods, and nobody waits for it: the move that it was made for
// has been given up. Before its time is up that is so only if it was to save money: whether a replacement of a node that has to go
// comes up tells how it would go with others. A dry run does not keep what was begun before it.
func (e *emptying) vain(c *cluster.Claim, n *cluster.Node) bool {
	switch {
	case !stray(c) || c.Expected || !c.Deleting.IsZero() || c.Is(cluster.Initialized) || e.moves[c.Replaces]:
		return false
	case e.needed[cluster.HostName(c, n)] || c.DoNotDisrupt || e.s.Busy[command.DeleteClaim{Claim: c.Name}.Key()]:
		return false
	case n != nil && (!n.Deleting.IsZero() || underWay(e.s, c, n) || !IsEmpty(e.s, c, n)):
		return false
	}
	if n == nil && !c.Is(cluster.Registered) && saves(ReasonOf(c.Replaces)) && e.deserted() {
		return true
	}
	if due := c.Created.Add(e.set.replacementTimeout()); e.s.Now.Before(due) {
		e.out.WakeAt = cluster.Earlier(e.out.WakeAt, due)
		return false
	}
	return !e.evidence()[c]
}

// vainNodes are nodes that stand in vain.
type vainNodes struct {
	of map[string]*cluster.Setback // by the claim
	// shown are those that stay to show what is wrong, one for each owner; fresh are new ones whose taint may go by itself, and until when
	// each stays.
	shown map[string]bool
	fresh map[string]time.Time
}

// stays reports whether the node of a claim is kept although it stands in vain.
func (v *vainNodes) stays(claim string) bool {
	_, fresh := v.fresh[claim]
	return fresh || v.shown[claim]
}

// inVain lists the nodes that stand in vain. One that shows what is wrong does not stay where the next try is due and
// the limits of its pool leave no room for another such node beside it: nothing could ever show then that the cause has
// gone.
func inVain(s *cluster.Snapshot) vainNodes {
	v := vainNodes{fresh: make(map[string]time.Time)}
	v.of, v.shown = s.InVain()
	v.keepNew(s)
	headroom := make(map[*cluster.Pool]*schedule.Headroom)
	for _, b := range s.Setbacks {
		c := s.Claim(b.Witness)
		if c == nil || !b.MayTry(s.Now) {
			continue
		}
		pool := s.Pool(c.Pool)
		if pool == nil || !pool.Limits.Any() || pool.Limits.Broken != "" {
			continue
		}
		if headroom[pool] == nil {
			headroom[pool] = schedule.HeadroomOf(s, pool)
		}
		if !headroom[pool].Fits(schedule.Charge(s, pool, c)) {
			delete(v.shown, c.Name)
		}
	}
	return v
}

// keepNew keeps nodes whose taint may go by itself.
func (v *vainNodes) keepNew(s *cluster.Snapshot) {
	for name := range v.of {
		c := s.Claim(name)
		if c == nil {
			continue
		}
		if until := c.MayClear(s.NodeOf(name)); s.Now.Before(until) {
			v.fresh[name] = until
		}
	}
}

// evidence are the claims that show that the drifted nodes of a pool can't be replaced now: the last that did not come up, unless
// one did after it. As long as there are such nodes it is kept, or they would all be tried again.
func (e *emptying) evidence() map[*cluster.Claim]bool {
	if e.kept != nil {
		return e.kept
	}
	e.kept = make(map[*cluster.Claim]bool)
	for pool, made := range NewRolls(e.s, e.set).made {
		var last *cluster.Claim
		for _, c := range made {
			late := c.Is(cluster.Initialized) || !e.s.Now.Before(c.Created.Add(e.set.replacementTimeout()/2))
			if late && (last == nil || c.Created.After(last.Created)) {
				last = c
			}
		}
		drifted := func(c *cluster.Claim) bool { return c.Is(cluster.Drifted) && c.Deleting.IsZero() }
		if last != nil && !last.Is(cluster.Initialized) && slices.ContainsFunc(e.s.ClaimsOf(pool), drifted) {
			e.kept[last] = true
		}
	}
	return e.kept
}

// replacementTimeout is how long replacements are awaited.
func (s Settings) replacementTimeout() time.Duration {
	if s.ReplacementTimeout > 0 {
		return s.ReplacementTimeout
	}
	return defaultReplacementTimeout
}

func nameOf(n *cluster.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}
