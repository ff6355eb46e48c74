package lifecycle

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// stuckAfter is how long past its grace period a terminating pod may hold up a drain.
const stuckAfter = time.Minute

// end takes a claim that is being deleted through fence, drain, termination and release, in this order. Nothing is
// skipped: the finalizer goes only when the cloud says that the instance is gone.
func end(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) Step {
	if !c.Finalized {
		return Step{}
	}
	if n != nil {
		if !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
			return do(command.Fence{Claim: c.Name, Node: n.Name, Reason: command.Requested})
		}
		if !c.InstanceGone {
			if step, drained := drain(s, c, n); !drained {
				return step
			}
		}
	}
	if s.Busy[command.LaunchInstance{Claim: c.Name}.Key()] {
		return Step{} // a launch under way would leak if the claim went first
	}
	nodeName, nodeUID := "", ""
	if n != nil {
		nodeName, nodeUID = n.Name, n.UID
	}
	if !c.InstanceGone {
		return do(command.Terminate{Claim: c.Name, UID: c.UID, Node: nodeName, ProviderID: c.ProviderID})
	}
	return do(command.Release{Claim: c.Name, UID: c.UID, Node: nodeName, NodeUID: nodeUID, Reason: command.Reason(c.Condition(cluster.DisruptionReason).Reason)})
}

// EndNode finishes a node of ours that is being deleted and has lost its claim.
func EndNode(s *cluster.Snapshot, n *cluster.Node, gone bool) Step {
	if n.Deleting.IsZero() || !n.Finalized || !n.Ours || s.ClaimOf(n.Name) != nil {
		return Step{}
	}
	if !gone && n.ProviderID != "" {
		return do(command.Terminate{Node: n.Name, ProviderID: n.ProviderID})
	}
	return do(command.Release{Node: n.Name, NodeUID: n.UID})
}

// drain evicts tier by tier: a tier is begun when the one before is empty. drained is true once nothing is left to wait
// for.
func drain(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) (step Step, drained bool) {
	tiers := make([][]*cluster.Pod, 4)
	for _, p := range s.PodsOn(n.Name) {
		if p.Mirror || p.StaysThroughDrain || stuck(p, s.Now) {
			continue
		}
		tiers[tier(p)] = append(tiers[tier(p)], p)
	}
	if c.HasTerminationGrace && !s.Now.Before(c.Deleting.Add(c.TerminationGrace)) {
		return Step{}, true // the node's time is up, whatever is still on it
	}
	for i, pods := range tiers {
		if len(pods) > 0 {
			step = drainTier(s, c, n, pods)
			return lastCalls(s, c, n, slices.Concat(tiers[i+1:]...), step), false
		}
	}
	return Step{}, true
}

// lastCalls adds the pods of later tiers that must be told to go now, although it is not their turn, and wakes up for
// the next one.
func lastCalls(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, pods []*cluster.Pod, step Step) Step {
	if !c.HasTerminationGrace {
		return step
	}
	step.WakeAt = cluster.Earlier(step.WakeAt, c.Deleting.Add(c.TerminationGrace))
	for _, p := range pods {
		if !p.Deleting.IsZero() {
			continue
		}
		if due := lastCall(c, p); s.Now.Before(due) {
			step.WakeAt = cluster.Earlier(step.WakeAt, due)
			continue
		}
		step.Commands = append(step.Commands, drainTier(s, c, n, []*cluster.Pod{p}).Commands...)
	}
	return step
}

func tier(p *cluster.Pod) int {
	t := 0
	if p.Daemon {
		t++
	}
	if p.Critical {
		t += 2
	}
	return t
}

func stuck(p *cluster.Pod, now time.Time) bool {
	return !p.Deleting.IsZero() && !now.Before(p.Deleting.Add(p.Grace+stuckAfter))
}

func drainTier(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, pods []*cluster.Pod) Step {
	step := Step{}
	for _, p := range pods {
		evict := command.Evict{Pod: p.ID(), UID: p.UID, Namespace: p.Namespace, Name: p.Name, Node: n.Name}
		wake := time.Time{}
		switch {
		case !p.Deleting.IsZero():
			wake = p.Deleting.Add(p.Grace + stuckAfter)
		case c.HasTerminationGrace && !s.Now.Before(lastCall(c, p)):
			evict.Now, evict.Grace = true, max(c.Deleting.Add(c.TerminationGrace).Sub(s.Now), time.Second)
			step.Commands = append(step.Commands, evict)
		case p.DoNotDisrupt:
			if c.HasTerminationGrace {
				wake = lastCall(c, p)
			}
		default:
			step.Commands = append(step.Commands, evict)
			if c.HasTerminationGrace {
				wake = lastCall(c, p)
			}
		}
		step.WakeAt = cluster.Earlier(step.WakeAt, wake)
	}
	return step
}

// lastCall is when a pod must be told to go so that its own grace period ends by the node's deadline.
func lastCall(c *cluster.Claim, p *cluster.Pod) time.Time {
	return c.Deleting.Add(c.TerminationGrace - p.Grace)
}
