package ingest

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/pods"
)

// readScheduling notes what kube-scheduler has said of the pod.
func (b *Book) readScheduling(p *cluster.Pod, pod *corev1.Pod, old *cluster.Pod, now time.Time) {
	p.SchedulerSeen = p.Node != ""
	if p.Node == "" {
		p.Nominated = b.sharedNodeName(pod.Status.NominatedNodeName)
	}
	told, message := false, ""
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			p.SchedulerSeen = true
			told = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			message = c.Message
		}
	}
	n := pods.Nominee{Unschedulable: told, IsOurs: p.Nominated != "" && decode.IsOurNomination(pod)}
	b.nominees.Set(p, old, n)
	p.Unschedulable = told && b.mayPlan(p, n)
	b.tries.NoteMessage(p, told, message, now)
	b.notePendingSince(p, old)
}

// notePendingSince notes since when the pod looks for a place. The lock is held.
func (b *Book) notePendingSince(p, old *cluster.Pod) {
	switch {
	case !p.Unschedulable:
		p.UnschedulableSince = cluster.Pod{}.UnschedulableSince
	case old != nil && old.Unschedulable:
		p.UnschedulableSince = old.UnschedulableSince
	default:
		p.UnschedulableSince = b.now()
	}
}

// mayPlan reports whether a pod that kube-scheduler could not place is ours to plan for. The lock is held.
func (b *machineState) mayPlan(p *cluster.Pod, n pods.Nominee) bool {
	return p.Nominated == "" || n.IsOurs || b.mayBeOurNode(p.Nominated, p.Class)
}

// mayBeOurNode reports whether a node could have been named by us for pods of the class: it is yet to come or to be
// ready, or it was made for such pods; or it is gone, and nobody keeps a place there. The lock is held.
func (b *machineState) mayBeOurNode(node string, class *cluster.PodClass) bool {
	e := b.nodes[node]
	if e == nil {
		return true
	}
	c := b.claims[b.claimBy[e.Node.ProviderID]]
	if c == nil {
		return false
	}
	return !c.Claim.Is(cluster.Initialized) ||
		slices.ContainsFunc(c.Claim.Seats, func(s cluster.Seat) bool { return s.Class == class.Key })
}

// rereadNominees decides anew about the pods for which a node was named, after the node or its claim has changed. The
// lock is held.
func (b *Book) rereadNominees(node string) change.Kind {
	what := change.None
	for uid, n := range b.nominees[node] {
		old, found := b.pods.Get(uid)
		if !found {
			continue
		}
		p := *old
		p.Unschedulable = n.Unschedulable && b.mayPlan(&p, n)
		if p.Unschedulable == old.Unschedulable {
			continue
		}
		b.notePendingSince(&p, old)
		b.pods.Set(uid, &p)
		what |= pods.PodChange(old, &p)
	}
	return what
}
