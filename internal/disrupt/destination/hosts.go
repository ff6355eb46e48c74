package destination

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
)

// longestWaitFor is how long at most a replacement is waited for.
func (vf *Verifier) longestWaitFor(c *cluster.Claim) time.Duration {
	for _, m := range vf.Moves {
		if m.ID == c.Replaces && c.Is(cluster.Launched) && vf.s.IsReplacement(c) {
			return m.LongestWait(vf.set)
		}
	}
	return vf.set.ReplacementWait()
}

// LeavingAnyway are the hosts that go in any case.
func (vf *Verifier) LeavingAnyway() []string {
	var out []string
	for _, c := range vf.s.Claims {
		if !c.Deleting.IsZero() {
			out = append(out, cluster.HostName(c, vf.s.NodeOf(c.Name)))
		}
	}
	for _, n := range vf.s.Nodes {
		if !n.Deleting.IsZero() || vf.RemovedNodes[n.Name] {
			out = append(out, n.Name)
		}
	}
	return out
}

// lateReplacements are the replacements that have not come up for so long that nobody waits for them any more.
func (vf *Verifier) lateReplacements() []string {
	var out []string
	for _, c := range vf.s.Claims {
		if c.Replaces != "" && !c.Is(cluster.Initialized) && !vf.s.Now.Before(c.Created.Add(vf.longestWaitFor(c))) {
			out = append(out, cluster.HostName(c, vf.s.NodeOf(c.Name)))
		}
	}
	return out
}

// unquietNodes are the nodes that are still being filled, or have been left alone for less than their own
// consolidateAfter: to save money no pods are moved there. What was made for a move is not asked until that is over;
// and neither is who has come or gone since the first of the moves began, for that may be their own doing.
func (vf *Verifier) unquietNodes(moves []*Move) []string {
	var since time.Time
	for _, m := range moves {
		since = cluster.Earlier(since, m.FencedAt)
	}
	var out []string
	for _, c := range vf.s.Claims {
		n := vf.s.NodeOf(c.Name)
		if n == nil || !c.Is(cluster.Initialized) || len(vf.s.MoveClaims(c.Replaces)) > 0 ||
			disrupt.IsQuietTarget(vf.s, vf.set, c) {
			continue
		}
		if since.IsZero() || c.Condition(cluster.Initialized).Since.After(since) || c.LastPodEvent.Before(since) {
			out = append(out, n.Name)
		}
	}
	return out
}

// nodesWithoutClaim are the nodes of ours that no claim has found, or that have lost theirs: most of these go.
func (vf *Verifier) nodesWithoutClaim() []string {
	var out []string
	for _, n := range vf.s.Nodes {
		if n.Ours && vf.s.ClaimOf(n.Name) == nil && vf.s.Claim(n.Name) == nil {
			out = append(out, n.Name)
		}
	}
	return out
}

// replacementHosts are the hosts that were made for some moves.
func (vf *Verifier) replacementHosts(moves []*Move) []string {
	ids := make(map[string]bool, len(moves))
	for _, m := range moves {
		ids[m.ID] = true
	}
	var out []string
	for _, c := range vf.s.Claims {
		if ids[c.Replaces] && vf.s.IsReplacement(c) {
			out = append(out, cluster.HostName(c, vf.s.NodeOf(c.Name)))
		}
	}
	return out
}

// driftedHosts are the nodes that have drifted: pods that were moved there would have to move again. Only an empty one
// with seats for pods that leave interrupted nodes is theirs: they would get there in any case when they are evicted.
func (vf *Verifier) driftedHosts(leaving map[string]bool) []string {
	hasSeat := func(seat cluster.Seat) bool { return vf.InterruptionsOnly && leaving[seat.Class] }
	var out []string
	for _, c := range vf.s.Claims {
		n := vf.s.NodeOf(c.Name)
		if n != nil && c.Is(cluster.Drifted) && drift.Of(vf.s, c) != "" && !(slices.ContainsFunc(c.Seats, hasSeat) &&
			!slices.ContainsFunc(vf.s.PodsOn(n.Name), (*cluster.Pod).IsWorkload)) {
			out = append(out, n.Name)
		}
	}
	return out
}

// DistanceOf says how far a host is.
func (vf *Verifier) DistanceOf(host string) Distance {
	n := vf.s.Node(host)
	if n == nil || !n.Deleting.IsZero() || disrupt.HasFence(n) {
		return AtComingNode
	}
	c := vf.s.ClaimOf(host)
	if c == nil {
		c = vf.s.Claim(host) // a node may have joined under its claim's name before it is known to be the claim's
	}
	if c == nil && n.Ours {
		return AtComingNode // either its claim will find it, or its machine has lost its claim and goes
	}
	if c != nil && !c.Is(cluster.Initialized) || vf.InterruptionsOnly && vf.isKeptForOthers(n) || vf.Chosen[host] {
		return AtComingNode
	}
	return AtReadyNode
}

// isKeptForOthers reports whether a node is kept for a move that is not looked at here: it is closed until that move
// lets it go.
func (vf *Verifier) isKeptForOthers(n *cluster.Node) bool {
	return n.KeptFor != "" && !slices.ContainsFunc(vf.Moves, func(m *Move) bool { return m.ID == n.KeptFor })
}

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
