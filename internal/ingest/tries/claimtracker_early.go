package tries

import (
	"cmp"
	"maps"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// mayRemoveEarly reports whether it is in order that a node on which pods of the owner have run for less than RanFor is
// taken from it by our choice. If that is consolidation's, it is remembered: pods may be made to leave the place that
// they move to, and the node that is made for them then must not be taken in the same way. The first time counts: a
// move may take several nodes, and what was made before is no answer to it. left is when the node was seen to leave.
func (tr *Tracker) mayRemoveEarly(c *cluster.Claim, outcome *ownerOutcome, left time.Time) bool {
	if c.Condition(cluster.DisruptionReason).Reason != string(command.Underutilized) {
		return true
	}
	early, again := tr.removedEarly[outcome.Owner]
	if !again { // by the clock that tells when claims are made, and to the second like that
		early = cmp.Or(c.Deleting, left)
		tr.removedEarly[outcome.Owner] = early
	}
	return !again || c.Created.Before(early)
}

// RemovedEarly is what is remembered, for an hour.
func (tr *Tracker) RemovedEarly(now time.Time) map[string]time.Time {
	if len(tr.removedEarly) == 0 {
		return nil
	}
	maps.DeleteFunc(tr.removedEarly, func(_ string, at time.Time) bool { return !now.Before(at.Add(RememberFor)) })
	return maps.Clone(tr.removedEarly)
}
