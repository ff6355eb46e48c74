package nominate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// maxNominations bounds how many pods are being nominated or bound at the same time: they must not crowd out what makes
// nodes.
const maxNominations = 50

// notReady is the taint of a node whose kubelet is not up yet; it is what binding does not wait for.
const notReady = "node.kubernetes.io/not-ready"

// Input is what nominations depend on.
type Input struct {
	Snapshot *cluster.Snapshot
	// Placement is where pods go.
	Placement *schedule.Placement
	// Binding says that pods are bound where they can be.
	Binding bool
	// Lifecycle says how long nodes may take to register.
	Lifecycle lifecycle.Settings
	// Registered are the registrations that would open nodes now.
	Registered []command.Register
}

// Result is what is to be done now.
type Result struct {
	Commands []command.Command
	// KeptClosed are the nodes whose registration has to wait.
	KeptClosed map[string]bool
	// WakeAt is when to ask again even if nothing changes; zero for never.
	WakeAt time.Time
}

// Pods sees to it that pods get to the nodes that were made for them: kube-scheduler, left alone, fills new nodes as it
// likes, and pods that it keeps for last may find no room where room was planned for them.
//
// By nomination, each pod's node is written to its status right before that opens; kube-scheduler then tries this node
// first and keeps the room for the pod (see openInTurns). By binding, pods are bound while the node's kubelet is not up
// yet; those that can't be, and those of a node whose kubelet is up already, are nominated.
func Pods(in Input) Result {
	n := &nominator{s: in.Snapshot, binding: in.Binding, lifecycle: in.Lifecycle,
		targetNode: podNodes(in.Snapshot, in.Placement), closedNodes: closedNodes(in.Snapshot, in.Registered)}
	for _, pod := range n.s.Pending() {
		n.decide(pod)
	}
	slices.SortFunc(n.steps, compareSteps)
	closed := n.openInTurns()
	return Result{Commands: n.firstSteps(), KeptClosed: closed, WakeAt: n.wakeAt}
}

// IsDue reports whether pods have to be told of nodes although no placement was made, because more pods are awaited:
// nodes may be coming for pods that were planned for before.
func IsDue(s *cluster.Snapshot, binding bool) bool {
	coming := slices.DeleteFunc(slices.Clone(s.Claims), func(c *cluster.Claim) bool {
		return len(c.Seats) == 0 || !isNotYetOpen(c, s.NodeOf(c.Name))
	})
	return len(coming) > 0 && len(s.Pending()) > 0 &&
		(binding || !areAlike(s.Pending()) || anyContested(s, coming))
}

// anyContested reports whether DaemonSets may take the room of the pods that wait, which are alike, on one of the nodes
// that come.
func anyContested(s *cluster.Snapshot, coming []*cluster.Claim) bool {
	return slices.ContainsFunc(coming, func(c *cluster.Claim) bool {
		seats := int64(0)
		for _, seat := range c.Seats {
			seats += int64(seat.Count)
		}
		return daemonsContest(s, c, s.NodeOf(c.Name), s.Pending()[0].Class.Requests.Times(seats))
	})
}

// areAlike reports whether none of the pods can take another's place: they are of one class, and nothing ties them.
func areAlike(pods []*cluster.Pod) bool {
	return !slices.ContainsFunc(pods, func(p *cluster.Pod) bool {
		return p.Class != pods[0].Class || p.Nominated != "" || p.IsTied()
	})
}

// isNotYetOpen reports whether a claim's node is there, is to stay, and has not opened yet: from then on kube-scheduler
// is at it.
func isNotYetOpen(c *cluster.Claim, n *cluster.Node) bool {
	if n == nil || c == nil || !c.Deleting.IsZero() || !n.Deleting.IsZero() {
		return false
	}
	return !c.Is(cluster.Initialized)
}

// nominator is the work on one plan's guidance.
type nominator struct {
	s       *cluster.Snapshot
	binding bool
	// lifecycle says how long nodes may take to register.
	lifecycle lifecycle.Settings
	// targetNode is the node of each pod that has one, by the pod's UID.
	targetNode  map[string]string
	closedNodes map[string]*closedNode // by node
	steps       []nominationStep
	safeNodes   safeNodes
	nominated   nominatedPods
	wakeAt      time.Time
}

