package destination

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Memo is what was verified last. It saves work while moves wait for their replacements, and changes nothing.
type Memo struct {
	Required, Saving Answer
	Departures       DepartureAnswer
}

// Answer is the answer to the question where pods would go without some nodes.
type Answer struct {
	query     Query
	Placement schedule.Placement
}

// Place is where a pod of a move goes. The less its distance, the sooner it is there.
type Place struct {
	Pod      *cluster.Pod
	Distance Distance
	// Host is there or on its way; Bin is the number of a node that would have to be made.
	Host string
	Bin  int
}

// Distance says how far a place is.
type Distance int

const (
	AtReadyNode  Distance = iota // on a node that is up
	AtComingNode                 // on one that is on its way, or closed for the moment
	AtNewNode                    // on one that would have to be made
	Nowhere                      // nowhere
)

// Verifier places the pods of moves as if the nodes of these were gone.
type Verifier struct {
	s   *cluster.Snapshot
	set disrupt.Settings
	// InterruptionsOnly says that only nodes are looked at which the cloud takes away.
	InterruptionsOnly bool
	// Moves are the moves, the oldest first. RemovedNodes are nodes that other parts of the plan take away, or moves.
	Moves        []*Move
	RemovedNodes map[string]bool
	// Chosen are hosts that kube-scheduler has chosen for pods which the plan sends elsewhere: it may still bind them
	// there.
	Chosen map[string]bool
	// OtherPodsHosts are the hosts to which pods go in placements that are of no move.
	OtherPodsHosts map[string]bool
	// forcedPods are pods that will have to leave at the deadline of an interrupted or unhealthy node, whatever they
	// say, by UID.
	forcedPods map[string]bool
	// podsBetweenNodes are the pods that are between two nodes, once they are counted.
	podsBetweenNodes []*cluster.Pod
	podsCounted      bool
}

// NewVerifier knows no moves yet.
func NewVerifier(s *cluster.Snapshot, set disrupt.Settings) *Verifier {
	return &Verifier{s: s, set: set, RemovedNodes: make(map[string]bool), OtherPodsHosts: make(map[string]bool)}
}

// PlaceMoves finds places for the pods of some moves, those of the others being gone, too, and tells each move which
// are its own.
func (vf *Verifier) PlaceMoves(moves, others []*Move, o *Others, before,
	memo *Answer) *schedule.Placement {
	if len(moves) == 0 {
		return nil
	}
	gone := vf.LeavingAnyway()
	cared, leaving := maps.Clone(o.Handled), make(map[string]bool)
	for _, m := range others {
		for i := range m.Nodes {
			gone = append(gone, m.Nodes[i].Node.Name)
			for _, p := range vf.s.PodsOn(m.Nodes[i].Node.Name) {
				cared[p.UID] = true
			}
		}
	}
	for _, m := range moves {
		for i := range m.Nodes {
			gone = append(gone, m.Nodes[i].Node.Name)
			for _, p := range vf.s.PodsOn(m.Nodes[i].Node.Name) {
				leaving[p.Class.Key] = true
			}
		}
	}
	closed, avoid := append(vf.replacementHosts(others), vf.lateReplacements()...), []string(nil)
	if disrupt.SavesMoney(moves[0].Reason) {
		closed = append(append(closed, vf.unquietNodes(moves)...), vf.nodesWithoutClaim()...)
	} else {
		avoid = vf.driftedHosts(leaving)
	}
	vf.countPodsBetweenNodes()
	known := &Others{PlacedOn: o.PlacedOn, Handled: cared}
	memo.query = vf.QueryFor(moves, gone, append(avoid, closed...), known)
	if memo.query.SameAnswer(&before.query) {
		memo.Placement = before.Placement
	} else {
		memo.Placement = vf.Place(gone, closed, avoid, known)
	}
	for _, host := range vf.AssignDestinations(moves, &memo.Placement) {
		vf.OtherPodsHosts[host] = true
	}
	return &memo.Placement
}

// Without is the cluster without the hosts that are gone, and with all that is known to need a place.
func (vf *Verifier) Without(gone []string, o *Others) *cluster.Overlay {
	vf.countPodsBetweenNodes()
	return vf.s.Without(gone...).WithPlaced(o.PlacedOn, o.Handled).WithExpected(vf.podsBetweenNodes)
}

// countPodsBetweenNodes finds the pods that are between two nodes.
func (vf *Verifier) countPodsBetweenNodes() {
	if !vf.podsCounted {
		vf.podsBetweenNodes, vf.podsCounted = vf.s.PodsBetweenNodes(), true
	}
}

// Place places pods in the cluster without the hosts that are gone. They don't go to hosts that are closed; and they
// are kept off the nodes to avoid if all find a place without those.
func (vf *Verifier) Place(gone, closed, avoid []string, o *Others) schedule.Placement {
	overlay := vf.Without(gone, o)
	if len(avoid) > 0 {
		if p := schedule.Place(overlay.WithAvoided(SetOf(closed, avoid)), vf.set.Schedule); len(p.Unplaced) == 0 {
			return p
		}
	}
	return schedule.Place(overlay.WithAvoided(SetOf(closed)), vf.set.Schedule)
}

// SetOf is the set of all names in some lists.
func SetOf(lists ...[]string) map[string]bool {
	out := make(map[string]bool)
	for _, list := range lists {
		for _, name := range list {
			out[name] = true
		}
	}
	return out
}

// ClaimAt is the claim of the host that a pod goes to, or nil.
func (vf *Verifier) ClaimAt(dest Place) *cluster.Claim {
	if c := vf.s.ClaimOf(dest.Host); c != nil {
		return c
	}
	return vf.s.Claim(dest.Host)
}

// Ongoing are the moves that go on.
func (vf *Verifier) Ongoing() []*Move {
	return slices.DeleteFunc(slices.Clone(vf.Moves), func(m *Move) bool { return m.GiveUpReason != "" })
}

// NeedsPlace reports whether the pod will need another place when its node goes.
func (vf *Verifier) NeedsPlace(p *cluster.Pod) bool {
	return vf.s.NeedsNewPlace(p) || vf.forcedPods[p.UID]
}

// ForcePod counts a pod among those that will be made to leave.
func (vf *Verifier) ForcePod(p *cluster.Pod) {
	vf.countPodsBetweenNodes()
	if vf.forcedPods == nil {
		vf.forcedPods = make(map[string]bool)
	}
	vf.forcedPods[p.UID] = true
	vf.podsBetweenNodes = append(vf.podsBetweenNodes, p)
}
