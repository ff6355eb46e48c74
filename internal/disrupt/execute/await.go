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

// longestWait is how long a move lasts at most until its nodes go.
func (am *activeMove) longestWait(set disrupt.Settings) time.Duration {
	if slices.ContainsFunc(am.nodes, am.gaveUpBefore) {
		return retryWaitFactor * set.ReplacementWait()
	}
	return set.ReplacementWait()
}

// waits are how long moves wait, and for what.
type waits struct {
	*frame
	// fencePending says that a fence is being put up of which it is not known yet in which move it is.
	fencePending bool
	// awaitingReplacements are the moves for which something was made that is not up yet, once somebody has asked.
	awaitingReplacements map[string]bool
}

// longestWaitFor is how long at most a replacement is waited for.
func (vf *verifier) longestWaitFor(c *cluster.Claim) time.Duration {
	for _, m := range vf.moves {
		if m.id == c.Replaces && c.Is(cluster.Launched) && vf.s.IsReplacement(c) {
			return m.longestWait(vf.set)
		}
	}
	return vf.set.ReplacementWait()
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
func (wt *waits) mayWait(m *activeMove) bool {
	due := m.fencedAt.Add(wt.set.ReplacementWait())
	if !wt.s.Now.Before(due) && wt.allLaunched(m) {
		due = m.fencedAt.Add(m.longestWait(wt.set))
	}
	if wt.s.Now.Before(due) {
		wt.Wake(due)
		return true
	}
	m.giveUp(disrupt.ReplacementsLate, true)
	return false
}

// allLaunched reports whether new nodes were made for the pods of the move, and all that are needed have been launched:
// nothing more has to be bought. Some of them may have been made for other moves.
func (wt *waits) allLaunched(m *activeMove) bool {
	var made []*cluster.Claim
	for _, c := range wt.s.Claims {
		if c.Replaces == m.id && c.Deleting.IsZero() && wt.s.IsReplacement(c) {
			made = append(made, c)
		}
	}
	for i := range m.destinations {
		dest := &m.destinations[i]
		if dest.distance > atComingNode && !m.isStatic {
			return false
		}
		if c := wt.destinationClaim(*dest); c != nil && wt.s.IsReplacement(c) {
			made = append(made, c)
		}
	}
	return len(made) > 0 && !slices.ContainsFunc(made, func(c *cluster.Claim) bool { return !c.Is(cluster.Launched) })
}

// isOverdue reports whether a move should be over even if its replacements came at the last moment.
func (wt *waits) isOverdue(m *activeMove) bool {
	return !wt.s.Now.Before(m.fencedAt.Add(m.longestWait(wt.set) + wt.set.ReplacementWait()/10))
}
