package execute

import (
	"maps"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Memo is what was verified last. It saves work while moves wait for their replacements, and changes nothing.
type Memo struct {
	required, saving verifiedPlacement
	departures       departureAnswer
}

// verifiedPlacement is the answer to the question where pods would go without some nodes.
type verifiedPlacement struct {
	query     placementQuery
	placement schedule.Placement
}

// destination is where a pod of a move goes. The less its distance, the sooner it is there.
type destination struct {
	pod      *cluster.Pod
	distance distance
	// host is there or on its way; bin is the number of a node that would have to be made.
	host string
	bin  int
}

// distance says how far a place is.
type distance int

const (
	atReadyNode  distance = iota // on a node that is up
	atComingNode                 // on one that is on its way, or closed for the moment
	atNewNode                    // on one that would have to be made
	nowhere                      // nowhere
)

// verifier places the pods of moves as if the nodes of these were gone.
type verifier struct {
	s   *cluster.Snapshot
	set disrupt.Settings
	// interruptionsOnly says that only nodes are looked at which the cloud takes away.
	interruptionsOnly bool
	// moves are the moves, the oldest first. removedNodes are nodes that other parts of the plan take away, or moves.
	moves        []*activeMove
	removedNodes map[string]bool
	// chosen are hosts that kube-scheduler has chosen for pods which the plan sends elsewhere: it may still bind them
	// there.
	chosen map[string]bool
	// otherPodsHosts are the hosts to which pods go in placements that are of no move.
	otherPodsHosts map[string]bool
	// forcedPods are pods that will have to leave at the deadline of an interrupted or unhealthy node, whatever they
	// say, by UID.
	forcedPods map[string]bool
	// podsBetweenNodes are the pods that are between two nodes, once they are counted.
	podsBetweenNodes []*cluster.Pod
	podsCounted      bool
}

func newVerifier(s *cluster.Snapshot, set disrupt.Settings) *verifier {
	return &verifier{s: s, set: set, removedNodes: make(map[string]bool), otherPodsHosts: make(map[string]bool)}
}

// otherPlacements is what other placements of the same plan have decided: pods that count as being on a host, and all
// those that are looked after.
type otherPlacements struct {
	placedOn map[string][]*cluster.Pod
	handled  map[string]bool
}

func otherPlacementsOf(p *schedule.Placement) *otherPlacements {
	o := &otherPlacements{placedOn: make(map[string][]*cluster.Pod), handled: make(map[string]bool)}
	o.add(p)
	return o
}

func (o *otherPlacements) add(p *schedule.Placement) {
	if p == nil {
		return
	}
	for _, a := range p.Assigned {
		o.placedOn[a.Host] = append(o.placedOn[a.Host], a.Pod)
		o.handled[a.Pod.UID] = true
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			o.handled[pod.UID] = true
		}
	}
	for i := range p.Unplaced {
		o.handled[p.Unplaced[i].Pod.UID] = true
	}
}

// placeMoves finds places for the pods of some moves, those of the others being gone, too, and tells each move which
// are its own.
func (vf *verifier) placeMoves(moves, others []*activeMove, o *otherPlacements, before,
	memo *verifiedPlacement) *schedule.Placement {
	if len(moves) == 0 {
		return nil
	}
	gone := vf.leavingAnyway()
	cared, leaving := maps.Clone(o.handled), make(map[string]bool)
	for _, m := range others {
		for i := range m.nodes {
			gone = append(gone, m.nodes[i].Node.Name)
			for _, p := range vf.s.PodsOn(m.nodes[i].Node.Name) {
				cared[p.UID] = true
			}
		}
	}
	for _, m := range moves {
		for i := range m.nodes {
			gone = append(gone, m.nodes[i].Node.Name)
			for _, p := range vf.s.PodsOn(m.nodes[i].Node.Name) {
				leaving[p.Class.Key] = true
			}
		}
	}
	closed, avoid := append(vf.replacementHosts(others), vf.lateReplacements()...), []string(nil)
	if disrupt.SavesMoney(moves[0].reason) {
		closed = append(append(closed, vf.unquietNodes(moves)...), vf.nodesWithoutClaim()...)
	} else {
		avoid = vf.driftedHosts(leaving)
	}
	overlay := vf.overlayWithout(gone, o.placedOn, cared)
	memo.query = vf.queryFor(moves, gone, append(avoid, closed...), &otherPlacements{placedOn: o.placedOn,
		handled: cared})
	if memo.query.sameAnswer(&before.query) {
		memo.placement = before.placement
	} else {
		memo.placement = vf.placePods(overlay, closed, avoid)
	}
	for _, host := range vf.assignDestinations(moves, &memo.placement) {
		vf.otherPodsHosts[host] = true
	}
	return &memo.placement
}

// overlayWithout is the cluster without the hosts that are gone, and with all that is known to need a place.
func (vf *verifier) overlayWithout(gone []string, on map[string][]*cluster.Pod,
	cared map[string]bool) *cluster.Overlay {
	vf.countPodsBetweenNodes()
	return vf.s.Without(gone...).WithPlaced(on, cared).WithExpected(vf.podsBetweenNodes)
}

// countPodsBetweenNodes finds the pods that are between two nodes.
func (vf *verifier) countPodsBetweenNodes() {
	if !vf.podsCounted {
		vf.podsBetweenNodes, vf.podsCounted = vf.s.PodsBetweenNodes(), true
	}
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

// placePods places pods. They don't go to hosts that are shut; and they are kept off the nodes to avoid if all find a
// place without those.
func (vf *verifier) placePods(o *cluster.Overlay, closed, avoid []string) schedule.Placement {
	if len(avoid) > 0 {
		if p := schedule.Place(o.WithAvoided(setOf(closed, avoid)), vf.set.Schedule); len(p.Unplaced) == 0 {
			return p
		}
	}
	return schedule.Place(o.WithAvoided(setOf(closed)), vf.set.Schedule)
}

func setOf(lists ...[]string) map[string]bool {
	out := make(map[string]bool)
	for _, list := range lists {
		for _, name := range list {
			out[name] = true
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

// chosenHosts are the nodes to which pods without a place are nominated that the placement sends elsewhere.
// kube-scheduler keeps room there for them, or binds them there, until it has seen that the nomination is taken back.
func chosenHosts(p *schedule.Placement) map[string]bool {
	out := make(map[string]bool)
	note := func(pod *cluster.Pod, host string) {
		if pod.Nominated != "" && pod.Nominated != host {
			out[pod.Nominated] = true
		}
	}
	for _, a := range p.Assigned {
		note(a.Pod, a.Host)
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			note(pod, "")
		}
	}
	for i := range p.Unplaced {
		note(p.Unplaced[i].Pod, "")
	}
	return out
}

// isKeptForOthers reports whether a node is kept for a move that is not looked at here: it is closed until that move
// lets it go.
func (vf *verifier) isKeptForOthers(n *cluster.Node) bool {
	return n.KeptFor != "" && !slices.ContainsFunc(vf.moves, func(m *activeMove) bool { return m.id == n.KeptFor })
}
