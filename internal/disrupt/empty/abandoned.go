package empty

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
)

// isAbandonedReplacement reports whether the claim has yet to become a node that takes pods, and nobody waits for it:
// the move that it was made for has been given up. Before its time is up that is so only if it was to save money:
// whether a replacement of a node that has to go comes up tells how it would go with others. A dry run does not keep
// what was begun before it.
func (ec *emptinessCheck) isAbandonedReplacement(c *cluster.Claim, n *cluster.Node) bool {
	switch {
	case !disrupt.NeverUsed(c) || c.Expected || !c.Deleting.IsZero() || c.Is(cluster.Initialized) ||
		ec.moves[c.Replaces]:
		return false
	case ec.needed[cluster.HostName(c, n)] || c.DoNotDisrupt || ec.s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()]:
		return false
	case n != nil && (!n.Deleting.IsZero() || disrupt.HasCommandUnderWay(ec.s, c, n) || !disrupt.IsEmpty(ec.s, c, n)):
		return false
	}
	if n == nil && !c.Is(cluster.Registered) && disrupt.SavesMoney(disrupt.MoveReason(c.Replaces)) && ec.noPodWaits() {
		return true
	}
	if due := c.Created.Add(ec.set.ReplacementWait()); ec.s.Now.Before(due) {
		ec.result.WakeAt = cluster.Earlier(ec.result.WakeAt, due)
		return false
	}
	return !ec.failedReplacements()[c]
}

// failedReplacements are the claims that show that the drifted nodes of a pool can't be replaced now: the last that did
// not come up, unless one did after it. As long as there are such nodes it is kept, or they would all be tried again.
func (ec *emptinessCheck) failedReplacements() map[*cluster.Claim]bool {
	if ec.keptReplacements != nil {
		return ec.keptReplacements
	}
	ec.keptReplacements = make(map[*cluster.Claim]bool)
	for pool, made := range drift.Replacements(ec.s) {
		var last *cluster.Claim
		for _, c := range made {
			late := c.Is(cluster.Initialized) || !ec.s.Now.Before(c.Created.Add(ec.set.ReplacementWait()/2))
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

func nodeNameOf(n *cluster.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}

// noPodWaits reports whether no pod looks for a place or is about to, and no move is about to begin: what was made for
// a move that has been given up is made for nobody then.
func (ec *emptinessCheck) noPodWaits() bool {
	if ec.noPodWaiting == nil {
		answer := len(ec.s.Pending()) == 0 && ec.s.LastGrowth().IsZero() && len(ec.s.PodsBetweenNodes()) == 0 &&
			!disrupt.AnyMoveBeginning(ec.s)
		ec.noPodWaiting = &answer
	}
	return *ec.noPodWaiting
}
