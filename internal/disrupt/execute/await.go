package execute

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// retryWaitFactor is how many times as long a move waits for replacements that have been launched, if one of its nodes
// rests or has rested a short while ago. Where machines take a little longer than the timeout each try would come to
// nothing otherwise, and each would buy machines that are thrown away.
const retryWaitFactor = 2

// timeout is how long replacements are awaited.
func (ex *executor) timeout() time.Duration { return ex.set.ReplacementWait() }

// longestWait is how long a move lasts at most until its nodes go.
func (ex *executor) longestWait(m *activeMove) time.Duration {
	if slices.ContainsFunc(m.nodes, m.gaveUpBefore) {
		return retryWaitFactor * ex.timeout()
	}
	return ex.timeout()
}

// longestWaitFor is how long at most a replacement is waited for.
func (ex *executor) longestWaitFor(c *cluster.Claim) time.Duration {
	for _, m := range ex.moves {
		if m.id == c.Replaces && c.Is(cluster.Launched) && ex.s.IsReplacement(c) {
			return ex.longestWait(m)
		}
	}
	return ex.timeout()
}

// gaveUpBefore reports whether a move of the node was given up not long before this one began.
func (am *activeMove) gaveUpBefore(c disrupt.Candidate) bool {
	if disrupt.SavesMoney(am.reason) && c.Claim.SavingRests > 0 &&
		!am.fencedAt.After(c.Claim.SavingRestUntil.Add(disrupt.LongestRest)) {
		return true
	}
	return c.Claim.Rests > 0 && !am.fencedAt.After(c.Claim.RestUntil.Add(disrupt.LongestRest))
}

// mayWait reports whether a move may go on waiting, and gives it up if it has waited for too long.
func (ex *executor) mayWait(m *activeMove) bool {
	due := m.fencedAt.Add(ex.timeout())
	if !ex.s.Now.Before(due) && ex.allLaunched(m) {
		due = m.fencedAt.Add(ex.longestWait(m))
	}
	if ex.s.Now.Before(due) {
		ex.wake(due)
		return true
	}
	m.giveUp(disrupt.ReplacementsLate, true)
	return false
}

// allLaunched reports whether new nodes were made for the pods of the move, and all that are needed have been launched:
// nothing more has to be bought. Some of them may have been made for other moves.
func (ex *executor) allLaunched(m *activeMove) bool {
	var made []*cluster.Claim
	for _, c := range ex.s.Claims {
		if c.Replaces == m.id && c.Deleting.IsZero() && ex.s.IsReplacement(c) {
			made = append(made, c)
		}
	}
	for i := range m.destinations {
		dest := &m.destinations[i]
		if dest.distance > atComingNode && !m.isStatic {
			return false
		}
		if c := ex.destinationClaim(*dest); c != nil && ex.s.IsReplacement(c) {
			made = append(made, c)
		}
	}
	return len(made) > 0 && !slices.ContainsFunc(made, func(c *cluster.Claim) bool { return !c.Is(cluster.Launched) })
}

// isOverdue reports whether a move should be over even if its replacements came at the last moment.
func (ex *executor) isOverdue(m *activeMove) bool {
	return !ex.s.Now.Before(m.fencedAt.Add(ex.longestWait(m) + ex.timeout()/10))
}
