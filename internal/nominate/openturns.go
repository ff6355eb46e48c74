package nominate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// kubeletWait is how long after its coming a node may be kept closed because its kubelet is not up.
	kubeletWait = time.Minute
	// turnWait is how long a node whose kubelet is up may be kept closed until it is its turn.
	turnWait = 10 * time.Second
	// maxToldPods is how many pods can be told in good time. Nodes whose turn is later are not kept closed: in such a
	// many waiting pods would cost more than a pod in the wrong place.
	maxToldPods = 500
	// allTurnsTime is how long the turns of all nodes that wait should take together; turnTime is what one of them
	// takes, besides tryTime for each pod that kube-scheduler tries. If nodes are too many, several share a turn.
	allTurnsTime = 3 * time.Second
	turnTime     = 200 * time.Millisecond
	tryTime      = 5 * time.Millisecond
	// schedulerIdleFor is how long no sign of kube-scheduler must have been seen for it to be done; schedulerBusyFor is
	// how long it may be at it before that is taken for its usual state, and how long the first in line waits for that
	// at most.
	schedulerIdleFor = 100 * time.Millisecond
	schedulerBusyFor = 2 * time.Second
)

// closedNode is a node that is closed and would be opened by its registration. Pods are told of it before.
type closedNode struct {
	node  *cluster.Node
	claim *cluster.Claim
	// told and untold are its pods that have to know, lowest and highest the priorities of these.
	told, untold    int
	lowest, highest int32
}

// closedNodes are the nodes that only registration keeps closed, or will as soon as their kubelets are up.
func closedNodes(s *cluster.Snapshot, registered []command.Register) map[string]*closedNode {
	out := make(map[string]*closedNode)
	for _, r := range registered {
		if n := s.Node(r.Node); n.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute) {
			out[r.Node] = &closedNode{node: n, claim: s.Claim(r.Claim)}
		}
	}
	return out
}

// countPod notes a pod that has to know of its node.
func (nom *nominator) countPod(pod *cluster.Pod, node string, nominated bool) {
	closed := nom.closedNodes[node]
	if closed == nil {
		return
	}
	if closed.told+closed.untold == 0 {
		closed.lowest, closed.highest = pod.Class.Priority, pod.Class.Priority
	}
	closed.lowest, closed.highest = min(closed.lowest, pod.Class.Priority), max(closed.highest, pod.Class.Priority)
	_, failing := nom.s.Retry[command.Nominate{UID: pod.UID}.Key()]
	switch {
	case nominated:
		closed.told++
	case !failing: // whoever can't be told must not keep the others waiting
		closed.untold++
	}
}

// openInTurns lets the nodes open one after the other, each when its pods, and no others, have been told, and says
// which stay closed.
//
// A node that opens makes kube-scheduler try every pod that waits. Those that it can't place lose the node that was
// named for them, and whoever loses that before the node opens is put anywhere. So nobody is told of a node before its
// turn, and a turn begins when kube-scheduler has come to rest. That takes a fraction of a second for each; nobody
// waits for ever.
func (nom *nominator) openInTurns() (keptClosed map[string]bool) {
	closed, line, opening := nom.orderClosed()
	turn := line[:turnSize(line)]
	restless := nom.schedulerIsBusy() && !nom.waitedEnough(line)
	now := make(map[string]bool)
	untold := 0
	for _, closed := range turn {
		now[closed.node.Name] = !restless && !opening
		untold += closed.untold
	}
	for i, cn := range line {
		closed[cn.node.Name] = restless || opening || untold > 0 || i >= len(turn)
	}
	nom.steps = slices.DeleteFunc(nom.steps, func(st nominationStep) bool {
		if _, tells := st.command.(command.Nominate); !tells || st.node == "" || st.hadOtherNode {
			return false
		}
		if _, waits := closed[st.node]; waits || len(line) > 0 || opening {
			return !now[st.node]
		}
		return restless
	})
	return closed
}

// turnSize is how many of the nodes that wait open together. It is one; but with many nodes that would take too long,
// and from pods that are more important than others kube-scheduler does not keep the others' room: they must find their
// own node open.
func turnSize(line []*closedNode) int {
	pods := 0
	for _, closed := range line {
		if closed.lowest != line[0].lowest || closed.highest != line[0].lowest {
			return len(line)
		}
		pods += closed.told + closed.untold
	}
	turns := max(1, int(allTurnsTime/(turnTime+time.Duration(pods)*tryTime/2))) // each leaves fewer to try
	return (len(line) + turns - 1) / turns
}

