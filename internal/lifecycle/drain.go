package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// stuckAfter is how long past its grace period a terminating pod may hold up a drain: a minute. The second is for the
// time of the deletion, which Kubernetes cuts off to seconds, so that the grace period may end by so much later than it
// says. Rather late than early.
const stuckAfter = time.Minute + time.Second

// parting is how the pods of a node leave before it does.
type parting struct {
	s *cluster.Snapshot
	n *cluster.Node
	// by is when it must be over; zero for when the pods like.
	by   time.Time
	step *Step
	// claim of the node; nil if it has none. warned says that the node's end has been told.
	claim  *cluster.Claim
	warned bool
}

// over reports whether the node's time is up, whatever is still on it.
func (p *parting) over() bool { return !p.by.IsZero() && !p.s.Now.Before(p.by) }

// drain evicts tier by tier: a tier is begun when the one before is empty. It counts the pods that are waited for.
func (p *parting) drain() (left int) {
	tiers := make([][]*cluster.Pod, 4)
	for _, pod := range p.s.PodsOn(p.n.Name) {
		if !stays(pod, p.s.Now) {
			tiers[tier(pod)] = append(tiers[tier(pod)], pod)
			left++
		}
	}
	if p.over() {
		p.dismiss()
		return left
	}
	for i, pods := range tiers {
		if len(pods) > 0 {
			p.ask(pods)
			p.lastCalls(slices.Concat(tiers[i+1:]...))
			break
		}
	}
	return left
}

// dismiss deletes what is left on a node that goes without waiting for it: whoever owns the pods learns at once that they
// are to be replaced, and not when somebody notices that their node is no more. One that we are just binding may be on another node.
func (p *parting) dismiss() {
	for _, pod := range p.s.PodsOn(p.n.Name) {
		if pod.Deleting.IsZero() && !pod.Mirror && !pod.Daemon && !pod.StaysThroughDrain && !pod.Binding {
			p.step.do(command.Evict{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Owner: pod.Owner, Node: p.n.Name, Now: true, Grace: time.Second})
		}
	}
}

// lastCalls asks the pods of later tiers that must be told to go now, although it is not their turn, and wakes up for the
// next one.
func (p *parting) lastCalls(pods []*cluster.Pod) {
	if p.by.IsZero() {
		return
	}
	p.step.wake(p.by)
	for _, pod := range pods {
		if !pod.Deleting.IsZero() {
			continue
		}
		if due := p.lastCall(pod); p.s.Now.Before(due) {
			p.step.wake(due)
			continue
		}
		p.ask([]*cluster.Pod{pod})
	}
}

// stays reports whether the pod is neither evicted nor waited for.
func stays(p *cluster.Pod, now time.Time) bool {
	return p.Mirror || p.StaysThroughDrain || stuck(p, now)
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

// ask asks pods to leave. A pod that does not want to be disturbed is left alone until that ends or its last call comes. So is one that
// we are just binding, until the watch shows where it is: somebody else may have been faster.
func (p *parting) ask(pods []*cluster.Pod) {
	for _, pod := range pods {
		evict := command.Evict{Pod: pod.ID(), UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Owner: pod.Owner, Node: p.n.Name}
		switch {
		case !pod.Deleting.IsZero():
			p.step.wake(pod.Deleting.Add(pod.Grace + stuckAfter))
		case pod.Binding:
		case !p.by.IsZero() && !p.s.Now.Before(p.lastCall(pod)):
			evict.Now, evict.Grace = true, max(p.by.Sub(p.s.Now), time.Second)
			p.step.do(evict)
			p.expiring()
		case protected(pod, p.s.Now):
			p.step.wake(p.lastCall(pod))
			p.step.wake(pod.DoNotDisruptUntil)
			p.step.warn(p.n.Note("FailedDraining", fmt.Sprintf("Pod %s asks not to be disrupted%s", pod.ID(), until(pod.DoNotDisruptUntil))))
		default:
			p.step.do(evict)
			p.step.wake(p.lastCall(pod))
		}
	}
}

// protected reports whether the pod does not want to be disturbed now.
func protected(p *cluster.Pod, now time.Time) bool {
	return p.DoNotDisrupt && (p.DoNotDisruptUntil.IsZero() || now.Before(p.DoNotDisruptUntil))
}

func until(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " until " + at.UTC().Format(time.RFC3339)
}

// expiring tells that the node's time runs out for pods that are still there.
func (p *parting) expiring() {
	if p.warned {
		return
	}
	p.warned = true
	message := fmt.Sprintf("All pods will be deleted by %s", p.by.UTC().Format(time.RFC3339))
	p.step.warn(p.n.Note("TerminationGracePeriodExpiring", message))
	if p.claim != nil {
		p.step.warn(p.claim.Note("TerminationGracePeriodExpiring", message))
	}
}

// lastCall is when a pod must be told to go so that its own grace period ends by the node's deadline; zero for never.
func (p *parting) lastCall(pod *cluster.Pod) time.Time {
	if p.by.IsZero() {
		return time.Time{}
	}
	return p.by.Add(-pod.Grace)
}

// attached lists the volumes that are still attached to the node, those of pods that stay aside.
func (p *parting) attached() []string {
	all := p.s.Attached[p.n.Name]
	if len(all) == 0 {
		return nil
	}
	kept := make(map[string]bool)
	for _, pod := range p.s.PodsOn(p.n.Name) {
		if stays(pod, p.s.Now) {
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