// nominationStep is something to be done for a pod. came is when its node did, share how much of the node the pod
// takes; moves says that the pod has been told another node before, and keeps room there.
type nominationStep struct {
	command      command.Command
	uid          string
	node         string
	nodeCreated  time.Time
	share        float64
	hadOtherNode bool
}

// compareSteps takes node after node, so that one after the other can open, and the largest pods of a node first: a
// large pod whose room is taken needs a node of its own, a small one finds a gap. What only has to be taken back comes
// before all.
func compareSteps(a, b nominationStep) int {
	return cmp.Or(a.nodeCreated.Compare(b.nodeCreated), strings.Compare(a.node, b.node), cmp.Compare(b.share, a.share),
		strings.Compare(a.uid, b.uid))
}

// decide decides what is to be done for one pod.
func (nom *nominator) decide(pod *cluster.Pod) {
	targetNode := nom.targetNode[pod.UID]
	n, c := nom.s.Node(targetNode), nom.s.ClaimOf(targetNode)
	switch {
	case !isNotYetOpen(c, n):
		if pod.Nominated != "" && pod.Nominated != targetNode { // it would keep room that others have been given
			nom.nominate(pod, targetNode, nominationStep{})
		}
	case nom.binding && mayBind(pod, c, n):
		nom.steps = append(nom.steps, nominationStep{uid: pod.UID, node: targetNode, nodeCreated: n.Created,
			share: shareOf(pod, n),
			command: command.Bind{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
				Node: targetNode}})
	case nom.binding && !n.Ready && nom.closedNodes[targetNode] != nil && mayBindLater(pod, c, n):
	case pod.Nominated == targetNode:
		nom.countPod(pod, targetNode, true)
	case nom.isSingleClass(c, n) || !nom.mayNominateBeside(pod, targetNode):
	default:
		nom.countPod(pod, targetNode, false)
		nom.nominate(pod, targetNode, nominationStep{node: targetNode, nodeCreated: n.Created, share: shareOf(pod, n),
			hadOtherNode: pod.Nominated != ""})
	}
}

func (nom *nominator) nominate(pod *cluster.Pod, node string, step nominationStep) {
	step.uid = pod.UID
	step.command = command.Nominate{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Node: node}
	nom.steps = append(nom.steps, step)
}

// firstSteps is as many of the steps as may be under way at the same time.
func (nom *nominator) firstSteps() []command.Command {
	left := maxNominations
	for key := range nom.s.InFlight {
		if strings.HasPrefix(key, "nominate/") || strings.HasPrefix(key, "bind/") {
			left--
		}
	}
	var out []command.Command
	for _, st := range nom.steps {
		if left <= 0 {
			break
		}
		if !nom.s.InFlight[st.command.Key()] {
			out = append(out, st.command)
			left--
		}
	}
	return out
}

// shareOf is the share of the node that the pod takes, in the resource of which it takes most.
func shareOf(pod *cluster.Pod, n *cluster.Node) float64 {
	share := 0.0
	for dim, amount := range pod.Class.Requests {
		if have := n.Allocatable[dim]; amount > 0 && have > 0 {
			share = max(share, float64(amount)/float64(have))
		}
	}
	return share
}

// mayBind reports whether the pod can be bound: its kubelet is not up yet, or kube-scheduler would be filling the node
// at the same time, and both might give the same room away; the pod needs nothing from its scheduler but a node (no
// volume has to be made where it goes); and no taint keeps it off but the one that goes when the kubelet is up. Before
// the node is registered it carries one from which the pod would be evicted again.
func mayBind(pod *cluster.Pod, c *cluster.Claim, n *cluster.Node) bool {
	return c.Is(cluster.Registered) && mayBindTo(pod, n, n.Taints)
}

// mayBindLater reports whether the pod can be bound once the node is registered.
func mayBindLater(pod *cluster.Pod, c *cluster.Claim, n *cluster.Node) bool {
	return mayBindTo(pod, n, slices.Concat(c.Taints, c.StartupTaints))
}

func mayBindTo(pod *cluster.Pod, n *cluster.Node, taints []cluster.Taint) bool {
	if n.Ready || len(pod.UnboundClaims) > 0 || pod.OtherScheduler || n.Cordoned || n.KeptFor != "" {
		return false
	}
	for _, t := range taints {
		if _, off := cluster.Untolerated(pod.Class.Tolerations, []cluster.Taint{t}); off && t.Key != notReady {
			return false
		}
	}
	return true
}
