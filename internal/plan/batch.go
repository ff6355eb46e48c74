package plan

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// settle is how long to wait for company of a pod that nobody but its maker wants: long enough for a burst, too short to
// notice.
const settle = 50 * time.Millisecond

// batch decides whether to plan now or to wait for more pods. The window is closed early once every pod that the new
// pods' owners want has appeared and kube-scheduler has looked at one of each kind; otherwise it closes after BatchIdle without a
// new pod, and after BatchMax in any case.
func batch(s *cluster.Snapshot, policy Policy) (closed bool, wake time.Time) {
	var first, last, lastLoose time.Time
	complete := true
	asked := make(map[string]bool)
	for _, p := range s.Pending() {
		at := p.NewAt()
		if !at.After(s.Planned) {
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
			whole, known := s.Complete(p.Owner)
			complete = whole && known
		}
	}
	if first.IsZero() {
		return true, time.Time{}
	}
	due := cluster.Earlier(last.Add(policy.BatchIdle), first.Add(policy.BatchMax))
	if complete {
		due = cluster.Earlier(due, lastLoose.Add(settle))
		if lastLoose.IsZero() {
			due = s.Now
		}
	}
	if s.Now.Before(due) {
		return false, due
	}
	return true, time.Time{}
}
