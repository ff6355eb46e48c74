package ingest

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/validate"
)

func TestAPodThatIsBeingBoundCountsAsBound(t *testing.T) {
	b := New(time.Now, validate.Labels{}, nil)
	b.SetPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonUnschedulable}}}})
	before := b.Snapshot()
	bind := command.Bind{UID: "u", Namespace: "default", Name: "p", Node: "n"}
	b.Begin(bind)
	s := b.Snapshot()
	if p := s.Pods[0]; p.Node != "n" || !p.Binding || p.IsPending() || len(s.Pending()) != 0 {
		t.Errorf("a pod that is being bound is on %q, binding: %t, pending: %t", p.Node, p.Binding, p.IsPending())
	}
	if s.DemandRev == before.DemandRev || s.SupplyRev == before.SupplyRev {
		t.Error("the placement from before would be taken over, although the pod is placed now")
	}
	b.Record(command.Outcome{Command: bind, At: time.Now(), Err: errors.New("boom")})
	after := b.Snapshot()
	if p := after.Pods[0]; p.Node != "" || !p.IsPending() {
		t.Errorf("a pod whose binding failed is on %q, pending: %t", p.Node, p.IsPending())
	}
	if after.DemandRev == s.DemandRev {
		t.Error("nobody would plan for the pod again")
	}
}

// Whoever was faster may have bound it elsewhere, which the API server says as a conflict: that it is bound is known,
// where is not before the watch has shown it.
func TestWhereABoundPodIsTheWatchTells(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}}
	b := New(time.Now, validate.Labels{}, nil)
	b.SetPod(pod)
	bind := command.Bind{UID: "u", Namespace: "default", Name: "p", Node: "n"}
	b.Begin(bind)
	b.Record(command.Outcome{Command: bind, At: time.Now(), Writes: []command.Write{{Kind: command.KindPod, Name: "u",
		Bound: true, Node: "n"}}})
	if p := b.Snapshot().Pods[0]; p.Node != "n" || !p.Binding {
		t.Errorf("before the watch has shown it the pod is on %q, binding: %t", p.Node, p.Binding)
	}
	pod.Spec.NodeName = "other"
	b.SetPod(pod)
	if p := b.Snapshot().Pods[0]; p.Node != "other" || p.Binding {
		t.Errorf("the watch has shown the pod on other, and it is on %q, binding: %t", p.Node, p.Binding)
	}
}
