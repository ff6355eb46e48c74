package plan

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
	// bootFor is how long after its coming a node may be kept closed because its kubelet is not up.
	bootFor = time.Minute
	// closedFor is how long a node whose kubelet is up may be kept closed until it is its turn.
	closedFor = 10 * time.Second
	// reach is how many pods can be told in good time. Nodes whose turn is later are not kept closed: in such a crowd waiting
	// would cost more than a pod in the wrong place.
	reach = 500
	// allTurns is how long the turns of all nodes that wait should take together; turnTakes is what one of them takes, besides
	// tryTakes for each pod that kube-scheduler tries. If nodes are too many, several share a turn.
	allTurns  = 3 * time.Second
	turnTakes = 200 * time.Millisecond
	tryTakes  = 5 * time.Millisecond
	// stillFor is how long no sign of kube-scheduler must have been seen for it to be done; rushFor is how long it may be at it
	// before that is taken for its usual state, and how long the first in line waits for that at most.
	stillFor = 100 * time.Millisecond
	rushFor  = 2 * time.Second
)

// gate is a node that is closed and would be opened by its registration. Pods are told of it before.
type gate struct {
	node  *cluster.Node
	claim *cluster.Claim
	// told and untold are its pods that have to know, lowest and highest the priorities of these.
	told, untold    int
	lowest, highest int32
}

// gates are the nodes that only registration keeps closed, or will as soon as their kubelets are up.
func (p *Plan) gates(s *cluster.Snapshot) map[string]*gate {
	out := make(map[string]*gate)
	for _, c := range p.Commands {
		r, ok := c.(command.Register)
		if n := s.Node(r.Node); ok && n.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute) {
			out[r.Node] = &gate{node: n, claim: s.Claim(r.Claim)}
		}
	}
	return out
}

// count notes a pod that has to know of its node.
func (g *guide) count(pod *cluster.Pod, node string, told bool) {
	at := g.gates[node]
	if at == nil {
		return
	}
	if at.told+at.untold == 0 {
		at.lowest, at.highest = pod.Class.Priority, pod.Class.Priority
	}
	at.lowest, at.highest = min(at.lowest, pod.Class.Priority), max(at.highest, pod.Class.Priority)
	_, failing := g.s.Retry[command.Nominate{UID: pod.UID}.Key()]
	switch {
	case told:
		at.told++
	case !failing: // whoever can't be told must not keep the others waiting
		at.untold++
	}
}

// takeTurns lets the nodes open one after the other, each when its pods, and no others, have been told.
//
// A node that opens makes kube-scheduler try every pod that waits. Those that it can't place lose the node that was named
// for them, and whoever loses that before the node opens is put anywhere. So nobody is told of a node before its turn, and a
// turn begins when kube-scheduler has come to rest. That takes a fraction of a second for each; nobody waits for ever.
func (p *Plan) takeTurns(g *guide) {
	closed, line, opening := g.lineUp(p)
	turn := line[:turnSize(line)]
	restless := g.restless(p) && !g.waitedEnough(line)
	now := make(map[string]bool)
	untold := 0
	for _, at := range turn {
		now[at.node.Name] = !restless && !opening
		untold += at.untold
	}
	for i, at := range line {
		closed[at.node.Name] = restless || opening || untold > 0 || i >= len(turn)
	}
	g.steps = slices.DeleteFunc(g.steps, func(st guideStep) bool {
		if _, tells := st.command.(command.Nominate); !tells || st.node == "" || st.moves {
			return false
		}
		if _, waits := closed[st.node]; waits || len(line) > 0 || opening {
			return !now[st.node]
		}
		return restless
	})
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		r, ok := c.(command.Register)
		return ok && closed[r.Node]
	})
}

// turnSize is how many of the nodes that wait open together. It is one; but in a crowd that would take too long, and from pods
// that are more important than others kube-scheduler does not keep the others' room: they must find their own node open.
func turnSize(line []*gate) int {
	pods := 0
	for _, at := range line {
		if at.lowest != line[0].lowest || at.highest != line[0].lowest {
			return len(line)
		}
		pods += at.told + at.untold
	}
	turns := max(1, int(allTurns/(turnTakes+time.Duration(pods)*tryTakes/2))) // each leaves fewer to try
	return (len(line) + turns - 1) / turns
}

