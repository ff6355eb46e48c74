package sim

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// agentTaint is what an agent puts on nodes.
const agentTaint = "agent.example/quarantine"

// seized is the label's value that an agent writes on nodes.
const seized = "seized"

// nodeAgents are the programs in a cluster that make new nodes useless for some pods, by what they do.
func nodeAgents() []string {
	return []string{"taint NoExecute", "taint NoSchedule", "cordon", "relabel", "shrink", "evict", "delete"}
}

// agent is a program in the cluster that means well and makes every new node useless for some pods. It strikes each
// node once, a moment after the node is as far as the agent waits for; what it has done it keeps up.
type agent struct {
	sim  *Sim
	kind string
	// from says how far a node must be: joined, ready or initialized; delay is how long the agent takes then.
	from  string
	delay time.Duration
	beat  time.Duration
	// tidy agents take back what they did when they stop; the others leave it.
	tidy    bool
	stopped bool
	// passes is after how long the agent takes back what it did to a node, and leaves it alone; zero means not before
	// it stops.
	passes time.Duration
	left   map[types.UID]bool
	due    map[types.UID]time.Time
	struck map[types.UID]bool
	// victims are the owners whose pods an evicting agent ends.
	victims map[types.UID]bool
}

// shrunkCPU is what a shrinking agent leaves of a node.
func shrunkCPU() apiresource.Quantity { return apiresource.MustParse("50m") }

// startAgent lets an agent loose on all nodes of the cluster.
func (s *Sim) startAgent(kind string) *agent {
	c := s.clock
	a := &agent{
		sim: s, kind: kind, from: pick(c, []string{"joined", "ready", "initialized"}), tidy: c.chance(0.5),
		delay: pick(c, []time.Duration{0, c.between(0, 8*time.Second), c.between(8*time.Second, 70*time.Second)}),
		beat:  c.between(200*time.Millisecond, 2*time.Second),
		due:   make(map[types.UID]time.Time), struck: make(map[types.UID]bool),
		left: make(map[types.UID]bool), victims: make(map[types.UID]bool),
	}
	s.agents = append(s.agents, a)
	s.trace.note("agent: %s, of nodes that have %s, after %s", a.kind, a.from, a.delay)
	s.seen["agent "+kind]++
	a.watch()
	return a
}

// stop ends an agent, and reports what it leaves behind.
func (a *agent) stop() {
	if a.stopped {
		return
	}
	a.stopped = true
	a.sim.trace.note("agent: stops (tidy: %t)", a.tidy)
	if a.tidy {
		for _, n := range list[*corev1.Node](a.sim.store, nodes) {
			if a.struck[n.UID] {
				a.takeBack(n)
			}
		}
	}
}

// stopAgents ends all agents. What those left behind that had stopped before stays: nobody comes to clean up after
// them.
func (s *Sim) stopAgents() {
	for _, a := range s.agents {
		a.tidy = true
		a.stop()
	}
	s.agents = nil
}

// letAgentLoose has an agent in the cluster for a while.
func (s *Sim) letAgentLoose() {
	a := s.startAgent(pick(s.clock, nodeAgents()))
	s.judge.unused.tight = s.judge.unused.tight || a.kind == "shrink"
	if set, ok := s.any(sets).(*appsv1.ReplicaSet); ok {
		a.victims[set.UID] = true
	}
	s.clock.after(s.clock.between(10*time.Second, 2*time.Minute), a.stop)
}

func (a *agent) watch() {
	if a.stopped || a.sim.over() {
		return
	}
	for _, n := range list[*corev1.Node](a.sim.store, nodes) {
		a.see(n)
	}
	a.sim.clock.after(a.beat, a.watch)
}

