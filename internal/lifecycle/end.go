package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// endClaim takes a claim that is being deleted through fence, drain, detachment, termination and release, in this
// order. The finalizer goes only when the cloud says that the instance is gone. Once the cloud has been told to end the
// instance nothing is waited for but that.
func (st *claimStep) endClaim() {
	c, n := st.claim, st.node
	if !c.Finalized {
		return
	}
	// A claim may have got an instance after we were told that there was none, if another replica was at it.
	gone := c.InstanceGone && (c.ProviderID == "" || st.s.InstancesGone[c.ProviderID])
	if n != nil {
		st.setDeadline()
		if !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
			st.emit(command.Fence{Claim: c.Name, Node: n.Name, Reason: command.Requested})
			fenceDuplicates(st.s, n, &st.Step)
			return
		}
		fenceDuplicates(st.s, n, &st.Step)
		switch {
		case gone, c.Is(cluster.InstanceTerminating):
		case isInstanceLost(st.s, c, n):
			(&drainer{s: st.s, node: n, step: &st.Step}).deleteRemaining()
		case !st.isDrained():
			return
		case !drainDuplicates(st.s, n, st.endBy(), &st.Step):
			return
		}
	}
	if st.s.InFlight[command.LaunchInstance{Claim: c.Name}.Key()] {
		return // a launch under way would leak if the claim went first
	}
	if !gone && !isLaunchRefused(c) {
		st.emit(st.terminateCommand())
		return
	}
	nodeName, nodeUID := "", ""
	if n != nil {
		nodeName, nodeUID = n.Name, n.UID
	}
	if st.endSecondInstance() {
		return
	}
	st.status = command.SetClaim{Claim: c.Name} // there is nobody left to tell
	st.emit(command.Release{Claim: c.Name, UID: c.UID, Node: nodeName, NodeUID: nodeUID, ProviderID: c.ProviderID,
		Reason: command.Reason(c.Condition(cluster.DisruptionReason).Reason)})
}

// secondInstanceWait is how long to wait before looking again for a second instance that goes by its node.
const secondInstanceWait = 10 * time.Second

// endSecondInstance ends what the cloud lists as launched for the claim besides the instance that the claim names, and
// reports whether there is such a one: if an instance dies while two replicas launch it, the claim may name the dead
// one and another runs. Once the claim is gone it would be nobody's. One that has a node of ours goes by that node,
// which is drained (see Orphans).
func (st *claimStep) endSecondInstance() bool {
	s, c := st.s, st.claim
	if s.Inventory == nil || c.ProviderID == "" || c.UID == "" {
		return false
	}
	there := false
	for i := range s.Inventory.Instances {
		x := &s.Inventory.Instances[i]
		if x.ClaimUID != c.UID || s.InstancesGone[x.ProviderID] ||
			slices.ContainsFunc(s.Claims, func(o *cluster.Claim) bool { return o.ProviderID == x.ProviderID }) {
			continue
		}
		there = true
		if slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool {
			return n.ProviderID == x.ProviderID && n.Ours && n.Finalized
		}) {
			st.wake(s.Now.Add(secondInstanceWait))
			continue
		}
		st.emit(command.Terminate{Claim: c.Name, UID: c.UID, ProviderID: x.ProviderID})
	}
	return there
}

// terminateCommand is the command that ends the claim's instance. What makes us think that nobody is on the node any
// more is looked at once more before it is carried out, unless the end does not wait for anybody or has begun.
func (st *claimStep) terminateCommand() command.Terminate {
	c, n := st.claim, st.node
	out := command.Terminate{Claim: c.Name, UID: c.UID, ProviderID: c.ProviderID}
	by, limited := c.EndsBy()
	look := !c.Is(cluster.InstanceTerminating) && !isInstanceLost(st.s, c, n) && !(limited && !st.s.Now.Before(by))
	if n == nil {
		if look {
			out.Missing = st.unknownNode()
		}
		return out
	}
	out.Node, out.Drained = n.Name, look
	if look {
		out.StayingPods, out.DuplicateNodes = podsAndDuplicates(st.s, n)
	}
	return out
}

// endBy is when the claim's end must be over; zero for when the pods like.
func (st *claimStep) endBy() time.Time {
	by, _ := st.claim.EndsBy()
	return by
}

