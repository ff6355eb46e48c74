package ingest

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// A pod may ask for more time than a time.Duration has. It must not count as one whose time is over.
func TestGraceThatIsTooLong(t *testing.T) {
	for _, seconds := range []int64{9_223_372_036, 9_223_372_037, 9_300_000_000, math.MaxInt64} {
		b, now := newBook()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"},
			Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: &seconds}}
		b.SetPod(pod)
		if got := b.Snapshot().Pods[0].Grace; got != cluster.LongestGrace {
			t.Errorf("%d seconds are a grace of %s", seconds, got)
		}
		// The API server writes when the pod has to be gone; beyond the year 9999 it can't.
		gone := metav1.NewTime(now.now().Add(cluster.LongestGrace))
		pod = pod.DeepCopy()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Finalizers = &gone, &seconds, []string{"x"}
		b.SetPod(pod)
		if p := b.Snapshot().Pods[0]; !p.Deleting.Add(p.Grace + time.Minute).After(now.now()) {
			t.Errorf("%d seconds: the pod was to be gone by %s, and it is %s", seconds,
				p.Deleting.Add(p.Grace), now.now())
		}
	}
}
