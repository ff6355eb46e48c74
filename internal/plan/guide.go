package plan

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

// guidedAtOnce bounds how many pods are being nominated or bound at the same time: they must not crowd out what makes nodes.
const guidedAtOnce = 50

// notReady is the taint of a node whose kubelet is not up yet; it is what binding does not wait for.
const notReady = "node.kubernetes.io/not-ready"

// guide sees to it that pods get to the nodes that were made for them: kube-scheduler, left alone, fills new nodes as it
// likes, and pods that it keeps for last may find no room where room was planned for them.
//
// By nomination, each pod's node is written to its status right before that opens; kube-scheduler then tries this node first
// and keeps the room for the pod (see takeTurns). By binding, pods are bound while the node's kubelet is not up yet; those
// that can't be, and those of a node whose kubelet is up already, are nominated.
func (p *Plan) guide(s *cluster.Snapshot, policy Policy) {
	if policy.Placement != PlaceByNomination && policy.Placement != PlaceByBinding {
		return
	}
	placement := p.guidance(s, policy)
	if placement == nil {
		return
	}
	g := &guide{s: s, binding: policy.Placement == PlaceByBinding, life: policy.Lifecycle}
	g.home, g.gates = seating(s, placement), p.gates(s)
	for _, pod := range s.Pending() {
		g.look(pod)
	}
	slices.SortFunc(g.steps, compareSteps)
	p.takeTurns(g)
	p.Commands = append(p.Commands, g.most()...)
}

// guidance is the placement by which pods are guided. While more pods are awaited none is made; but nodes may be coming for
// pods that were planned for before, and these are guided by what a placement of all that are there would be. No claim is
// made from it.
func (p *Plan) guidance(s *cluster.Snapshot, policy Policy) *schedule.Placement {
	if p.Provisioned {
		return &p.Placement
	}
	coming := slices.DeleteFunc(slices.Clone(s.Claims), func(c *cluster.Claim) bool {
		return len(c.Seats) == 0 || !fresh(c, s.NodeOf(c.Name))
	})
	if len(coming) == 0 || len(s.Pending()) == 0 {
		return nil
	}
	if policy.Placement == PlaceByNomination && alike(s.Pending()) && !anyContested(s, coming) {
		return nil
	}
	draft := Plan{memory: p.memory}
	draft.place(s.Plain(), policy.Schedule)
	return &draft.Placement
}

// anyContested reports whether DaemonSets may take the room of the pods that wait, which are alike, on one of the nodes
// that come.
func anyContested(s *cluster.Snapshot, coming []*cluster.Claim) bool {
	return slices.ContainsFunc(coming, func(c *cluster.Claim) bool {
		seats := int64(0)
		for _, seat := range c.Seats {
			seats += int64(seat.Count)
		}
		return contested(s, c, s.NodeOf(c.Name), s.Pending()[0].Class.Requests.Times(seats))
	})
}

// alike reports whether none of the pods can take another's place: they are of one class, and nothing ties them.
func alike(pods []*cluster.Pod) bool {
	class := pods[0].Class
	if len(class.Rules)+len(class.Ports) > 0 {
		return false
	}
	for _, p := range pods {
		if p.Class != class || p.Nominated != "" || len(p.Volumes)+len(p.Exclusive)+len(p.Unbound) > 0 {
			return false
		}
	}
	return true
}

// fresh reports whether a claim's node is there, is to stay, and has not opened yet: from then on kube-scheduler is at it.
func fresh(c *cluster.Claim, n *cluster.Node) bool {
	if n == nil || c == nil || !c.Deleting.IsZero() || !n.Deleting.IsZero() {
		return false
	}
	return !c.Is(cluster.Initialized)
}

// guide is the work on one plan's guidance.
type guide struct {
	s       *cluster.Snapshot
	binding bool
	// life says how long nodes may take to register.
	life lifecycle.Settings
	// home is the node of each pod that has one, by the pod's UID.
	home  map[string]string
	gates map[string]*gate // by node
	steps []guideStep
	solo  solo
	peace peace
}

// guideStep is something to be done for a pod. came is when its node did, share how much of the node the pod takes; moves
// says that the pod has been told another node before, and keeps room there.
type guideStep struct {
	command command.Command
	uid     string
	node    string
	came    time.Time
	share   float64
	moves   bool
}

// compareSteps takes node after node, so that one after the other can open, and the largest pods of a node first: a large pod
// whose room is taken needs a node of its own, a small one finds a gap. What only has to be taken back comes before all.
func compareSteps(a, b guideStep) int {
	return cmp.Or(a.came.Compare(b.came), strings.Compare(a.node, b.node), cmp.Compare(b.share, a.share), strings.Compare(a.uid, b.uid))
}

// look decides what is to be done for one pod.
func (g *guide) look(pod *cluster.Pod) {
	home := g.home[pod.UID]
	n, c := g.s.Node(home), g.s.ClaimOf(home)
	switch {
	case !fresh(c, n):
		if pod.Nominated != "" && pod.Nominated != home { // it would keep room that others have been given
			g.nominate(pod, home, guideStep{})
		}
	case g.binding && bindable(pod, c, n):
		g.steps = append(g.steps, guideStep{uid: pod.UID, node: home, came: n.Created, share: shareOf(pod, n),
			command: command.Bind{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Node: home}})
	case g.binding && !n.Ready && g.gates[home] != nil && bindsLater(pod, c, n):
	case pod.Nominated == home:
		g.count(pod, home, true)
	case g.alone(c, n) || !g.peaceful(pod, home):
	default:
		g.count(pod, home, false)
		g.nominate(pod, home, guideStep{node: home, came: n.Created, share: shareOf(pod, n), moves: pod.Nominated != ""})
	}
}

func (g *guide) nominate(pod *cluster.Pod, node string, step guideStep) {
	step.uid = pod.UID
	step.command = command.Nominate{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Node: node}
	g.steps = append(g.steps, step)
}

// most is as many of the steps as may be under way at the same time.
func (g *guide) most() []command.Command {
	left := guidedAtOnce
	for key := range g.s.Busy {
		if strings.HasPrefix(key, "nominate/") || strings.HasPrefix(key, "bind/") {
			left--
		}
	}
	var out []command.Command
	for _, st := range g.steps {
		if left <= 0 {
			break
		}
		if !g.s.Busy[st.command.Key()] {
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

// bindable reports whether the pod can be bound: its kubelet is not up yet, or kube-scheduler would be filling the node at the
// same time, and both might give the same room away; the pod needs nothing from its scheduler but a node (no volume has to
// be made where it goes); and no taint keeps it off but the one that goes when the kubelet is up. Before the node is
// registered it carries one from which the pod would be evicted again.
func bindable(pod *cluster.Pod, c *cluster.Claim, n *cluster.Node) bool {
	return c.Is(cluster.Registered) && bindsTo(pod, n, n.Taints)
}

// bindsLater reports whether the pod can be bound once the node is registered.
func bindsLater(pod *cluster.Pod, c *cluster.Claim, n *cluster.Node) bool {
	return bindsTo(pod, n, slices.Concat(c.Taints, c.StartupTaints))
}

func bindsTo(pod *cluster.Pod, n *cluster.Node, taints []cluster.Taint) bool {
	if n.Ready || len(pod.Unbound) > 0 || pod.OtherScheduler || n.Cordoned || n.KeptFor != "" {
		return false
	}
	for _, t := range taints {
		if _, off := cluster.Untolerated(pod.Class.Tolerations, []cluster.Taint{t}); off && t.Key != notReady {
			return false
		}
	}
	return true
}
