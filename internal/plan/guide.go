package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

const (
	// guidedAtOnce bounds how many pods are being nominated or bound at the same time: they must not crowd out what makes
	// nodes.
	guidedAtOnce = 50
	// closedFor is how long after its coming a node may be kept closed until kube-scheduler can know for whom it is. Mostly
	// it takes a fraction of a second.
	closedFor = 10 * time.Second
	// reach is how many pods can be told in good time. Nodes whose turn is later are not kept closed: in such a crowd waiting
	// would cost more than a pod in the wrong place.
	reach = 500
)

// notReady is the taint of a node whose kubelet is not up yet; it is what binding does not wait for.
const notReady = "node.kubernetes.io/not-ready"

// guide sees to it that pods get to the nodes that were made for them: kube-scheduler, left alone, fills new nodes as it
// likes, and pods that it keeps for last may find no room where room was planned for them.
//
// By nomination, each pod's node is written to its status as soon as that is there and before it opens; kube-scheduler then
// tries this node first and keeps the room for the pod. By binding, pods are bound while the node's kubelet is not up yet; but
// kube-scheduler is told all the same, because from then on it is the one to fill the node with whoever is not bound.
func (p *Plan) guide(s *cluster.Snapshot, policy Policy) {
	if policy.Placement != PlaceByNomination && policy.Placement != PlaceByBinding {
		return
	}
	placement := p.guidance(s, policy)
	if placement == nil {
		return
	}
	g := &guide{s: s, placement: placement, binding: policy.Placement == PlaceByBinding}
	g.home = seating(s, placement)
	for _, pod := range s.Pending() {
		g.look(pod)
	}
	slices.SortFunc(g.steps, compareSteps)
	p.holdRegistration(s, g.awaited())
	p.Commands = append(p.Commands, g.most()...)
}

// guidance is the placement by which pods are guided. While more pods are awaited none is made; but nodes may be coming for
// pods that were planned for before, and these are guided by what a placement of all that are there would be. No claim is
// made from it.
func (p *Plan) guidance(s *cluster.Snapshot, policy Policy) *schedule.Placement {
	if p.Provisioned {
		return &p.Placement
	}
	coming := slices.ContainsFunc(s.Claims, func(c *cluster.Claim) bool { return len(c.Seats) > 0 && fresh(c, s.NodeOf(c.Name)) })
	if !coming || len(s.Pending()) == 0 || policy.Placement == PlaceByNomination && alike(s.Pending()) {
		return nil
	}
	draft := Plan{memory: p.memory}
	draft.place(s.Plain(), policy.Schedule)
	return &draft.Placement
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
	if n == nil || c == nil || c.Foreign || !c.Deleting.IsZero() || !n.Deleting.IsZero() {
		return false
	}
	return !c.Is(cluster.Initialized)
}

// guide is the work on one plan's guidance.
type guide struct {
	s         *cluster.Snapshot
	placement *schedule.Placement
	binding   bool
	// home is the node of each pod that has one, by the pod's UID.
	home  map[string]string
	steps []guideStep
	solo  solo
	peace peace
}

// guideStep is something to be done for a pod. came is when its node did, share how much of the node the pod takes.
type guideStep struct {
	command command.Command
	uid     string
	node    string
	came    time.Time
	share   float64
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
	case pod.Nominated == home || g.alone(c, n) || !g.peaceful(pod, home):
	default:
		g.nominate(pod, home, guideStep{node: home, came: n.Created, share: shareOf(pod, n)})
	}
}

func (g *guide) nominate(pod *cluster.Pod, node string, step guideStep) {
	step.uid = pod.UID
	step.command = command.Nominate{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Node: node}
	g.steps = append(g.steps, step)
}

// awaited are the nodes of which some pod has yet to be told, and soon will be.
func (g *guide) awaited() map[string]bool {
	await := make(map[string]bool)
	for i, st := range g.steps {
		if _, tells := st.command.(command.Nominate); tells && st.node != "" {
			await[st.node] = i < reach
		}
	}
	return await
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
	if n.Ready || !c.Is(cluster.Registered) || len(pod.Unbound) > 0 || pod.OtherScheduler || n.Cordoned {
		return false
	}
	for _, t := range n.Taints {
		if _, off := cluster.Untolerated(pod.Class.Tolerations, []cluster.Taint{t}); off && t.Key != notReady {
			return false
		}
	}
	return true
}

// holdRegistration leaves the nodes closed for a moment for whose pods kube-scheduler has yet to learn that they are
// theirs.
func (p *Plan) holdRegistration(s *cluster.Snapshot, await map[string]bool) {
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		r, ok := c.(command.Register)
		if !ok || !await[r.Node] {
			return false
		}
		until := s.Node(r.Node).Created.Add(closedFor)
		if !s.Now.Before(until) || until.After(s.Now.Add(2*closedFor)) { // the second: clocks that differ must not keep it closed
			return false
		}
		p.WakeAt = cluster.Earlier(p.WakeAt, until)
		return true
	})
}
