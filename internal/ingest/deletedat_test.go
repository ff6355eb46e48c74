package ingest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// A deletion that we have seen come about was just now, whatever the API server's clock says; one that we find is when
// it says.
func TestDeletionsThatWeSawWereJustNow(t *testing.T) {
	b, _ := newBook()
	now := b.now()
	for _, x := range []struct {
		name  string
		known bool
		said  time.Duration
		want  time.Duration
	}{
		{"seen, by a clock that is right", true, -2 * time.Second, -2 * time.Second},
		{"seen, by one that was set back", true, -time.Hour, -watchLag},
		{"seen, by one that was set ahead", true, time.Hour, 0},
		{"seen, while ours is behind by less than a second", true, 600 * time.Millisecond, 600 * time.Millisecond},
		{"found", false, -time.Hour, -time.Hour},
	} {
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: x.name, UID: "1"}}
		grace := int64(30)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "1"},
			Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: &grace}}
		b.DeletePod(pod)
		if x.known {
			b.SetClaim(claim.DeepCopy())
			b.SetPod(pod.DeepCopy())
		}
		at := metav1.NewTime(now.Add(x.said))
		claim.DeletionTimestamp = &at
		end := metav1.NewTime(now.Add(x.said + 30*time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
		for range 2 { // it stays so
			b.SetClaim(claim.DeepCopy())
			b.SetPod(pod.DeepCopy())
			s := b.Snapshot()
			if got := s.Claim(x.name).Deleting.Sub(now); got != x.want {
				t.Errorf("a claim, %s: deleted %s from now, want %s", x.name, got, x.want)
			}
			if got := s.PodsOn("n")[0].Deleting.Sub(now); got != x.want {
				t.Errorf("a pod, %s: deleted %s from now, want %s", x.name, got, x.want)
			}
			claim.Labels, pod.Labels = map[string]string{"a": "b"}, map[string]string{"a": "b"}
		}
	}
}

// Whoever deletes a pod once more, by force, has asked for it just then.
func TestForcedDeletionCountsAnew(t *testing.T) {
	b, _ := newBook()
	now := b.now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "1"},
		Spec: corev1.PodSpec{NodeName: "n"}}
	b.SetPod(pod.DeepCopy())
	for _, x := range []struct{ asked, grace time.Duration }{{-40 * time.Second, 300 * time.Second},
		{-10 * time.Second, 0}} {
		end, grace := metav1.NewTime(now.Add(x.asked+x.grace)), int64(x.grace.Seconds())
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
		b.SetPod(pod.DeepCopy())
		if p := b.Snapshot().PodsOn("n")[0]; p.Deleting.Sub(now) != x.asked || p.Grace != x.grace {
			t.Errorf("deleted %s from now with a grace of %s, want %s and %s", p.Deleting.Sub(now), p.Grace,
				x.asked, x.grace)
		}
	}
}
