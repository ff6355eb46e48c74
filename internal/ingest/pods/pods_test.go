package pods

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// An ending counts only if the pod still has that time, and each once.
func TestProtectionsEndInOrder(t *testing.T) {
	start := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	known := map[string]*cluster.Pod{}
	find := func(uid string) (*cluster.Pod, bool) {
		p, found := known[uid]
		return p, found
	}
	var pr Protections
	protect := func(uid string, lasts time.Duration) {
		old, p := known[uid], &cluster.Pod{UID: uid, DoNotDisrupt: true, DoNotDisruptUntil: start.Add(lasts)}
		known[uid] = p
		pr.Note(old, p, find)
	}
	protect("late", 30*time.Minute)
	protect("early", 10*time.Minute)
	protect("gone", 10*time.Minute)
	protect("late", 20*time.Minute)
	protect("late", 20*time.Minute)
	delete(known, "gone")
	if got := pr.Ended(start.Add(10*time.Minute-1), find); len(got) > 0 {
		t.Errorf("too early end %q", got)
	}
	if got := pr.Ended(start.Add(time.Hour), find); !slices.Equal(got, []string{"early", "late"}) || len(pr.ends) > 0 {
		t.Errorf("at last end %q, %d are left", got, len(pr.ends))
	}
	for i := range 3 * forgetFrom {
		protect("late", time.Duration(i)*time.Second)
	}
	if len(pr.ends) > forgetFrom+10 {
		t.Errorf("%d endings of one pod are kept", len(pr.ends))
	}
}

func TestAnnotationsThatCantBeReadAreTold(t *testing.T) {
	p := &cluster.Pod{UID: "p", Name: "p", Namespace: "default"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1.DoNotDisruptAnnotationKey: "soon", v1.DisruptionCostAnnotationKey: "much",
		corev1.PodDeletionCost: "134217728"}}}
	if note := ReadDoNotDisrupt(p, pod, time.Time{}); note == nil || !note.Warning || p.DoNotDisrupt {
		t.Errorf("protected %t, told %+v", p.DoNotDisrupt, note)
	}
	if note := ReadEvictionCost(p, pod); note == nil || !note.Warning || p.EvictionCost != 2 {
		t.Errorf("costs %v, told %+v", p.EvictionCost, note)
	}
}
