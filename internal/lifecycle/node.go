package lifecycle

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// EndNode finishes a node of ours that has lost its claim; gone says that the cloud no longer knows its instance.
func EndNode(s *cluster.Snapshot, n *cluster.Node, gone bool) Step {
	if !n.Ours || s.ClaimOf(n.Name) != nil {
		return Step{}
	}
	if n.Deleting.IsZero() {
		return unclaimed(s, n)
	}
	if !n.Finalized {
		return Step{}
	}
	if gone || n.ProviderID == "" {
		return do(command.Release{Node: n.Name, NodeUID: n.UID})
	}
	end := command.Terminate{Node: n.Name, ProviderID: n.ProviderID}
	_, asked := s.Retry[end.Key()]
	if asked || s.Busy[end.Key()] || vanished(s, n) {
		return do(end)
	}
	if !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
		return do(command.Fence{Node: n.Name, Reason: command.Requested})
	}
	var step Step
	p := parting{s: s, n: n, step: &step}
	if pods, volumes := p.empty(); pods+len(volumes) == 0 {
		step.do(end)
	}
	return step
}

// unclaimed deletes a node that nobody claims any more. One that has never been registered is deleted only when its instance
// is gone: until then it may still find its claim.
func unclaimed(s *cluster.Snapshot, n *cluster.Node) Step {
	if n.ProviderID == "" || !n.Finalized && !vanished(s, n) {
		return Step{}
	}
	if due := seen(s, n).Add(lagFor); s.Now.Before(due) {
		return Step{WakeAt: due}
	}
	if claimed(s, n) {
		return Step{}
	}
	return do(command.DeleteNode{Node: n.Name, UID: n.UID, Reason: command.ClaimMissing,
		Message: fmt.Sprintf("no NodeClaim has its instance %s", n.ProviderID)})
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
	return found && accounted(s, i)
}

// vanished reports whether the node is one of a machine that is no more: nobody hears from its kubelet, and the cloud does
// not list its instance.
func vanished(s *cluster.Snapshot, n *cluster.Node) bool {
	return s.Census != nil && !n.Ready && n.ProviderID != "" && !s.Census.At.Before(n.Created.Add(lagFor)) && !s.Census.Has(n.ProviderID)
}
