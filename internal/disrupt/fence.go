package disrupt

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Fenced reports whether it was we who fenced the node: the reason is written on its claim, or the label that comes
// with our fence is on the node. The reason alone may be missing if two replicas put up and took down the fence at the
// same time.
func Fenced(c *cluster.Claim, n *cluster.Node) bool {
	mark, _ := n.Labels.Get(ExcludeFromBalancers)
	return HasFence(n) && (c.Is(cluster.DisruptionReason) || mark == "karpenter")
}

// ExcludeFromBalancers is the label that a fence puts on a node beside the taint.
const ExcludeFromBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"

// HasFence reports whether the node is fenced, by whomever.
func HasFence(n *cluster.Node) bool { return n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) }

// HasCommandUnderWay reports whether something is being done to the node whose effect the snapshot does not show yet.
func HasCommandUnderWay(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	return len(s.InFlight) > 0 && (s.InFlight[command.Fence{Node: n.Name}.Key()] ||
		s.InFlight[command.Unfence{Node: n.Name}.Key()] ||
		s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()])
}

// IsHalfUnfenced reports whether the fence is down and the reason is still written on the claim, which is in no move:
// whoever took the fence down was cut short, or two replicas have put it up and taken it down at the same time.
func IsHalfUnfenced(c *cluster.Claim, n *cluster.Node) bool {
	return !HasFence(n) && c.Is(cluster.DisruptionReason)
}

// IsEmpty reports whether nothing on the node is a reason to keep it.
func IsEmpty(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if n.DoNotDisrupt || c.DoNotDisrupt {
		return false
	}
	for _, p := range s.PodsOn(n.Name) {
		if p.IsWorkload() || p.DoNotDisrupt {
			return false
		}
	}
	return !s.HasNominatedPod(n.Name) // kube-scheduler has chosen it for a pod that will come
}

// NeverUsed reports whether the node was made to replace others and never got a pod: their move has been given up, and
// a pool that keeps its nodes for ever has not asked for this one.
func NeverUsed(c *cluster.Claim) bool { return c.Replaces != "" && c.LastPodEvent.IsZero() }

// MovesUnderWay are the moves of which some node has not gone yet. What was made to replace it is needed as long.
func MovesUnderWay(s *cluster.Snapshot) map[string]bool {
	out := make(map[string]bool)
	for _, c := range s.Claims {
		if c.Move != "" {
			out[c.Move] = true
		}
	}
	return out
}

// LeavesInterrupted reports whether a claim's node goes because of an interruption, whatever else is going on with it.
func LeavesInterrupted(c *cluster.Claim) bool {
	return c.IsInterrupted() && (c.Interruption.IsUrgent() || MoveReason(c.Move) == command.Interrupted)
}

// NeverOpened reports whether nobody has come to the claim's node, and nobody will because it has not been opened. The
// node says so itself: it is opened before its claim is told that it is registered.
func NeverOpened(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if n == nil {
		return true
	}
	opening := c.Is(cluster.Registered) || s.InFlight[command.Register{Claim: c.Name}.Key()]
	return !opening && n.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute) &&
		!slices.ContainsFunc(s.PodsOn(n.Name), s.NeedsNewPlace)
}

// AnyMoveBeginning reports whether fences are being put up of which it is not known yet in which move they are.
func AnyMoveBeginning(s *cluster.Snapshot) bool {
	for key := range s.InFlight {
		if node, ok := strings.CutPrefix(key, command.Fence{}.Key()); ok {
			if c := s.ClaimOf(node); c != nil && c.Move == "" && c.Deleting.IsZero() {
				return true
			}
		}
	}
	return false
}

// QuarantinedMoves are the moves of nodes that are left alone because the planner has failed on them or on their pods.
func QuarantinedMoves(s *cluster.Snapshot) map[string]bool {
	if !s.Quarantine.HasPodsOrClaims() {
		return nil
	}
	out := make(map[string]bool)
	for _, c := range s.Claims {
		if c.Move != "" && s.IsLeftAlone(c) {
			out[c.Move] = true
		}
	}
	return out
}

// BeingFenced reports whether a drifted node is being fenced and its claim does not show yet for what: it may well be
// for that.
func BeingFenced(s *cluster.Snapshot, c *cluster.Claim) bool {
	n := s.NodeOf(c.Name)
	return c.Move == "" && n != nil && c.Is(cluster.Drifted) && c.Deleting.IsZero() &&
		s.InFlight[command.Fence{Node: n.Name}.Key()]
}
