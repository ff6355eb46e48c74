package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/resource"
)

const (
	// podEventEvery is how long after the last pod event its time is written to the claim, if no other comes before; it
	// is written after podEventAtLast in any case.
	podEventEvery  = 30 * time.Second
	podEventAtLast = 2 * time.Minute
	// tellAfter is how long a step may take before the claim says what it is waiting for: most take less, and a write
	// for each would only be in the way.
	tellAfter = 2 * time.Second
	// tellOpeningAfter is the same for the time until a node that has joined is open. In a rush Kubernetes itself takes
	// seconds to take its taint off a node that is ready, and a write for each node then comes when the API server is
	// busiest, and in the way of the one that says that the node is open.
	tellOpeningAfter = 10 * time.Second
	// expectedPercent is how much of what the cloud promised a node must show, in percent.
	expectedPercent = 90
)

// register joins the node to its claim as soon as it is there.
func (st *claimStep) register() {
	timeout := st.timeouts().Registration
	deadline := st.claim.Condition(cluster.Launched).Since.Add(timeout)
	if !st.s.Now.Before(deadline) {
		st.deleteClaim(command.RegistrationTimeout, reason.Of(reason.NotRegistered, timeout))
		return
	}
	st.wake(deadline)
	if st.node == nil {
		return
	}
	if n := st.nodesOf(st.claim.ProviderID); n > 1 {
		text := reason.Of(reason.SeveralNodes, n, st.claim.ProviderID)
		st.setCondition(cluster.Registered, cluster.Unknown, "MultipleNodesFound", text)
		st.warn(st.claim.Note("MultipleNodesFound", text))
		return
	}
	registered, _ := st.node.Labels.Get(cluster.RegisteredLabel)
	st.emit(command.Register{Claim: st.claim.Name, Node: st.node.Name,
		Untainted: registered != "true" && !st.node.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute),
		KeepFor:   st.keptFor()})
}

// keptFor is the move for which the node has to be kept, if there is one: it takes the place of nodes that go to save
// money, and none of them has gone yet. If kube-scheduler could use it before, other pods would come to it, the move
// would have been for nothing, and the node it made would be the next to go.
func (st *claimStep) keptFor() string {
	if !st.s.IsWaitingReplacement(st.claim) {
		return ""
	}
	for _, m := range st.s.MoveClaims(st.claim.Replaces) {
		if why := m.Condition(cluster.DisruptionReason).Reason; why != "" &&
			why != string(command.Underutilized) || st.s.InFlight[command.DeleteClaim{Claim: m.Name}.Key()] {
			return ""
		}
	}
	return st.claim.Replaces
}

// openWhenDue opens a node that was kept for a move when the move's nodes go, or nothing will come of it.
func (st *claimStep) openWhenDue() {
	if st.node.KeptFor != "" && st.keptFor() == "" {
		st.emit(command.Open{Claim: st.claim.Name, Node: st.node.Name})
	}
}

// nodesOf counts the nodes that carry the provider id.
func (w *claimsPass) nodesOf(providerID string) int {
	if w.nodesByProvider == nil {
		w.nodesByProvider = make(map[string]int, len(w.s.Nodes))
		for _, n := range w.s.Nodes {
			w.nodesByProvider[n.ProviderID]++
		}
	}
	return w.nodesByProvider[providerID]
}

// maintain looks after a node that has joined: it is opened for its pods, and its claim tells what becomes of it.
func (st *claimStep) maintain() {
	st.savePodEvent()
	st.openWhenDue()
	open := st.claim.Is(cluster.Initialized)
	if !open {
		if why := notReadyReason(st.s, st.claim, st.node); why.Reason != "" {
			st.waitForInitialization(why)
			return
		}
		st.emit(command.Initialize{Claim: st.claim.Name, Node: st.node.Name})
	}
	if st.node.Ready {
		st.checkCapacity(open)
	}
}

