package ingest

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func prioritySet(namespace, name, class string) *appsv1.DaemonSet {
	ds := daemonSet(func(s *corev1.PodSpec) { s.PriorityClassName = class })
	ds.Namespace, ds.Name, ds.UID = namespace, name, types.UID(namespace+name)
	return ds
}

func daemonNames(b *Book) []string {
	var out []string
	for _, d := range b.Snapshot().Daemons {
		out = append(out, d.Namespace+"/"+d.Name)
	}
	return out
}

// DaemonSets come in the order in which kube-scheduler lets them in: by the number that their PriorityClass stands for,
// whenever that is known, and by name among equals.
func TestDaemonsComeByPriority(t *testing.T) {
	b, _ := newBook()
	b.SetDaemon(prioritySet("b", "vital", "high"))
	b.SetDaemon(prioritySet("a", "plain", ""))
	b.SetDaemon(prioritySet("a", "idle", "low"))
	b.SetDaemon(prioritySet("a", "lost", "no-such-class"))
	want := func(names ...string) {
		t.Helper()
		if got := daemonNames(b); !slices.Equal(got, names) {
			t.Errorf("the DaemonSets come as %v, expected %v", got, names)
		}
	}
	want("a/idle", "a/lost", "a/plain", "b/vital")
	b.SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000})
	b.SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -5})
	want("b/vital", "a/lost", "a/plain", "a/idle")
	b.SetPriorityClass(&schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 2000, GlobalDefault: true,
	})
	want("a/plain", "b/vital", "a/lost", "a/idle")
	b.DeletePriorityClass("usual")
	b.DeletePriorityClass("high")
	want("a/lost", "a/plain", "b/vital", "a/idle")
}
