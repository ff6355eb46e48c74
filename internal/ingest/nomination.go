package ingest

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// fieldManager is the name under which we write.
const fieldManager = "tenon"

// nominee is a pod for which a node has been named before it is bound there: by kube-scheduler, which makes room by
// preemption or waits for a volume, or by us, for a node that is to come. kube-scheduler's pods have a place; ours are
// still to be planned for, since nobody but the plan keeps that place for them.
type nominee struct {
	// unschedulable is what kube-scheduler says of the pod.
	unschedulable bool
	// signed says that the nomination carries our name. One without may be ours all the same, if whoever stores pods does
	// not keep who wrote what: then the node tells.
	signed bool
}

// judge notes what kube-scheduler has said of the pod.
func (b *Book) judge(p *cluster.Pod, pod *corev1.Pod, old *cluster.Pod) {
	p.Judged = p.Node != ""
	if p.Node == "" {
		p.Nominated = b.nodeName(pod.Status.NominatedNodeName)
	}
	told, words := false, ""
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			p.Judged = true
			told = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			words = c.Message
		}
	}
	n := nominee{unschedulable: told, signed: p.Nominated != "" && isSigned(pod)}
	b.enlistNominee(p, old, n)
	p.Unschedulable = told && b.mayPlan(p, n)
	b.hear(p, told, words)
	b.seen(p, old)
}

// seen notes since when the pod looks for a place. The lock is held.
func (b *Book) seen(p, old *cluster.Pod) {
	switch {
	case !p.Unschedulable:
		p.Seen = cluster.Pod{}.Seen
	case old != nil && old.Unschedulable:
		p.Seen = old.Seen
	default:
		p.Seen = b.now()
	}
}

// mayPlan reports whether a pod that kube-scheduler could not place is ours to plan for. The lock is held.
func (b *Book) mayPlan(p *cluster.Pod, n nominee) bool {
	return p.Nominated == "" || n.signed || b.awaits(p.Nominated, p.Class)
}

// awaits reports whether a node could have been named by us for pods of the class: it is yet to come or to be ready, or
// it was made for such pods; or it is gone, and nobody keeps a place there. The lock is held.
func (b *Book) awaits(node string, class *cluster.PodClass) bool {
	e := b.nodes[node]
	if e == nil {
		return true
	}
	c := b.claims[b.claimBy[e.node.ProviderID]]
	if c == nil {
		return false
	}
	return !c.claim.Is(cluster.Initialized) ||
		slices.ContainsFunc(c.claim.Seats, func(s cluster.Seat) bool { return s.Class == class.Key })
}

// enlistNominee keeps the index of pods by the node that was named for them. The lock is held.
func (b *Book) enlistNominee(p, old *cluster.Pod, n nominee) {
	if old != nil && old.Nominated != p.Nominated {
		b.strikeNominee(old)
	}
	if p.Nominated == "" {
		return
	}
	if b.nominees[p.Nominated] == nil {
		b.nominees[p.Nominated] = make(map[string]nominee)
	}
	b.nominees[p.Nominated][p.UID] = n
}

func (b *Book) strikeNominee(p *cluster.Pod) {
	if p.Nominated == "" {
		return
	}
	delete(b.nominees[p.Nominated], p.UID)
	if len(b.nominees[p.Nominated]) == 0 {
		delete(b.nominees, p.Nominated)
	}
}

// judgeAgain decides anew about the pods for which a node was named, after the node or its claim has changed. The lock is
// held.
func (b *Book) judgeAgain(node string) change {
	what := nothing
	for uid, n := range b.nominees[node] {
		old, found := b.pods.get(uid)
		if !found {
			continue
		}
		p := *old
		p.Unschedulable = n.unschedulable && b.mayPlan(&p, n)
		if p.Unschedulable == old.Unschedulable {
			continue
		}
		b.seen(&p, old)
		b.pods.set(uid, &p)
		what |= podChange(old, &p)
	}
	return what
}

// isSigned reports whether our name stands under the pod's nomination: see keepSignature.
func isSigned(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == fieldManager && f.FieldsV1 == nil && f.FieldsType != wroteEnd
	})
}

// keepSignature drops who wrote which field of a pod, but for one word if it was we who named a node for it, and for the name of who
// wrote that it has to end.
func keepSignature(pod *corev1.Pod) {
	if slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.FieldsType == wroteEnd }) {
		return // it has been here before
	}
	ender := whoEnds(pod)
	ours := pod.Status.NominatedNodeName != "" && slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == fieldManager && f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:nominatedNodeName"`))
	})
	if isSigned(pod) {
		return // it has been here before
	}
	pod.ManagedFields = nil
	if ours {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldManager}}
	}
	if ender != "" {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: ender, FieldsType: wroteEnd})
	}
}

// whoEnds is who wrote that the pod has to end, if somebody did and it is recorded. An eviction through the API leaves no name.
func whoEnds(pod *corev1.Pod) string {
	if endOf(pod) == nil {
		return ""
	}
	for _, f := range pod.ManagedFields {
		if f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(endField)) {
			return f.Manager
		}
	}
	return ""
}
