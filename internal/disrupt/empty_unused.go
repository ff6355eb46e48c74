package disrupt

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// replacedNodesStay is why a claim goes that nobody has waited for.
const replacedNodesStay = "the nodes that it was to replace stay"

// isAbandonedReplacement reports whether the claim has yet to become a node that takes pods, and nobody waits for it:
// the move that it was made for has been given up. Before its time is up that is so only if it was to save money:
// whether a replacement of a node that has to go comes up tells how it would go with others. A dry run does not keep
// what was begun before it.
func (ec *emptinessCheck) isAbandonedReplacement(c *cluster.Claim, n *cluster.Node) bool {
	switch {
	case !neverUsed(c) || c.Expected || !c.Deleting.IsZero() || c.Is(cluster.Initialized) || ec.moves[c.Replaces]:
		return false
	case ec.needed[cluster.HostName(c, n)] || c.DoNotDisrupt || ec.s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()]:
		return false
	case n != nil && (!n.Deleting.IsZero() || hasCommandUnderWay(ec.s, c, n) || !IsEmpty(ec.s, c, n)):
		return false
	}
	if n == nil && !c.Is(cluster.Registered) && savesMoney(MoveReason(c.Replaces)) && ec.noPodWaits() {
		return true
	}
	if due := c.Created.Add(ec.set.replacementWait()); ec.s.Now.Before(due) {
		ec.result.WakeAt = cluster.Earlier(ec.result.WakeAt, due)
		return false
	}
	return !ec.failedReplacements()[c]
}

// unusedNodes are nodes that stand in vain.
type unusedNodes struct {
	tries map[string]*cluster.WorkloadTries // by the claim
	// retained are those that stay to show what is wrong, one for each owner; youngUntil are new ones whose taint may
	// go by itself, and until when each stays.
	retained   map[string]bool
	youngUntil map[string]time.Time
}

// isKept reports whether the node of a claim is kept although it stands in vain.
func (u *unusedNodes) isKept(claim string) bool {
	_, fresh := u.youngUntil[claim]
	return fresh || u.retained[claim]
}

// findUnusedNodes lists the nodes that stand in vain. One that shows what is wrong does not stay where the next try is
// due and the limits of its pool leave no room for another such node beside it: nothing could ever show then that the
// cause has gone.
func findUnusedNodes(s *cluster.Snapshot) unusedNodes {
	v := unusedNodes{youngUntil: make(map[string]time.Time)}
	v.tries, v.retained = s.UnusedNodes()
	v.keepYoung(s)
	headroom := make(map[*cluster.Pool]*schedule.Headroom)
	for _, b := range s.WorkloadTries {
		c := s.Claim(b.Retained)
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
			delete(v.retained, c.Name)
		}
	}
	return v
}

// keepYoung keeps nodes whose taint may go by itself.
func (u *unusedNodes) keepYoung(s *cluster.Snapshot) {
	for name := range u.tries {
		c := s.Claim(name)
		if c == nil {
			continue
		}
		if until := c.MayClearUntil(s.NodeOf(name)); s.Now.Before(until) {
			u.youngUntil[name] = until
		}
	}
}

// failedReplacements are the claims that show that the drifted nodes of a pool can't be replaced now: the last that did
// not come up, unless one did after it. As long as there are such nodes it is kept, or they would all be tried again.
func (ec *emptinessCheck) failedReplacements() map[*cluster.Claim]bool {
	if ec.keptReplacements != nil {
		return ec.keptReplacements
	}
	ec.keptReplacements = make(map[*cluster.Claim]bool)
	for pool, made := range NewRollouts(ec.s, ec.set).replacements {
		var last *cluster.Claim
		for _, c := range made {
			late := c.Is(cluster.Initialized) || !ec.s.Now.Before(c.Created.Add(ec.set.replacementWait()/2))
			if late && (last == nil || c.Created.After(last.Created)) {
				last = c
			}
		}
		drifted := func(c *cluster.Claim) bool { return c.Is(cluster.Drifted) && c.Deleting.IsZero() }
		if last != nil && !last.Is(cluster.Initialized) && slices.ContainsFunc(ec.s.ClaimsOf(pool), drifted) {
			ec.keptReplacements[last] = true
		}
	}
	return ec.keptReplacements
}

// replacementWait is how long replacements are awaited.
func (s Settings) replacementWait() time.Duration {
	if s.ReplacementTimeout > 0 {
		return s.ReplacementTimeout
	}
	return defaultReplacementTimeout
}

func nodeNameOf(n *cluster.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}
