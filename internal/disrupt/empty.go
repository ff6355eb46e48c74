// Package disrupt decides which nodes go to save money, within what a pool's budgets allow.
//
// Floor 2: pure.
package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Result is what to do now, and when to look again if nothing happens before.
type Result struct {
	Commands []command.Command
	WakeAt   time.Time
	// Notes are what stands in the way, for people.
	Notes []cluster.Note
}

// Empty removes nodes that carry no workload: a node that has been quiet for its pool's consolidateAfter is fenced, and
// once a later snapshot shows it fenced and still empty its claim is deleted. A fenced node that is needed after all is
// opened again. needed holds the hosts that pending pods are to go to.
//
// A new node that no pod has reached yet is kept for the nomination time even if no pod is to go there at this moment:
// the pod it was made for may be between its old incarnation and its new one.
func Empty(s *cluster.Snapshot, needed map[string]bool, nomination time.Duration) Result {
	var out Result
	for _, p := range s.Pools {
		if p.Static || p.Deleting {
			continue
		}
		emptyPool(s, p, needed, nomination, &out)
	}
	return out
}

func emptyPool(s *cluster.Snapshot, p *cluster.Pool, needed map[string]bool, nomination time.Duration, out *Result) {
	allowed := allowance(s, p, string(command.Empty))
	for _, c := range s.ClaimsOf(p.Name) {
		n := s.NodeOf(c.Name)
		if n == nil || c.Foreign || !c.Deleting.IsZero() || !n.Deleting.IsZero() || !c.Is(cluster.Initialized) || underWay(s, c, n) {
			continue
		}
		idle := IsEmpty(s, c, n) && !needed[n.Name] && !p.ConsolidateAfter.Never
		switch {
		case Fenced(c, n) && (!idle || allowed < 0):
			allowed++
			out.Commands = append(out.Commands, command.Unfence{Claim: c.Name, Node: n.Name})
		case Fenced(c, n):
			out.Commands = append(out.Commands, command.DeleteClaim{
				Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Empty, Message: "the node carries no workload"})
		case !idle && !tainted(n) && c.Is(cluster.DisruptionReason) && c.Condition(cluster.DisruptionReason).Reason == string(command.Empty):
			// The fence is down and the reason is still written on the claim: whoever took it down was cut short.
			out.Commands = append(out.Commands, command.Unfence{Claim: c.Name, Node: n.Name})
		case !idle || tainted(n): // a fence that somebody else put up is theirs to take down
		case s.Now.Before(quietAt(p, c, nomination)):
			out.WakeAt = cluster.Earlier(out.WakeAt, quietAt(p, c, nomination))
		case allowed > 0:
			allowed--
			out.Commands = append(out.Commands, command.Fence{Claim: c.Name, Node: n.Name, Reason: command.Empty})
		}
	}
	for i := range p.Budgets {
		out.WakeAt = cluster.Earlier(out.WakeAt, p.Budgets[i].Changes)
	}
}

// Fenced reports whether it was we who fenced the node: the reason is written on its claim, or the label that comes with our
// fence is on the node. The reason alone may be missing if two replicas put up and took down the fence at the same time.
func Fenced(c *cluster.Claim, n *cluster.Node) bool {
	mark, _ := n.Labels.Get(excludeFromBalancers)
	return tainted(n) && (c.Is(cluster.DisruptionReason) || mark == "karpenter")
}

// excludeFromBalancers is the label that a fence puts on a node beside the taint.
const excludeFromBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"

func tainted(n *cluster.Node) bool { return n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) }

// underWay reports whether something is being done to the node whose effect the snapshot does not show yet.
func underWay(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	return s.Busy[command.Fence{Node: n.Name}.Key()] || s.Busy[command.Unfence{Node: n.Name}.Key()] ||
		s.Busy[command.DeleteClaim{Claim: c.Name}.Key()]
}

// IsEmpty reports whether nothing on the node is a reason to keep it.
func IsEmpty(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if n.DoNotDisrupt || c.DoNotDisrupt {
		return false
	}
	for _, p := range s.PodsOn(n.Name) {
		if p.Workload() || p.DoNotDisrupt {
			return false
		}
	}
	return !s.Awaited(n.Name) // kube-scheduler has chosen it for a pod that will come
}

// quietAt is when the node has been left alone for long enough.
func quietAt(p *cluster.Pool, c *cluster.Claim, nomination time.Duration) time.Time {
	since := c.Condition(cluster.Initialized).Since
	if c.LastPodEvent.IsZero() {
		return since.Add(max(p.ConsolidateAfter.For, nomination))
	}
	if c.LastPodEvent.After(since) {
		since = c.LastPodEvent
	}
	return since.Add(p.ConsolidateAfter.For)
}

// allowance is how many more of the pool's nodes may be disrupted for the reason.
func allowance(s *cluster.Snapshot, p *cluster.Pool, reason string) int {
	allowed, out := Allowance(s, p, reason)
	return allowed - out
}

// Allowance is how many of the pool's nodes may be out at the same time for the reason, the least that an active budget
// allows, and how many are out already, whoever took them.
func Allowance(s *cluster.Snapshot, p *cluster.Pool, reason string) (allowed, out int) {
	total := 0
	for _, c := range s.ClaimsOf(p.Name) {
		if !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
			continue
		}
		total++
		n := s.NodeOf(c.Name)
		if n == nil || !n.Ready || !c.Deleting.IsZero() || !n.Deleting.IsZero() || tainted(n) || underWay(s, c, n) {
			out++
		}
	}
	allowed = total
	for i := range p.Budgets {
		if p.Budgets[i].Covers(reason) {
			allowed = min(allowed, p.Budgets[i].Allows(total))
		}
	}
	return allowed, out
}
