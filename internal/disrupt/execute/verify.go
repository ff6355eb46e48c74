package execute

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
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

// destinationClaim is the claim of the host that a pod goes to, or nil.
func (vf *verifier) destinationClaim(dest destination) *cluster.Claim {
	if c := vf.s.ClaimOf(dest.host); c != nil {
		return c
	}
	return vf.s.Claim(dest.host)
}

// ongoing are the moves that go on.
func (vf *verifier) ongoing() []*activeMove {
	return slices.DeleteFunc(slices.Clone(vf.moves), func(m *activeMove) bool { return m.giveUpReason != "" })
}

// needsPlace reports whether the pod will need another place when its node goes.
func (vf *verifier) needsPlace(p *cluster.Pod) bool {
	return vf.s.NeedsNewPlace(p) || vf.forcedPods[p.UID]
}

// forcePod counts a pod among those that will be made to leave.
func (vf *verifier) forcePod(p *cluster.Pod) {
	vf.countPodsBetweenNodes()
	if vf.forcedPods == nil {
		vf.forcedPods = make(map[string]bool)
	}
	vf.forcedPods[p.UID] = true
	vf.podsBetweenNodes = append(vf.podsBetweenNodes, p)
}
