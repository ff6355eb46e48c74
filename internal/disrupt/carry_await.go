package disrupt

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// retriesWait is how many times as long a move waits for replacements that have been launched, if one of its nodes rests or has rested a
// short while ago. Where machines take a little longer than the timeout each try would come to nothing otherwise, and each would buy
// machines that are thrown away.
const retriesWait = 2

// timeout is how long replacements are awaited.
func (d *desk) timeout() time.Duration { return d.set.replacementTimeout() }

// most is how long a move lasts at most until its nodes go.
func (d *desk) most(g *group) time.Duration {
	if slices.ContainsFunc(g.nodes, g.triedBefore) {
		return retriesWait * d.timeout()
	}
	return d.timeout()
}

// mostFor is how long at most a replacement is waited for.
func (d *desk) mostFor(c *cluster.Claim) time.Duration {
	for _, g := range d.groups {
		if g.id == c.Replaces && c.Is(cluster.Launched) && d.s.Replacing(c) {
			return d.most(g)
		}
	}
	return d.timeout()
}

// triedBefore reports whether a move of the node was given up not long before this one began.
func (g *group) triedBefore(c Candidate) bool {
	if saves(g.reason) && c.Claim.SavingRests > 0 && !g.since.After(c.Claim.SavingRestUntil.Add(longestRest)) {
		return true
	}
	return c.Claim.Rests > 0 && !g.since.After(c.Claim.RestUntil.Add(longestRest))
}

// await reports whether a move may go on waiting, and gives it up if it has waited for too long.
func (d *desk) await(g *group) bool {
	due := g.since.Add(d.timeout())
	if !d.s.Now.Before(due) && d.bought(g) {
		due = g.since.Add(d.most(g))
	}
	if d.s.Now.Before(due) {
		d.wake(due)
		return true
	}
	g.giveUp(ReplacementsLate, true)
	return false
}

// bought reports whether new nodes were made for the pods of the move, and all that are needed have been launched: nothing more has to
// be bought. Some of them may have been made for other moves.
func (d *desk) bought(g *group) bool {
	var made []*cluster.Claim
	for _, c := range d.s.Claims {
		if c.Replaces == g.id && c.Deleting.IsZero() && d.s.Replacing(c) {
			made = append(made, c)
		}
	}
	for i := range g.seats {
		st := &g.seats[i]
		if st.rank > coming && !g.static {
			return false
		}
		if c := d.claimOf(*st); c != nil && d.s.Replacing(c) {
			made = append(made, c)
		}
	}
	return len(made) > 0 && !slices.ContainsFunc(made, func(c *cluster.Claim) bool { return !c.Is(cluster.Launched) })
}

// overdue reports whether a move should be over even if its replacements came at the last moment.
func (d *desk) overdue(g *group) bool {
	return !d.s.Now.Before(g.since.Add(d.most(g) + d.timeout()/10))
}
