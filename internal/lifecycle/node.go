package lifecycle

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// EndNode finishes a node of ours that is being deleted and has no claim; gone says that the cloud no longer knows its
// instance. What a node says of its machine proves nothing: if the machine is a claim's, only the node is let go.
func EndNode(s *cluster.Snapshot, n *cluster.Node, gone bool) Step {
	if !n.Ours || n.Deleting.IsZero() || !n.Finalized || s.ClaimOf(n.Name) != nil {
		return Step{}
	}
	release := command.Release{Node: n.Name, NodeUID: n.UID}
	if owner := ownerOf(s, n); owner != "" {
		step := stepOf(release)
		step.warn(duplicateNote(n, owner))
		return step
	}
	if gone || n.ProviderID == "" {
		return stepOf(release)
	}
	i, listed := listedInstance(s, n.ProviderID)
	if listed && isDoubtful(s, i) {
		return Step{} // its claim may be about to appear
	}
	end := command.Terminate{Node: n.Name, ProviderID: n.ProviderID}
	if terminateAsked(s, end) || listed && i.Terminating || isVanished(s, n) {
		return stepOf(end)
	}
	if !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
		step := stepOf(command.Fence{Node: n.Name, Reason: command.Requested})
		fenceDuplicates(s, n, &step)
		return step
	}
	var step Step
	fenceDuplicates(s, n, &step)
	d := drainer{s: s, node: n, step: &step}
	if pods, volumes := d.evictAndCount(); pods+len(volumes) == 0 && drainDuplicates(s, n, time.Time{}, &step) {
		end.Drained = true
		end.StayingPods, end.DuplicateNodes = podsAndDuplicates(s, n)
		step.emit(end)
	}
	return step
}

// fenceDuplicates fences the other nodes that say they are the node's machine, before its pods leave: they would go
// there.
func fenceDuplicates(s *cluster.Snapshot, n *cluster.Node, step *Step) {
	for _, duplicate := range s.DuplicateNodes(n) {
		if !duplicate.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
			step.emit(command.Fence{Node: duplicate.Name, Reason: command.Requested})
		}
	}
}

// drainDuplicates drains them, and reports whether nothing is left to wait for. One that is being deleted is drained by
// itself: a pod that is asked to leave twice would use up its budget.
func drainDuplicates(s *cluster.Snapshot, n *cluster.Node, by time.Time, step *Step) bool {
	left := true
	for _, duplicate := range s.DuplicateNodes(n) {
		d := drainer{s: s, node: duplicate, step: step, deadline: by}
		if !duplicate.Deleting.IsZero() && duplicate.Finalized {
			d.step = &Step{}
		}
		switch pods, volumes := d.evictAndCount(); {
		case d.isOver():
		case pods+len(volumes) > 0, !duplicate.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule):
			left = false
		}
	}
	return left
}

// podsAndDuplicates are the pods that we know on a node and its duplicates, and the names of these.
func podsAndDuplicates(s *cluster.Snapshot, n *cluster.Node) (pods, duplicates []string) {
	pods = uidsOn(s, n)
	for _, duplicate := range s.DuplicateNodes(n) {
		pods, duplicates = append(pods, uidsOn(s, duplicate)...), append(duplicates, duplicate.Name)
	}
	return pods, duplicates
}

// terminateAsked reports whether the cloud has been asked to end an instance. A request that has failed does not count:
// it may never have got as far as the cloud.
func terminateAsked(s *cluster.Snapshot, end command.Terminate) bool {
	r, again := s.Retry[end.Key()]
	return again && r.Attempts == 0 || s.InFlight[end.Key()]
}

// uidsOn are the pods that we know on a node.
func uidsOn(s *cluster.Snapshot, n *cluster.Node) []string {
	var out []string
	for _, pod := range s.PodsOn(n.Name) {
		out = append(out, pod.UID)
	}
	return out
}

// ownerOf is the claim whose machine the node says it is although it is not the claim's node; empty if there is none.
// The claim has the machine's id, or the machine was launched for it and the claim has none yet.
func ownerOf(s *cluster.Snapshot, n *cluster.Node) string {
	if n.ProviderID == "" {
		return ""
	}
	i, found := listedInstance(s, n.ProviderID)
	for _, c := range s.Claims {
		if c.ProviderID == n.ProviderID || found && c.ProviderID == "" && c.UID != "" && c.UID == i.ClaimUID {
			return c.Name
		}
	}
	return ""
}

// duplicateNote tells of a node that says it is a claim's machine and is not the claim's node.
func duplicateNote(n *cluster.Node, claim string) cluster.Note {
	return n.Note("MultipleNodesFound", reason.Of(reason.DuplicateNode, n.Name, n.ProviderID, claim, n.Name))
}

// seenSince is since when the node, or its instance, has been there.
func seenSince(s *cluster.Snapshot, n *cluster.Node) time.Time {
	if i, found := listedInstance(s, n.ProviderID); found && i.Created.After(n.Created) {
		return i.Created
	}
	return n.Created
}

// mayFindNode reports whether some claim may be about to find the node: it names it, or its launch is not over.
func mayFindNode(s *cluster.Snapshot, n *cluster.Node) bool {
	for _, c := range s.Claims {
		if c.NodeName == n.Name && (c.ProviderID == "" || c.ProviderID == n.ProviderID) {
			return true
		}
	}
	i, found := listedInstance(s, n.ProviderID)
	return found && !isSecondInstance(s.Claim(i.Claim), i) && isAccountedFor(s, i)
}

// isVanished reports whether the node is one of a machine that is no more: nobody hears from its kubelet, and the cloud
// does not list its instance.
func isVanished(s *cluster.Snapshot, n *cluster.Node) bool {
	return s.Inventory != nil && !n.Ready && n.ProviderID != "" && !s.Inventory.At.Before(n.Created.Add(lagFor)) &&
		!s.Inventory.Has(n.ProviderID)
}