// unknownNode is the claim's node if we don't know of it; empty if the claim has none, or if we know it as the node of
// another claim that says it has the same instance.
func (st *claimStep) unknownNode() string {
	if n := st.s.Node(st.claim.NodeName); n != nil && n.ProviderID == st.claim.ProviderID {
		return ""
	}
	return st.claim.NodeName
}

// ShouldTerminate reports whether an instance of a claim that is being deleted is to be ended now.
func ShouldTerminate(s *cluster.Snapshot, c *cluster.Claim, providerID string) bool {
	step := &claimStep{claimsPass: &claimsPass{s: s}, claim: c, node: s.NodeOf(c.Name)}
	step.endClaim()
	return slices.ContainsFunc(step.Commands, func(c command.Command) bool {
		end, ok := c.(command.Terminate)
		return ok && end.ProviderID == providerID
	})
}

// isLaunchRefused reports whether the cloud has said that it won't run an instance for the claim. Then there is none,
// and the cloud need not be asked again; many claims may be refused at once.
func isLaunchRefused(c *cluster.Claim) bool {
	cond := c.Condition(cluster.Launched)
	return c.ProviderID == "" && cond.Status == cluster.False &&
		(cond.Reason == string(command.InsufficientCapacity) || cond.Reason == string(command.ClassNotReady))
}

// setDeadline writes down when the claim must be gone, for everybody to see. One that is there already stands.
func (st *claimStep) setDeadline() {
	if at, has := st.claim.EndsBy(); has && !at.Equal(st.claim.Deadline) {
		st.status.Deadline = at
	}
}

// leastDrain is how long a node that runs is kept at least once it is to go, even if nobody seems to be there.
const leastDrain = 5 * time.Second

// The reasons of the conditions that tell how an end goes on.
const (
	draining  = "Draining"
	detaching = "AwaitingVolumeDetachment"
	timeIsUp  = "TerminationGracePeriodElapsed"
)

// isDrained gets the pods off the node and waits for their volumes; it reports whether nothing is left to wait for.
// What takes long is told on the claim; what went quickly is written when the instance is terminated.
func (st *claimStep) isDrained() bool {
	d := drainer{s: st.s, node: st.node, step: &st.Step, claim: st.claim}
	d.deadline, _ = st.claim.EndsBy()
	slow := !st.s.Now.Before(st.claim.Deleting.Add(tellAfter))
	pods, volumes := d.evictAndCount()
	switch {
	case d.isOver() && pods > 0:
		st.setCondition(cluster.Drained, cluster.False, timeIsUp, reason.Of(reason.TimeUpForPods))
	case pods > 0 && slow:
		st.setCondition(cluster.Drained, cluster.Unknown, draining, reason.Of(reason.PodsLeaving))
	}
	switch {
	case pods > 0:
	case d.isOver() && len(volumes) > 0:
		st.setCondition(cluster.VolumesDetached, cluster.False, timeIsUp, reason.Of(reason.TimeUpForVolumes))
	case len(volumes) > 0 && slow:
		st.setCondition(cluster.Drained, cluster.True, cluster.Drained, reason.Text{})
		st.setCondition(cluster.VolumesDetached, cluster.Unknown, detaching, reason.Of(reason.VolumesAttached))
	}
	if d.isOver() {
		return true
	}
	if pods+len(volumes) == 0 {
		// kube-scheduler may have bound a pod before it saw the fence.
		settled := st.claim.Deleting.Add(leastDrain)
		if !st.node.Ready || !st.s.Now.Before(settled) {
			return true
		}
		st.wake(settled)
		return false
	}
	if !slow {
		st.wake(st.claim.Deleting.Add(tellAfter))
	}
	return false
}

// evictAndCount asks the pods to leave and counts those that have not; when they have, it lists the volumes that are
// still attached.
func (d *drainer) evictAndCount() (pods int, volumes []string) {
	if pods = d.drain(); pods > 0 {
		return pods, nil
	}
	volumes = d.attached()
	if len(volumes) > 0 && !d.isOver() {
		d.step.wake(d.deadline)
		d.step.Notes = append(d.step.Notes, d.node.Note(detaching, reason.Of(reason.VolumesAwaited,
			strings.Join(volumes, ", "))))
	}
	return 0, volumes
}
