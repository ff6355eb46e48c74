package destination

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// ForcePods finds the pods of a node that will be made to leave at its deadline although they, or a disruption budget,
// say that they don't: they need other places, too. As long as there is more time than a new node may take to come up,
// none is made: it would stand there empty.
func (vf *Verifier) ForcePods(c *cluster.Claim, n *cluster.Node) (wake time.Time) {
	end := InterruptionEnd(vf.s, c)
	for _, p := range vf.s.PodsOn(n.Name) {
		if !p.IsReschedulable() || vf.s.NeedsNewPlace(p) {
			continue
		}
		if from := end.Add(-max(drainLead(vf.set), p.Grace) - vf.set.ReplacementWait()); vf.s.Now.Before(from) {
			wake = cluster.Earlier(wake, from)
			continue
		}
		vf.ForcePod(p)
	}
	return wake
}

// LatestDrainStart is when the pods of an interrupted node are told to leave, whether or not their places are ready;
// has is false if there is no such time.
func LatestDrainStart(s *cluster.Snapshot, set disrupt.Settings, c *cluster.Claim) (at time.Time, has bool) {
	i := &c.Interruption
	switch {
	case i.Force:
		return s.Now, true
	case i.Deadline.IsZero():
		return time.Time{}, false
	}
	return i.Deadline.Add(-drainLead(set)), true
}

// drainLead is how long before its deadline an interrupted node's pods are told to leave at the latest.
func drainLead(set disrupt.Settings) time.Duration {
	if set.InterruptionDrain > 0 {
		return set.InterruptionDrain
	}
	return defaultInterruptionDrain
}

// defaultInterruptionDrain is how long before its deadline an interrupted node's pods are told to leave at the latest,
// if nobody says otherwise.
const defaultInterruptionDrain = 45 * time.Second

// InterruptionEnd is when an interrupted node must be gone if it is let go now, or when it must be if it goes already.
func InterruptionEnd(s *cluster.Snapshot, c *cluster.Claim) time.Time {
	if at, has := c.EndsBy(); has && !c.Deleting.IsZero() {
		return at
	}
	i := &c.Interruption
	if own := s.Now.Add(c.TerminationGrace); !i.Force && !i.Deadline.IsZero() && c.HasTerminationGrace &&
		own.Before(i.Deadline) {
		return own
	}
	if i.Force {
		return s.Now
	}
	return i.Deadline
}
