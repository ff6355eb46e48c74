package lifecycle

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// EndNode finishes a node of ours that is being deleted and has no claim; gone says that the cloud no longer knows its
// instance. What a node says of its machine proves nothing: if the machine is a claim's, only the node is let go.
func EndNode(s *cluster.Snapshot, n *cluster.Node, gone bool) Step {
	if !n.Ours || n.Deleting.IsZero() || !n.Finalized || s.ClaimOf(n.Name) != nil {
		return Step{}
	}
	release := command.Release{Node: n.Name, NodeUID: n.UID}
	if owner := ownerOf(s, n); owner != "" {
		step := do(release)
		step.warn(impostor(n, owner))
		return step
	}
	if gone || n.ProviderID == "" {
		return do(release)
	}
	i, listed := instance(s, n.ProviderID)
	if listed && doubtful(s, i) {
		return Step{} // its claim may be about to appear
	}
	end := command.Terminate{Node: n.Name, ProviderID: n.ProviderID}
	if endAsked(s, end) || listed && i.Terminating || vanished(s, n) {
		return do(end)
	}
	if !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
		step := do(command.Fence{Node: n.Name, Reason: command.Requested})
		fenceTwins(s, n, &step)
		return step
	}
	var step Step
	fenceTwins(s, n, &step)
	p := parting{s: s, n: n, step: &step}
	if pods, volumes := p.empty(); pods+len(volumes) == 0 && drainTwins(s, n, time.Time{}, &step) {
		end.Drained = true
		end.Stays, end.Twins = staysOf(s, n)
		step.do(end)
	}
	return step
}

// fenceTwins fences the other nodes that say they are the node's machine, before its pods leave: they would go there.
func fenceTwins(s *cluster.Snapshot, n *cluster.Node, step *Step) {
	for _, twin := range s.Twins(n) {
		if !twin.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
			step.do(command.Fence{Node: twin.Name, Reason: command.Requested})
		}
	}
}

// drainTwins drains them, and reports whether nothing is left to wait for. One that is being deleted is drained by
// itself: a pod that is asked to leave twice would use up its budget.
func drainTwins(s *cluster.Snapshot, n *cluster.Node, by time.Time, step *Step) bool {
	left := true
	for _, twin := range s.Twins(n) {
		p := parting{s: s, n: twin, step: step, by: by}
		if !twin.Deleting.IsZero() && twin.Finalized {
			p.step = &Step{}
		}
		switch pods, volumes := p.empty(); {
		case p.over():
		case pods+len(volumes) > 0, !twin.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule):
			left = false
		}
	}
	return left
}

// staysOf are the pods that we know on a node and its twins, and the names of these.
func staysOf(s *cluster.Snapshot, n *cluster.Node) (pods, twins []string) {
	pods = uidsOn(s, n)
	for _, twin := range s.Twins(n) {
		pods, twins = append(pods, uidsOn(s, twin)...), append(twins, twin.Name)
	}
	return pods, twins
}

// endAsked reports whether the cloud has been asked to end an instance. A request that has failed does not count: it may never
// have got as far as the cloud.
func endAsked(s *cluster.Snapshot, end command.Terminate) bool {
	r, again := s.Retry[end.Key()]
	return again && r.Attempts == 0 || s.Busy[end.Key()]
}

// uidsOn are the pods that we know on a node.
func uidsOn(s *cluster.Snapshot, n *cluster.Node) []string {
	var out []string
	for _, pod := range s.PodsOn(n.Name) {
		out = append(out, pod.UID)
	}
	return out
}

// ownerOf is the claim whose machine the node says it is although it is not the claim's node; empty if there is none. The
// claim has the machine's id, or the machine was launched for it and the claim has none yet.
func ownerOf(s *cluster.Snapshot, n *cluster.Node) string {
	if n.ProviderID == "" {
		return ""
	}
	i, found := instance(s, n.ProviderID)
	for _, c := range s.Claims {
		if c.ProviderID == n.ProviderID || found && c.ProviderID == "" && c.UID != "" && c.UID == i.ClaimUID {
			return c.Name
		}
	}
	return ""
}

// impostor tells of a node that says it is a claim's machine and is not the claim's node.
func impostor(n *cluster.Node, claim string) cluster.Note {
	return n.Note("MultipleNodesFound", fmt.Sprintf("Node %s says that it is instance %s, which belongs to NodeClaim %s with another node; "+
		"deleting node %s does not end the instance", n.Name, n.ProviderID, claim, n.Name))
}

// seen is since when the node, or its instance, has been there.
func seen(s *cluster.Snapshot, n *cluster.Node) time.Time {
	if i, found := instance(s, n.ProviderID); found && i.Created.After(n.Created) {
		return i.Created
	}
	return n.Created
}

// claimed reports whether some claim may be about to find the node: it names it, or its launch is not over.
func claimed(s *cluster.Snapshot, n *cluster.Node) bool {
	for _, c := range s.Claims {
		if c.NodeName == n.Name && (c.ProviderID == "" || c.ProviderID == n.ProviderID) {
			return true
		}
	}
	i, found := instance(s, n.ProviderID)
	return found && !second(s.Claim(i.Claim), i) && accounted(s, i)
}

// vanished reports whether the node is one of a machine that is no more: nobody hears from its kubelet, and the cloud does
// not list its instance.
func vanished(s *cluster.Snapshot, n *cluster.Node) bool {
	return s.Census != nil && !n.Ready && n.ProviderID != "" && !s.Census.At.Before(n.Created.Add(lagFor)) && !s.Census.Has(n.ProviderID)
}
