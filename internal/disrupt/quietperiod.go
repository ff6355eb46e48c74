package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// QuietPeriod is how long a node of the pool must have been quiet before it is disrupted for the reason: the pool's own
// word about the reason or, for what saves money, its consolidateAfter. has is false if it need not be.
func QuietPeriod(p *cluster.Pool, reason command.Reason) (wait cluster.NillableDuration, has bool) {
	if own, ok := p.Overrides.QuietPeriods[string(reason)]; ok {
		return own, true
	}
	return p.ConsolidateAfter, SavesMoney(reason)
}

// QuietAt is when the node has been left alone for long enough. A new node that no pod has reached yet is kept for the
// nomination time at least.
func QuietAt(wait cluster.NillableDuration, c *cluster.Claim, nomination time.Duration) time.Time {
	since := c.Condition(cluster.Initialized).Since
	if c.LastPodEvent.IsZero() {
		return since.Add(max(wait.For, nomination))
	}
	if c.LastPodEvent.After(since) {
		since = c.LastPodEvent
	}
	return since.Add(wait.For)
}

// IsRemovableEmpty reports whether the claim's node carries nothing and has for as long as its pool asks: if it is
// still there, budgets or a dry run hold it back.
func IsRemovableEmpty(s *cluster.Snapshot, c *cluster.Claim) bool {
	p, n := s.Pool(c.Pool), s.NodeOf(c.Name)
	switch {
	case p == nil || p.Static || p.Deleting || n == nil || c.Move != "" || !c.Is(cluster.Initialized):
		return false
	case !c.Deleting.IsZero() || !n.Deleting.IsZero() || HasFence(n) || !IsEmpty(s, c, n):
		return false
	}
	wait, _ := QuietPeriod(p, command.Empty)
	return !wait.Never && !s.Now.Before(QuietAt(wait, c, 0))
}

// IsQuietTarget reports whether the node is quiet for long enough to be a place where pods of other nodes are moved to
// for money's sake: one that is still being filled is left to those it was made for. Nodes of pools that never
// consolidate take part.
func IsQuietTarget(s *cluster.Snapshot, set Settings, c *cluster.Claim) bool {
	p := s.Pool(c.Pool)
	if p == nil {
		return true
	}
	wait, _ := QuietPeriod(p, command.Underutilized)
	return wait.Never || !s.Now.Before(QuietAt(wait, c, set.Nomination))
}
