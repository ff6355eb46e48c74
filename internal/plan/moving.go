package plan

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// longestMove bounds how long pods are taken to be moving in: from a claim's making to its node, and after that has opened.
const longestMove = time.Minute

// moving says whether kube-scheduler is still filling nodes that were made for pods, or waits for some that are on their
// way. It does not put each pod on the node that was made for it, so meanwhile some pods look as if they had no place: theirs
// is taken, and that of the pod which took it is free. What is really missing shows when it is done, and can then be bought
// at once.
type moving struct {
	s     *cluster.Snapshot
	until time.Time
	seats map[string]bool // classes for which nodes have been made lately
}

func newMoving(s *cluster.Snapshot, placement *schedule.Placement, policy Policy) *moving {
	m := &moving{s: s, until: s.Bound.Add(policy.BatchIdle), seats: make(map[string]bool)}
	// Where kube-scheduler is told who goes where, whoever finds no room has really none: others have come meanwhile.
	if policy.Placement != PlaceByEvent && policy.Placement != "" {
		return m
	}
	if s.Bound.IsZero() || len(placement.Assigned) == 0 {
		return m
	}
	binding := s.Now.Before(m.until)
	if !binding {
		m.until = s.Now.Add(policy.BatchIdle)
	}
	for _, c := range s.Claims {
		open := c.Condition(cluster.Initialized)
		coming := open.Status != cluster.True && s.Now.Before(c.Created.Add(longestMove)) && s.Bound.After(c.Created)
		filling := binding && open.Status == cluster.True && s.Now.Before(open.Since.Add(longestMove))
		if c.Deleting.IsZero() && (coming || filling) {
			for _, seat := range c.Seats {
				m.seats[seat.Class] = true
			}
		}
	}
	return m
}

// wait reports whether a new node can wait, and until when: it is only for pods that have been planned for before and whose
// kind has nodes that are coming or being filled.
func (m *moving) wait(b *schedule.Bin) (until time.Time, wait bool) {
	for _, p := range b.Pods {
		if p.Node != "" || m.s.NewAt(p).After(m.s.Planned) || !m.seats[p.Class.Key] {
			return time.Time{}, false
		}
	}
	return m.until, true
}
