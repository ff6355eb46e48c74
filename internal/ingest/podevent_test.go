package ingest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func boundPod(name, node string, created, bound time.Time) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: name, CreationTimestamp: metav1.NewTime(created)},
		Spec: corev1.PodSpec{NodeName: node}}
	if !bound.IsZero() {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(bound)}}
	}
	return p
}

func podEvent(b *Book) time.Time { return b.Snapshot().Claim("a").LastPodEvent }

func bookWithNode() (*Book, *clock) {
	b, c := newBook()
	claim := claimObject("a", "1")
	claim.Status.NodeName = "n"
	b.SetClaim(claim)
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	return b, c
}

func TestRestartIsNoPodEvent(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want time.Time
	}{
		"bound by a scheduler": {boundPod("p", "n", at(9, 0), at(10, 0)), at(10, 0)},
		"created on its node":  {boundPod("p", "n", at(9, 0), time.Time{}), at(9, 0)},
	} {
		b, _ := bookWithNode()
		b.SetPod(c.pod) // at noon
		if got := podEvent(b); !got.Equal(c.want) {
			t.Errorf("%s: the last pod event is at %s, want %s", name, got, c.want)
		}
	}
	b, _ := newBook() // the pod may come before its node
	b.SetPod(boundPod("p", "n", at(9, 0), at(10, 0)))
	claim := claimObject("a", "1")
	claim.Status.NodeName = "n"
	b.SetClaim(claim)
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	if got := podEvent(b); !got.Equal(at(10, 0)) {
		t.Errorf("a pod that came before its node: %s", got)
	}
}

func TestPodEventsAreNotedAsTheyHappen(t *testing.T) {
	b, clock := bookWithNode()
	pending := boundPod("p", "", at(9, 0), time.Time{})
	b.SetPod(pending)
	b.SetPod(boundPod("p", "n", at(9, 0), at(10, 0)))
	if got := podEvent(b); !got.Equal(at(12, 0)) {
		t.Errorf("a pod that was bound before our eyes: %s, want now", got)
	}
	older := boundPod("old", "n", at(8, 0), at(8, 30))
	older.UID = "older"
	b.SetPod(older)
	if got := podEvent(b); !got.Equal(at(12, 0)) {
		t.Errorf("an older pod moved the last event back to %s", got)
	}
	clock.tick(time.Minute)
	b.DeletePod(pending)
	if got := podEvent(b); !got.Equal(at(12, 1)) {
		t.Errorf("a pod that left: %s", got)
	}
}

func TestPodThatOutlivesItsNodeLeavesNothingBehind(t *testing.T) {
	b, _ := bookWithNode()
	pod := boundPod("p", "n", at(9, 0), at(10, 0))
	b.SetPod(pod)
	b.DeleteNode("n")
	b.DeletePod(pod)
	if len(b.podEvents) != 0 {
		t.Errorf("events of a node that is gone are kept: %v", b.podEvents)
	}
}
