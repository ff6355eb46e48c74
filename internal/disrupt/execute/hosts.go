package execute

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
)

// longestWaitFor is how long at most a replacement is waited for.
func (vf *verifier) longestWaitFor(c *cluster.Claim) time.Duration {
	for _, m := range vf.moves {
		if m.id == c.Replaces && c.Is(cluster.Launched) && vf.s.IsReplacement(c) {
			return m.longestWait(vf.set)
		}
	}
	return vf.set.ReplacementWait()
}

// leavingAnyway are the hosts that go in any case.
func (vf *verifier) leavingAnyway() []string {
	var out []string
	for _, c := range vf.s.Claims {
		if !c.Deleting.IsZero() {
			out = append(out, cluster.HostName(c, vf.s.NodeOf(c.Name)))
		}
	}
	for _, n := range vf.s.Nodes {
		if !n.Deleting.IsZero() || vf.removedNodes[n.Name] {
			out = append(out, n.Name)
		}
	}
	return out
}

// lateReplacements are the replacements that have not come up for so long that nobody waits for them any more.
func (vf *verifier) lateReplacements() []string {
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
func (vf *verifier) unquietNodes(moves []*activeMove) []string {
	var since time.Time
	for _, m := range moves {
		since = cluster.Earlier(since, m.fencedAt)
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
func (vf *verifier) nodesWithoutClaim() []string {
	var out []string
	for _, n := range vf.s.Nodes {
		if n.Ours && vf.s.ClaimOf(n.Name) == nil && vf.s.Claim(n.Name) == nil {
			out = append(out, n.Name)
		}
	}
	return out
}

// replacementHosts are the hosts that were made for some moves.
func (vf *verifier) replacementHosts(moves []*activeMove) []string {
	ids := make(map[string]bool, len(moves))
	for _, m := range moves {
		ids[m.id] = true
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
func (vf *verifier) driftedHosts(leaving map[string]bool) []string {
	hasSeat := func(seat cluster.Seat) bool { return vf.interruptionsOnly && leaving[seat.Class] }
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

// distanceOf says how far a host is.
func (vf *verifier) distanceOf(host string) distance {
	n := vf.s.Node(host)
	if n == nil || !n.Deleting.IsZero() || disrupt.HasFence(n) {
		return atComingNode
	}
	c := vf.s.ClaimOf(host)
	if c == nil {
		c = vf.s.Claim(host) // a node may have joined under its claim's name before it is known to be the claim's
	}
	if c == nil && n.Ours {
		return atComingNode // either its claim will find it, or its machine has lost its claim and goes
	}
	if c != nil && !c.Is(cluster.Initialized) || vf.interruptionsOnly && vf.isKeptForOthers(n) || vf.chosen[host] {
		return atComingNode
	}
	return atReadyNode
}

// isKeptForOthers reports whether a node is kept for a move that is not looked at here: it is closed until that move
// lets it go.
func (vf *verifier) isKeptForOthers(n *cluster.Node) bool {
	return n.KeptFor != "" && !slices.ContainsFunc(vf.moves, func(m *activeMove) bool { return m.id == n.KeptFor })
}