// orderClosed says which nodes stay closed because their kubelets are not up, and in which order those whose are wait
// for their turn. opening says that the one before is being opened right now.
func (nom *nominator) orderClosed() (closed map[string]bool, line []*closedNode, opening bool) {
	closed = make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(nom.closedNodes)) {
		cn := nom.closedNodes[name]
		if cn.told+cn.untold == 0 { // most, where pods are alike
			continue
		}
		until := nom.opensBy(cn)
		switch {
		case nom.s.InFlight[command.Register{Claim: cn.claim.Name}.Key()]:
			opening = true
		case !nom.s.Now.Before(until), until.After(nom.s.Now.Add(2 * kubeletWait)):
			// clocks that differ must not keep it closed
		case onlyUnregistered(cn):
			line = append(line, cn)
			nom.wakeAt = cluster.Earlier(nom.wakeAt, until)
		default:
			closed[name] = true
			nom.wakeAt = cluster.Earlier(nom.wakeAt, until)
		}
	}
	slices.SortFunc(line, func(a, b *closedNode) int {
		return cmp.Or(a.node.Created.Compare(b.node.Created), strings.Compare(a.node.Name, b.node.Name))
	})
	pods := 0
	for i, cn := range line {
		if pods += cn.told + cn.untold; pods > maxToldPods && i > 0 {
			return closed, nil, opening // who comes later would open first and keep kube-scheduler busy: nobody waits
		}
	}
	return closed, line, opening
}

// opensBy is when a node opens at the latest: long before it would be given up for not having registered.
func (nom *nominator) opensBy(closed *closedNode) time.Time {
	n := closed.node
	if len(closed.claim.StartupTaints) > 0 {
		return time.Time{} // it is not registration that opens the node
	}
	until := n.Created.Add(kubeletWait)
	switch {
	case n.Ready:
		until = nom.upSince(n).Add(turnWait)
	case nom.binding || nom.daemonNeedsOpening(closed):
		return time.Time{} // pods are bound before the kubelet is up, or it needs the registration to come up
	}
	patience := nom.lifecycle.For(nom.s.Pool(closed.claim.Pool)).Registration
	if deadline := closed.claim.Condition(cluster.Launched).Since.Add(patience / 2); deadline.Before(until) {
		until = deadline
	}
	return until
}

// upSince is when the node became ready, as we saw it.
func (nom *nominator) upSince(n *cluster.Node) time.Time {
	if n.ReadySince.After(n.Created) {
		return n.ReadySince
	}
	return n.Created
}

// waitedEnough reports whether the first in line has waited for kube-scheduler to rest for as long as that is worth.
func (nom *nominator) waitedEnough(line []*closedNode) bool {
	return len(line) > 0 && !nom.s.Now.Before(nom.upSince(line[0].node).Add(schedulerBusyFor))
}

// daemonNeedsOpening reports whether some daemon that helps a kubelet up waits for the registration: it may run on
// nodes that are not ready, but not on one that is not registered.
func (nom *nominator) daemonNeedsOpening(closed *closedNode) bool {
	labels := cluster.JoinedLabels(closed.node.Labels.Merge(closed.claim.Labels))
	taints := append(slices.Clone(closed.claim.Taints), cluster.Taint{Key: notReady, Effect: cluster.NoSchedule})
	unregistered := []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}}
	return slices.ContainsFunc(nom.s.Daemons, func(d *cluster.Daemon) bool {
		return cluster.MayRunOn(d.Class, labels, taints) && !cluster.MayRunOn(d.Class, closed.node.Labels, unregistered)
	})
}

// onlyUnregistered reports whether nothing but its registration is missing for pods to come. The last of it is
// Kubernetes' own: its node controllers take off what they put on while the node was starting.
func onlyUnregistered(closed *closedNode) bool {
	return closed.node.Ready && !slices.ContainsFunc(closed.node.Taints, func(t cluster.Taint) bool {
		return t.Effect != cluster.PreferNoSchedule && t.Key != cluster.UnregisteredTaint &&
			!slices.Contains(closed.claim.Taints, t)
	})
}

// schedulerIsBusy reports whether kube-scheduler is at work: whoever is told a node now may lose it again at once.
func (nom *nominator) schedulerIsBusy() bool {
	still := nom.s.SchedulerActivity.Last.Add(schedulerIdleFor)
	if !nom.s.Now.Before(still) || !nom.s.Now.Before(nom.s.SchedulerActivity.Began.Add(schedulerBusyFor)) {
		return false
	}
	if len(nom.steps) > 0 || len(nom.closedNodes) > 0 {
		nom.wakeAt = cluster.Earlier(nom.wakeAt, still)
	}
	return true
}