// waitForInitialization tells what holds the node up once that takes long, and gives it up when it takes too long.
func (st *claimStep) waitForInitialization(why command.Condition) {
	since := st.claim.Condition(cluster.Registered).Since
	if timeout := st.timeouts().Initialization; timeout > 0 {
		if deadline := since.Add(timeout); st.s.Now.Before(deadline) {
			st.wake(deadline)
		} else {
			st.deleteClaim(command.InitializationTimeout, reason.Of(reason.NotInitialized, timeout, why.Text))
			return
		}
	}
	if render.Says(st.claim.Condition(cluster.Initialized), why) {
		return
	}
	if due := since.Add(tellOpeningAfter); st.s.Now.Before(due) {
		st.wake(due)
		return
	}
	st.setCondition(cluster.Initialized, why.Status, why.Reason, why.Text)
}

// checkCapacity says whether the node is what the cloud promised. That it is goes without saying when it is opened:
// initializing writes it.
func (st *claimStep) checkCapacity(open bool) {
	var short []reason.Text
	for dim, promised := range st.claim.Capacity {
		have := st.node.Capacity[dim]
		if st.claim.Requests[dim] <= 0 || promised <= 0 || have*100 >= promised*expectedPercent ||
			st.s.Names.Attaches(dim) {
			continue
		}
		short = append(short, reason.Of(reason.CapacityShort, st.node.Name, st.s.Names.Name(dim),
			resource.Format(dim, have), resource.Format(dim, promised)))
	}
	if len(short) > 0 {
		text := reason.Join(short...)
		st.setCondition(cluster.ConsistentState, cluster.False, "ConsistencyCheckFailed", text)
		st.warn(st.claim.Note("FailedConsistencyCheck", text))
	} else if open && !st.claim.Is(cluster.ConsistentState) {
		st.setCondition(cluster.ConsistentState, cluster.True, cluster.ConsistentState, reason.Text{})
	}
}

// notReadyReason is what stands between the node and its pods; without a reason if nothing does.
func notReadyReason(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) command.Condition {
	not := func(event string, code reason.Code, args ...any) command.Condition {
		return command.Condition{Status: cluster.Unknown, Reason: event, Text: reason.Of(code, args...)}
	}
	if !n.Ready {
		return not("NodeNotReady", reason.NodeNotReady, n.Name)
	}
	for _, taint := range n.Taints {
		if slices.ContainsFunc(c.StartupTaints, func(s cluster.Taint) bool {
			return s.Key == taint.Key && s.Effect == taint.Effect
		}) {
			return not("StartupTaintsExist", reason.StartupTaint, taint, n.Name)
		}
		if isEphemeral(taint) {
			return not("KnownEphemeralTaintsExist", reason.EphemeralTaint, taint, n.Name)
		}
	}
	for _, dim := range c.AwaitedResources {
		if n.Allocatable[dim] <= 0 {
			return not("ResourceNotRegistered", reason.ResourceMissing, n.Name, s.Names.Name(dim))
		}
	}
	return command.Condition{}
}

// isEphemeral taints are put on by Kubernetes while a node starts and go away by themselves.
func isEphemeral(t cluster.Taint) bool {
	switch t.Key {
	case "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
		"node.cloudprovider.kubernetes.io/uninitialized", cluster.UnregisteredTaint:
		return true
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

func (st *claimStep) savePodEvent() {
	// Kubernetes keeps times to the second: within it there is nothing new to write.
	if !st.claim.LastPodEvent.Truncate(time.Second).After(st.claim.SavedPodEvent) {
		return
	}
	// It is written when the node has come to rest, so that a rush costs one write; but if that takes long, meanwhile,
	// too.
	due := st.claim.LastPodEvent.Add(podEventEvery)
	if longest := st.claim.SavedPodEvent.Add(podEventAtLast); !st.claim.SavedPodEvent.IsZero() {
		due = cluster.Earlier(due, longest)
	}
	if st.s.Now.Before(due) {
		st.wake(due)
		return
	}
	st.status.LastPodEvent = st.claim.LastPodEvent
}
