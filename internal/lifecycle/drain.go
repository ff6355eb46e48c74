package lifecycle

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// stuckAfter is how long past its grace period a terminating pod may hold up a drain: a minute. The second is for the
// time of the deletion, which Kubernetes cuts off to seconds, so that the grace period may end by so much later than it
// says. Rather late than early.
const stuckAfter = time.Minute + time.Second

// drainer is how the pods of a node leave before it does.
type drainer struct {
	s    *cluster.Snapshot
	node *cluster.Node
	// deadline is when it must be over; zero for when the pods like.
	deadline time.Time
	step     *Step
	// claim of the node; nil if it has none. warned says that the node's end has been told.
	claim  *cluster.Claim
	warned bool
}

// isOver reports whether the node's time is up, whatever is still on it.
func (d *drainer) isOver() bool { return !d.deadline.IsZero() && !d.s.Now.Before(d.deadline) }

// drain evicts tier by tier: a tier is begun when the one before is empty. It counts the pods that are waited for.
func (d *drainer) drain() (left int) {
	tiers := make([][]*cluster.Pod, 4)
	for _, pod := range d.s.PodsOn(d.node.Name) {
		if !isIgnored(pod, d.s.Now) {
			tiers[drainTier(pod)] = append(tiers[drainTier(pod)], pod)
			left++
		}
	}
	if d.isOver() {
		d.deleteRemaining()
		return left
	}
	for i, pods := range tiers {
		if len(pods) > 0 {
			d.ask(pods)
			d.askLaterTiers(slices.Concat(tiers[i+1:]...))
			break
		}
	}
	return left
}

// deleteRemaining deletes what is left on a node that goes without waiting for it: whoever owns the pods learns at once
// that they are to be replaced, and not when somebody notices that their node is no more. One that we are just binding
// may be on another node.
func (d *drainer) deleteRemaining() {
	for _, pod := range d.s.PodsOn(d.node.Name) {
		if pod.Deleting.IsZero() && !pod.Mirror && !pod.Daemon && !pod.StaysThroughDrain && !pod.Binding {
			d.step.emit(command.Evict{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
				Owner: pod.Owner, Node: d.node.Name, Delete: true, Grace: time.Second})
		}
	}
}

// askLaterTiers asks the pods of later tiers that must be told to go now, although it is not their turn, and wakes up
// for the next one.
func (d *drainer) askLaterTiers(pods []*cluster.Pod) {
	if d.deadline.IsZero() {
		return
	}
	d.step.wake(d.deadline)
	for _, pod := range pods {
		if !pod.Deleting.IsZero() {
			continue
		}
		if due := d.lastEvictionTime(pod); d.s.Now.Before(due) {
			d.step.wake(due)
			continue
		}
		d.ask([]*cluster.Pod{pod})
	}
}

// isIgnored reports whether the pod is neither evicted nor waited for.
func isIgnored(p *cluster.Pod, now time.Time) bool {
	return p.Mirror || p.StaysThroughDrain || isStuck(p, now)
}

func drainTier(p *cluster.Pod) int {
	t := 0
	if p.Daemon {
		t++
	}
	if p.Critical {
		t += 2
	}
	return t
}

func isStuck(p *cluster.Pod, now time.Time) bool {
	return !p.Deleting.IsZero() && !now.Before(p.Deleting.Add(p.Grace+stuckAfter))
}

// ask asks pods to leave. A pod that does not want to be disturbed is left alone until that ends or its last call
// comes. So is one that we are just binding, until the watch shows where it is: somebody else may have been faster.
func (d *drainer) ask(pods []*cluster.Pod) {
	for _, pod := range pods {
		evict := command.Evict{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Owner: pod.Owner,
			Node: d.node.Name}
		switch {
		case !pod.Deleting.IsZero():
			d.step.wake(pod.Deleting.Add(pod.Grace + stuckAfter))
		case pod.Binding:
		case !d.deadline.IsZero() && !d.s.Now.Before(d.lastEvictionTime(pod)):
			evict.Delete, evict.Grace = true, max(d.deadline.Sub(d.s.Now), time.Second)
			d.step.emit(evict)
			d.tellExpiring()
		case isProtected(pod, d.s.Now):
			d.step.wake(d.lastEvictionTime(pod))
			d.step.wake(pod.DoNotDisruptUntil)
			d.step.warn(d.node.Note("FailedDraining", protectedText(pod)))
		default:
			d.step.emit(evict)
			d.step.wake(d.lastEvictionTime(pod))
		}
	}
}

// isProtected reports whether the pod does not want to be disturbed now.
func isProtected(p *cluster.Pod, now time.Time) bool {
	return p.DoNotDisrupt && (p.DoNotDisruptUntil.IsZero() || now.Before(p.DoNotDisruptUntil))
}

func protectedText(p *cluster.Pod) reason.Text {
	if p.DoNotDisruptUntil.IsZero() {
		return reason.Of(reason.PodProtected, p.ID())
	}
	return reason.Of(reason.PodProtectedUntil, p.ID(), p.DoNotDisruptUntil)
}

// tellExpiring tells that the node's time runs out for pods that are still there.
func (d *drainer) tellExpiring() {
	if d.warned {
		return
	}
	d.warned = true
	text := reason.Of(reason.PodsDeletedBy, d.deadline)
	d.step.warn(d.node.Note("TerminationGracePeriodExpiring", text))
	if d.claim != nil {
		d.step.warn(d.claim.Note("TerminationGracePeriodExpiring", text))
	}
}

// lastEvictionTime is when a pod must be told to go so that its own grace period ends by the node's deadline; zero for
// never.
func (d *drainer) lastEvictionTime(pod *cluster.Pod) time.Time {
	if d.deadline.IsZero() {
		return time.Time{}
	}
	return d.deadline.Add(-pod.Grace)
}

// attached lists the volumes that are still attached to the node, those of pods that stay aside.
func (d *drainer) attached() []string {
	all := d.s.Attached[d.node.Name]
	if len(all) == 0 {
		return nil
	}
	kept := make(map[string]bool)
	for _, pod := range d.s.PodsOn(d.node.Name) {
		if isIgnored(pod, d.s.Now) {
			for _, v := range pod.Volumes {
				kept[v.Handle] = true
			}
		}
	}
	var out []string
	for _, handle := range all {
		if !kept[handle] {
			out = append(out, handle)
		}
	}
	return out
}
