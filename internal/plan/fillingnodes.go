package plan

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// longestFilling bounds how long pods are taken to be moving in: from a claim's making to its node, and after that has
// opened.
const longestFilling = time.Minute

// fillingNodes says whether kube-scheduler is still filling nodes that were made for pods, or waits for some that are
// on their way. It does not put each pod on the node that was made for it, so meanwhile some pods look as if they had
// no place: theirs is taken, and that of the pod which took it is free. What is really missing shows when it is done,
// and can then be bought at once.
type fillingNodes struct {
	s             *cluster.Snapshot
	until         time.Time
	recentClasses map[string]bool // classes for which nodes have been made lately
}

func newFillingNodes(s *cluster.Snapshot, placement *schedule.Placement, policy Policy) *fillingNodes {
	fn := &fillingNodes{s: s, until: s.LastBound.Add(policy.BatchIdle), recentClasses: make(map[string]bool)}
	// Where kube-scheduler is told who goes where, whoever finds no room has really none: others have come meanwhile.
	if policy.Placement != PlaceByEvent && policy.Placement != "" {
		return fn
	}
	if s.LastBound.IsZero() || len(placement.Assigned) == 0 {
		return fn
	}
	binding := s.Now.Before(fn.until)
	if !binding {
		fn.until = s.Now.Add(policy.BatchIdle)
	}
	for _, c := range s.Claims {
		open := c.Condition(cluster.Initialized)
		coming := open.Status != cluster.True && s.Now.Before(c.Created.Add(longestFilling)) &&
			s.LastBound.After(c.Created)
		filling := binding && open.Status == cluster.True && s.Now.Before(open.Since.Add(longestFilling))
		if c.Deleting.IsZero() && (coming || filling) {
			for _, seat := range c.Seats {
				fn.recentClasses[seat.Class] = true
			}
		}
	}
	return fn
}

// mayWait reports whether a new node can wait, and until when: it is only for pods that have been planned for before
// and whose kind has nodes that are coming or being filled.
func (f *fillingNodes) mayWait(b *market.Bin) (until time.Time, wait bool) {
	for _, p := range b.Pods {
		if p.Node != "" || f.s.PendingSince(p).After(f.s.PlannedAt) || !f.recentClasses[p.Class.Key] {
			return time.Time{}, false
		}
	}
	return f.until, true
}
