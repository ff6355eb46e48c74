package plan

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// settleTime is how long to wait for others to join a pod that nobody but its maker wants: long enough for a burst, too
// short to notice. growthTime is how long other owners that have just been made, or want more pods, may take to make
// them: what is applied together is planned for together.
const (
	settleTime = 50 * time.Millisecond
	growthTime = 250 * time.Millisecond
)

// batchClosed decides whether to plan now or to wait for more pods. The window is closed early once every pod that the
// new pods' owners want has appeared and kube-scheduler has looked at one of each kind, and no other owner is just
// making pods; otherwise it closes after BatchIdle without a new pod, and after BatchMax in any case.
func batchClosed(s *cluster.Snapshot, policy Policy) (closed bool, wake time.Time) {
	var first, last, lastLoose time.Time
	complete := true
	asked := make(map[string]bool)
	for _, p := range s.Pending() {
		at := s.PendingSince(p)
		if !at.After(s.PlannedAt) {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
		if p.Owner == "" && at.After(lastLoose) {
			lastLoose = at
		}
		if complete && !asked[p.Owner] {
			asked[p.Owner] = true
			whole, known := s.IsComplete(p.Owner)
			complete = whole && known
		}
	}
	if first.IsZero() {
		return true, time.Time{}
	}
	due := cluster.Earlier(last.Add(policy.BatchIdle), first.Add(policy.BatchMax))
	if complete {
		soon := s.Now
		if !lastLoose.IsZero() {
			soon = lastLoose.Add(settleTime)
		}
		if at := s.LastGrowth(); !at.IsZero() && at.Add(growthTime).After(soon) {
			soon = at.Add(growthTime)
		}
		due = cluster.Earlier(due, soon)
	}
	if s.Now.Before(due) {
		return false, due
	}
	return true, time.Time{}
}
