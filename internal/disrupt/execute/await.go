package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// waits are how long moves wait, and for what.
type waits struct {
	*frame
	// fencePending says that a fence is being put up of which it is not known yet in which move it is.
	fencePending bool
	// awaitingReplacements are the moves for which something was made that is not up yet, once somebody has asked.
	awaitingReplacements map[string]bool
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
