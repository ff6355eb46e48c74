package ingest

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
// The lock is held.
func (b *Book) mayRemoveEarly(c *cluster.Claim, outcome *ownerOutcome, left time.Time) bool {
	if c.Condition(cluster.DisruptionReason).Reason != string(command.Underutilized) {
		return true
	}
	early, again := b.removedEarly[outcome.Owner]
	if !again { // by the clock that tells when claims are made, and to the second like that
		early = cmp.Or(c.Deleting, left)
		b.removedEarly[outcome.Owner] = early
	}
	return !again || c.Created.Before(early)
}

// removedEarlyNow is what is remembered, for an hour. The lock is held.
func (b *Book) removedEarlyNow(now time.Time) map[string]time.Time {
	if len(b.removedEarly) == 0 {
		return nil
	}
	maps.DeleteFunc(b.removedEarly, func(_ string, at time.Time) bool { return !now.Before(at.Add(rememberFor)) })
	return maps.Clone(b.removedEarly)
}