// lineUp says which nodes stay closed because their kubelets are not up, and in which order those whose are wait for their
// turn. opening says that the one before is being opened right now.
func (g *guide) lineUp(p *Plan) (closed map[string]bool, line []*gate, opening bool) {
	closed = make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(g.gates)) {
		at := g.gates[name]
		if at.told+at.untold == 0 { // most, where pods are alike
			continue
		}
		until := g.opensBy(at)
		switch {
		case g.s.Busy[command.Register{Claim: at.claim.Name}.Key()]:
			opening = true
		case !g.s.Now.Before(until), until.After(g.s.Now.Add(2 * bootFor)): // clocks that differ must not keep it closed
		case up(at):
			line = append(line, at)
			p.WakeAt = cluster.Earlier(p.WakeAt, until)
		default:
			closed[name] = true
			p.WakeAt = cluster.Earlier(p.WakeAt, until)
		}
	}
	slices.SortFunc(line, func(a, b *gate) int {
		return cmp.Or(a.node.Created.Compare(b.node.Created), strings.Compare(a.node.Name, b.node.Name))
	})
	pods := 0
	for i, at := range line {
		if pods += at.told + at.untold; pods > reach && i > 0 {
			return closed, nil, opening // who comes later would open first and keep kube-scheduler busy: nobody waits
		}
	}
	return closed, line, opening
}

// opensBy is when a node opens at the latest: long before it would be given up for not having registered.
func (g *guide) opensBy(at *gate) time.Time {
	n := at.node
	if len(at.claim.StartupTaints) > 0 {
		return time.Time{} // it is not registration that opens the node
	}
	until := n.Created.Add(bootFor)
	switch {
	case n.Ready:
		until = g.upSince(n).Add(closedFor)
	case g.binding || g.needsOpening(at):
		return time.Time{} // pods are bound before the kubelet is up, or it needs the registration to come up
	}
	patience := g.life.For(g.s.Pool(at.claim.Pool)).Registration
	if deadline := at.claim.Condition(cluster.Launched).Since.Add(patience / 2); deadline.Before(until) {
		until = deadline
	}
	return until
}

// upSince is when the node became ready, as we saw it.
func (g *guide) upSince(n *cluster.Node) time.Time {
	if n.ReadySince.After(n.Created) {
		return n.ReadySince
	}
	return n.Created
}

// waitedEnough reports whether the first in line has waited for kube-scheduler to rest for as long as that is worth.
func (g *guide) waitedEnough(line []*gate) bool {
	return len(line) > 0 && !g.s.Now.Before(g.upSince(line[0].node).Add(rushFor))
}

// needsOpening reports whether some daemon that helps a kubelet up waits for the registration: it may run on nodes that are
// not ready, but not on one that is not registered.
func (g *guide) needsOpening(at *gate) bool {
	labels := cluster.Lasting(at.node.Labels.Merge(at.claim.Labels))
	taints := append(slices.Clone(at.claim.Taints), cluster.Taint{Key: notReady, Effect: cluster.NoSchedule})
	unregistered := []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}}
	return slices.ContainsFunc(g.s.Daemons, func(d *cluster.Daemon) bool {
		return cluster.Lands(d.Class, labels, taints) && !cluster.Lands(d.Class, at.node.Labels, unregistered)
	})
}

// up reports whether nothing but its registration is missing for pods to come. The last of it is Kubernetes' own: its node
// controllers take off what they put on while the node was starting.
func up(at *gate) bool {
	return at.node.Ready && !slices.ContainsFunc(at.node.Taints, func(t cluster.Taint) bool {
		return t.Effect != cluster.PreferNoSchedule && t.Key != cluster.UnregisteredTaint && !slices.Contains(at.claim.Taints, t)
	})
}

// restless reports whether kube-scheduler is at work: whoever is told a node now may lose it again at once.
func (g *guide) restless(p *Plan) bool {
	still := g.s.Stir.Last.Add(stillFor)
	if !g.s.Now.Before(still) || !g.s.Now.Before(g.s.Stir.Began.Add(rushFor)) {
		return false
	}
	if len(g.steps) > 0 || len(g.gates) > 0 {
		p.WakeAt = cluster.Earlier(p.WakeAt, still)
	}
	return true
}
