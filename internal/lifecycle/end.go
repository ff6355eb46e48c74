package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// end takes a claim that is being deleted through fence, drain, detachment, termination and release, in this order. The
// finalizer goes only when the cloud says that the instance is gone. Once the cloud has been told to end the instance
// nothing is waited for but that.
func (t *turn) end() {
	c, n := t.c, t.n
	if !c.Finalized {
		return
	}
	// A claim may have got an instance after we were told that there was none, if another replica was at it.
	gone := c.InstanceGone && (c.ProviderID == "" || t.s.Gone[c.ProviderID])
	if n != nil {
		t.setDeadline()
		if !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
			t.do(command.Fence{Claim: c.Name, Node: n.Name, Reason: command.Requested})
			fenceTwins(t.s, n, &t.Step)
			return
		}
		fenceTwins(t.s, n, &t.Step)
		switch {
		case gone, c.Is(cluster.InstanceTerminating):
		case lost(t.s, c, n):
			(&parting{s: t.s, n: n, step: &t.Step}).dismiss()
		case !t.empty():
			return
		case !drainTwins(t.s, n, t.until(), &t.Step):
			return
		}
	}
	if t.s.Busy[command.LaunchInstance{Claim: c.Name}.Key()] {
		return // a launch under way would leak if the claim went first
	}
	if !gone && !refused(c) {
		t.do(t.terminate())
		return
	}
	nodeName, nodeUID := "", ""
	if n != nil {
		nodeName, nodeUID = n.Name, n.UID
	}
	if t.endSecond() {
		return
	}
	t.tell = command.SetClaim{Claim: c.Name} // there is nobody left to tell
	t.do(command.Release{Claim: c.Name, UID: c.UID, Node: nodeName, NodeUID: nodeUID, ProviderID: c.ProviderID,
		Reason: command.Reason(c.Condition(cluster.DisruptionReason).Reason)})
}

// secondAgain is how long to wait before looking again for a second instance that goes by its node.
const secondAgain = 10 * time.Second

// endSecond ends what the cloud lists as launched for the claim besides the instance that the claim names, and reports whether there is
// such a one: if an instance dies while two replicas launch it, the claim may name the dead one and another runs. Once the claim is
// gone it would be nobody's. One that has a node of ours goes by that node, which is drained (see Orphans).
func (t *turn) endSecond() bool {
	s, c := t.s, t.c
	if s.Census == nil || c.ProviderID == "" || c.UID == "" {
		return false
	}
	there := false
	for i := range s.Census.Instances {
		x := &s.Census.Instances[i]
		if x.ClaimUID != c.UID || s.Gone[x.ProviderID] ||
			slices.ContainsFunc(s.Claims, func(o *cluster.Claim) bool { return o.ProviderID == x.ProviderID }) {
			continue
		}
		there = true
		if slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool { return n.ProviderID == x.ProviderID && n.Ours && n.Finalized }) {
			t.wake(s.Now.Add(secondAgain))
			continue
		}
		t.do(command.Terminate{Claim: c.Name, UID: c.UID, ProviderID: x.ProviderID})
	}
	return there
}

// terminate is the command that ends the claim's instance. What makes us think that nobody is on the node any more is looked at
// once more before it is carried out, unless the end does not wait for anybody or has begun.
func (t *turn) terminate() command.Terminate {
	c, n := t.c, t.n
	out := command.Terminate{Claim: c.Name, UID: c.UID, ProviderID: c.ProviderID}
	by, limited := c.End()
	look := !c.Is(cluster.InstanceTerminating) && !lost(t.s, c, n) && !(limited && !t.s.Now.Before(by))
	if n == nil {
		if look {
			out.Missing = t.unknownNode()
		}
		return out
	}
	out.Node, out.Drained = n.Name, look
	if look {
		out.Stays, out.Twins = staysOf(t.s, n)
	}
	return out
}

// until is when the claim's end must be over; zero for when the pods like.
func (t *turn) until() time.Time {
	by, _ := t.c.End()
	return by
}

// unknownNode is the claim's node if we don't know of it; empty if the claim has none, or if we know it as the node of another claim
// that says it has the same instance.
func (t *turn) unknownNode() string {
	if n := t.s.Node(t.c.NodeName); n != nil && n.ProviderID == t.c.ProviderID {
		return ""
	}
	return t.c.NodeName
}

// Ends reports whether an instance of a claim that is being deleted is to be ended now.
func Ends(s *cluster.Snapshot, c *cluster.Claim, providerID string) bool {
	t := &turn{walk: &walk{s: s}, c: c, n: s.NodeOf(c.Name)}
	t.end()
	return slices.ContainsFunc(t.Commands, func(c command.Command) bool {
		end, ok := c.(command.Terminate)
		return ok && end.ProviderID == providerID
	})
}

// refused reports whether the cloud has said that it won't run an instance for the claim. Then there is none, and the cloud
// need not be asked again; many claims may be refused at once.
func refused(c *cluster.Claim) bool {
	cond := c.Condition(cluster.Launched)
	return c.ProviderID == "" && cond.Status == cluster.False &&
		(cond.Reason == string(command.InsufficientCapacity) || cond.Reason == string(command.ClassNotReady))
}

// setDeadline writes down when the claim must be gone, for everybody to see. One that is there already stands.
func (t *turn) setDeadline() {
	if at, has := t.c.End(); has && !at.Equal(t.c.Deadline) {
		t.tell.Deadline = at
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

// empty gets the pods off the node and waits for their volumes; it reports whether nothing is left to wait for. What takes
// long is told on the claim; what went quickly is written when the instance is terminated.
func (t *turn) empty() bool {
	p := parting{s: t.s, n: t.n, step: &t.Step, claim: t.c}
	p.by, _ = t.c.End()
	slow := !t.s.Now.Before(t.c.Deleting.Add(tellAfter))
	pods, volumes := p.empty()
	switch {
	case p.over() && pods > 0:
		t.say(cluster.Drained, cluster.False, timeIsUp, "the node's time was up before all its pods had left")
	case pods > 0 && slow:
		t.say(cluster.Drained, cluster.Unknown, draining, "pods are leaving the node")
	}
	switch {
	case pods > 0:
	case p.over() && len(volumes) > 0:
		t.say(cluster.VolumesDetached, cluster.False, timeIsUp, "the node's time was up before its volumes were detached")
	case len(volumes) > 0 && slow:
		t.say(cluster.Drained, cluster.True, cluster.Drained, "")
		t.say(cluster.VolumesDetached, cluster.Unknown, detaching, "volumes of pods that have left are still attached")
	}
	if p.over() {
		return true
	}
	if pods+len(volumes) == 0 {
		// kube-scheduler may have bound a pod before it saw the fence.
		settled := t.c.Deleting.Add(leastDrain)
		if !t.n.Ready || !t.s.Now.Before(settled) {
			return true
		}
		t.wake(settled)
		return false
	}
	if !slow {
		t.wake(t.c.Deleting.Add(tellAfter))
	}
	return false
}

// empty asks the pods to leave and counts those that have not; when they have, it lists the volumes that are still
// attached.
func (p *parting) empty() (pods int, volumes []string) {
	if pods = p.drain(); pods > 0 {
		return pods, nil
	}
	volumes = p.attached()
	if len(volumes) > 0 && !p.over() {
		p.step.wake(p.by)
		p.step.Notes = append(p.step.Notes, p.n.Note(detaching, fmt.Sprintf("Waiting for volumes to be detached: %s", strings.Join(volumes, ", "))))
	}
	return 0, volumes
}
