package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

const (
	// podEventEvery is how long after the last pod event its time is written to the claim, if no other comes before; it is
	// written after podEventAtLast in any case.
	podEventEvery  = 30 * time.Second
	podEventAtLast = 2 * time.Minute
	// tellAfter is how long a step may take before the claim says what it is waiting for: most take less, and a write for
	// each would only be in the way.
	tellAfter = 2 * time.Second
	// tellOpeningAfter is the same for the time until a node that has joined is open. In a rush Kubernetes itself takes seconds to
	// take its taint off a node that is ready, and a write for each node then comes when the API server is busiest, and in the way
	// of the one that says that the node is open.
	tellOpeningAfter = 10 * time.Second
	// soundPart is how much of what the cloud promised a node must show, in percent.
	soundPart = 90
)

// register joins the node to its claim as soon as it is there.
func (t *turn) register() {
	timeout := t.timeouts().Registration
	deadline := t.c.Condition(cluster.Launched).Since.Add(timeout)
	if !t.s.Now.Before(deadline) {
		t.remove(command.RegistrationTimeout, fmt.Sprintf("its node did not register within %s", timeout))
		return
	}
	t.wake(deadline)
	if t.n == nil {
		return
	}
	if n := t.nodesOf(t.c.ProviderID); n > 1 {
		message := fmt.Sprintf("%d nodes say that they are instance %s; delete those that are not", n, t.c.ProviderID)
		t.say(cluster.Registered, cluster.Unknown, "MultipleNodesFound", message)
		t.warn(t.c.Note("MultipleNodesFound", message))
		return
	}
	registered, _ := t.n.Labels.Get(cluster.RegisteredLabel)
	t.do(command.Register{Claim: t.c.Name, Node: t.n.Name,
		Bare:    registered != "true" && !t.n.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute),
		KeepFor: t.keptFor()})
}

// keptFor is the move for which the node has to be kept, if there is one: it takes the place of nodes that go to save money, and none of
// them has gone yet. If kube-scheduler could use it before, other pods would come to it, the move would have been for nothing, and
// the node it made would be the next to go.
func (t *turn) keptFor() string {
	if !t.s.StandsBy(t.c) {
		return ""
	}
	for _, m := range t.s.Members(t.c.Replaces) {
		if why := m.Condition(cluster.DisruptionReason).Reason; why != "" && why != string(command.Underutilized) || t.s.Busy[command.DeleteClaim{Claim: m.Name}.Key()] {
			return ""
		}
	}
	return t.c.Replaces
}

// openWhenDue opens a node that was kept for a move when the move's nodes go, or nothing will come of it.
func (t *turn) openWhenDue() {
	if t.n.KeptFor != "" && t.keptFor() == "" {
		t.do(command.Open{Claim: t.c.Name, Node: t.n.Name})
	}
}

// nodesOf counts the nodes that carry the provider id.
func (w *walk) nodesOf(providerID string) int {
	if w.twins == nil {
		w.twins = make(map[string]int, len(w.s.Nodes))
		for _, n := range w.s.Nodes {
			w.twins[n.ProviderID]++
		}
	}
	return w.twins[providerID]
}

// live looks after a node that has joined: it is opened for its pods, and its claim tells what becomes of it.
func (t *turn) live() {
	t.savePodEvent()
	t.openWhenDue()
	open := t.c.Is(cluster.Initialized)
	if !open {
		if reason, message := hurdle(t.s, t.c, t.n); reason != "" {
			t.waitForOpening(reason, message)
			return
		}
		t.do(command.Initialize{Claim: t.c.Name, Node: t.n.Name})
	}
	if t.n.Ready {
		t.compare(open)
	}
}

// waitForOpening tells what holds the node up once that takes long, and gives it up when it takes too long.
func (t *turn) waitForOpening(reason, message string) {
	since := t.c.Condition(cluster.Registered).Since
	if timeout := t.timeouts().Initialization; timeout > 0 {
		if deadline := since.Add(timeout); t.s.Now.Before(deadline) {
			t.wake(deadline)
		} else {
			t.remove(command.InitializationTimeout, fmt.Sprintf("its node was not ready for pods within %s: %s", timeout, message))
			return
		}
	}
	told := t.c.Condition(cluster.Initialized)
	if told.Reason == reason && told.Message == message {
		return
	}
	if due := since.Add(tellOpeningAfter); t.s.Now.Before(due) {
		t.wake(due)
		return
	}
	t.say(cluster.Initialized, cluster.Unknown, reason, message)
}

// compare says whether the node is what the cloud promised. That it is goes without saying when it is opened: initializing
// writes it.
func (t *turn) compare(open bool) {
	var short []string
	for dim, promised := range t.c.Capacity {
		have := t.n.Capacity[dim]
		if t.c.Requests[dim] <= 0 || promised <= 0 || have*100 >= promised*soundPart || t.s.Names.Attaches(dim) {
			continue
		}
		short = append(short, fmt.Sprintf("node %s has %s %s, expected %s", t.n.Name, t.s.Names.Name(dim), resource.Format(dim, have), resource.Format(dim, promised)))
	}
	if len(short) > 0 {
		message := strings.Join(short, "; ")
		t.say(cluster.ConsistentState, cluster.False, "ConsistencyCheckFailed", message)
		t.warn(t.c.Note("FailedConsistencyCheck", message))
	} else if open && !t.c.Is(cluster.ConsistentState) {
		t.say(cluster.ConsistentState, cluster.True, cluster.ConsistentState, "")
	}
}

// hurdle is what stands between the node and its pods; empty if nothing does.
func hurdle(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) (reason, message string) {
	if !n.Ready {
		return "NodeNotReady", fmt.Sprintf("node %s is not Ready", n.Name)
	}
	for _, taint := range n.Taints {
		if slices.ContainsFunc(c.StartupTaints, func(s cluster.Taint) bool { return s.Key == taint.Key && s.Effect == taint.Effect }) {
			return "StartupTaintsExist", fmt.Sprintf("startup taint %s is still on node %s", taint, n.Name)
		}
		if ephemeral(taint) {
			return "KnownEphemeralTaintsExist", fmt.Sprintf("taint %s is still on node %s", taint, n.Name)
		}
	}
	for _, dim := range c.Wants {
		if n.Allocatable[dim] <= 0 {
			return "ResourceNotRegistered", fmt.Sprintf("node %s does not show resource %s yet", n.Name, s.Names.Name(dim))
		}
	}
	return "", ""
}

// ephemeral taints are put on by Kubernetes while a node starts and go away by themselves.
func ephemeral(t cluster.Taint) bool {
	switch t.Key {
	case "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized", cluster.UnregisteredTaint:
		return true
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

func (t *turn) savePodEvent() {
	// Kubernetes keeps times to the second: within it there is nothing new to write.
	if !t.c.LastPodEvent.Truncate(time.Second).After(t.c.SavedPodEvent) {
		return
	}
	// It is written when the node has come to rest, so that a rush costs one write; but if that takes long, meanwhile, too.
	due := t.c.LastPodEvent.Add(podEventEvery)
	if longest := t.c.SavedPodEvent.Add(podEventAtLast); !t.c.SavedPodEvent.IsZero() {
		due = cluster.Earlier(due, longest)
	}
	if t.s.Now.Before(due) {
		t.wake(due)
		return
	}
	t.tell.LastPodEvent = t.c.LastPodEvent
}