// see looks at a node.
func (a *agent) see(n *corev1.Node) {
	now := a.sim.clock.now
	if n.DeletionTimestamp != nil || !a.cares(n) {
		return
	}
	if _, waits := a.due[n.UID]; !waits {
		a.due[n.UID] = now.Add(a.delay)
	}
	if !a.struck[n.UID] && !now.Before(a.due[n.UID]) {
		a.struck[n.UID] = true
		a.sim.trace.note("agent: %s %s", a.kind, n.Name)
		a.strike(n)
	}
	switch {
	case !a.struck[n.UID] || a.left[n.UID]:
	case a.passes > 0 && !now.Before(a.due[n.UID].Add(a.passes)):
		a.left[n.UID] = true
		a.takeBack(n)
	default:
		a.keepUp(n)
	}
}

// seeJoining shows a node that joins to agents that wait for nothing: like a webhook they come before everybody else.
func (s *Sim) seeJoining(name string) {
	n, ok := find[*corev1.Node](s.store, nodes, name)
	for _, a := range s.agents {
		if ok && !a.stopped && a.from == "joined" && a.delay == 0 {
			a.see(n)
		}
	}
}

// cares reports whether the node is as far as the agent waits for.
func (a *agent) cares(n *corev1.Node) bool {
	switch a.from {
	case "ready":
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	case "initialized":
		return n.Labels[v1.NodeInitializedLabelKey] == "true"
	}
	return true
}

func (a *agent) strike(n *corev1.Node) {
	s := a.sim.store
	switch a.kind {
	case "taint NoExecute", "taint NoSchedule":
		effect := corev1.TaintEffectNoSchedule
		if a.kind == "taint NoExecute" {
			effect = corev1.TaintEffectNoExecute
		}
		edit(s, nodes, n.Name, n.UID, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: agentTaint, Value: "yes", Effect: effect})
		})
	case "cordon":
		edit(s, nodes, n.Name, n.UID, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	case "relabel":
		a.seize(n)
	case "shrink":
		edit(s, nodes, n.Name, n.UID, func(n *corev1.Node) {
			n.Status.Allocatable = n.Status.Allocatable.DeepCopy()
			n.Status.Allocatable[corev1.ResourceCPU] = shrunkCPU()
		})
	case "delete":
		s.erase(n)
	}
}

// seize writes the agent's label.
func (a *agent) seize(n *corev1.Node) {
	edit(a.sim.store, nodes, n.Name, n.UID, func(n *corev1.Node) { n.Labels[specialLabel] = seized })
}

// keepUp is what goes on as long as the agent runs: pods leave a node with a NoExecute taint, an evicting agent ends
// its victims, and an agent that has written a label writes it again (registration writes a pool's labels over those
// that were there before) and ends the pods that ask for another one.
func (a *agent) keepUp(n *corev1.Node) {
	if a.kind == "relabel" && n.Labels[specialLabel] != seized {
		a.seize(n)
	}
	for _, p := range a.sim.tenantsOn(n.Name) {
		if p.DeletionTimestamp != nil || isDone(p) {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(p)
		switch {
		case a.kind == "taint NoExecute" &&
			!tolerates(p, []corev1.Taint{{Key: agentTaint, Value: "yes", Effect: corev1.TaintEffectNoExecute}}),
			a.kind == "relabel" && p.Spec.NodeSelector[specialLabel] != "" &&
				p.Spec.NodeSelector[specialLabel] != seized,
			a.kind == "evict" && owner != nil && a.victims[owner.UID]:
			a.sim.trace.note("agent: ends %s on %s", p.Name, n.Name)
			a.sim.store.endPod(p, nil)
		}
	}
}

// takeBack is what a tidy agent, or a person, does about a node that was struck.
func (a *agent) takeBack(n *corev1.Node) {
	machine := a.sim.machineOf(n.Name)
	edit(a.sim.store, nodes, n.Name, n.UID, func(n *corev1.Node) {
		switch a.kind {
		case "taint NoExecute", "taint NoSchedule":
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == agentTaint })
		case "cordon":
			n.Spec.Unschedulable = false
		case "relabel":
			delete(n.Labels, specialLabel)
			if claim := a.sim.claimOf(n.Name); claim != nil && claim.Labels[specialLabel] != "" {
				n.Labels[specialLabel] = claim.Labels[specialLabel]
			}
		case "shrink":
			if machine != nil {
				n.Status.Allocatable = machine.instance.Allocatable
			}
		}
	})
}
