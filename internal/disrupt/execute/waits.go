package execute

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
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
func (wt *waits) mayWait(m *destination.Move) bool {
	due := m.FencedAt.Add(wt.set.ReplacementWait())
	if !wt.s.Now.Before(due) && wt.allLaunched(m) {
		due = m.FencedAt.Add(m.LongestWait(wt.set))
	}
	if wt.s.Now.Before(due) {
		wt.Wake(due)
		return true
	}
	m.GiveUp(disrupt.ReplacementsLate, true)
	return false
}

// allLaunched reports whether new nodes were made for the pods of the move, and all that are needed have been launched:
// nothing more has to be bought. Some of them may have been made for other moves.
func (wt *waits) allLaunched(m *destination.Move) bool {
	var made []*cluster.Claim
	for _, c := range wt.s.Claims {
		if c.Replaces == m.ID && c.Deleting.IsZero() && wt.s.IsReplacement(c) {
			made = append(made, c)
		}
	}
	for i := range m.Destinations {
		dest := &m.Destinations[i]
		if dest.Distance > destination.AtComingNode && !m.IsStatic {
			return false
		}
		if c := wt.ClaimAt(*dest); c != nil && wt.s.IsReplacement(c) {
			made = append(made, c)
		}
	}
	return len(made) > 0 && !slices.ContainsFunc(made, func(c *cluster.Claim) bool { return !c.Is(cluster.Launched) })
}

// isOverdue reports whether a move should be over even if its replacements came at the last moment.
func (wt *waits) isOverdue(m *destination.Move) bool {
	return !wt.s.Now.Before(m.FencedAt.Add(m.LongestWait(wt.set) + wt.set.ReplacementWait()/10))
}

// isHeldUp reports whether a move can't go on at this moment.
func (wt *waits) isHeldUp(m *destination.Move) bool {
	return m.ChangePending || m.Waiting || len(m.Unfenced) > 0 || wt.fencePending &&
		wt.s.Now.Before(m.FencedAt.Add(fenceSpread))
}

// lacksReplacement reports whether something that was made for the move is not up yet. Its pods may have places without
// that, too; but a pod that has just been evicted, and which its owner has not made again yet, is one that nobody sees:
// the place may be meant for it.
func (wt *waits) lacksReplacement(m *destination.Move) bool {
	if wt.awaitingReplacements == nil {
		wt.awaitingReplacements = make(map[string]bool)
		for _, c := range wt.s.Claims {
			if c.Replaces != "" && c.Deleting.IsZero() && !c.Is(cluster.Initialized) && wt.s.IsReplacement(c) {
				wt.awaitingReplacements[c.Replaces] = true
			}
		}
	}
	return wt.awaitingReplacements[m.ID]
}

// fenceSpread is how long after the first fence of a move others may be on their way.
const fenceSpread = 30 * time.Second
