package daemons

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
)

func daemonSet(generation int64) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "ds",
		Generation: generation, Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}}}
}

// The newest pod of the present template tells what the next one asks for, until the DaemonSet is gone.
func TestTheNewestPodTeaches(t *testing.T) {
	d := New()
	if !d.Set(daemonSet(1)) || d.Set(daemonSet(1)) || !d.Set(daemonSet(2)) {
		t.Error("a generation is news once")
	}
	learn := func(uid, generation, resource string, age time.Duration) *appsv1.DaemonSet {
		p := &cluster.Pod{UID: uid, Namespace: "default", Owner: cluster.OwnerKey("default", "ds"),
			Created: time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC).Add(-age)}
		return d.Learn(p, generation, func() []podspec.Request { return []podspec.Request{{Name: resource}} })
	}
	if learn("a", "1", "cpu", time.Minute) == nil || learn("old", "1", "memory", time.Hour) != nil {
		t.Error("an older pod is believed")
	}
	if list, known := d.Requests(daemonSet(2)); !known || list[0].Name != "cpu" {
		t.Errorf("asks for %v", list)
	}
	if learn("b", "0", "pods", 0); true {
		if _, known := d.Requests(daemonSet(2)); known {
			t.Error("a pod of another template is believed")
		}
	}
	class := &cluster.PodClass{Key: "c"}
	if !d.Put(daemonSet(2), class) || d.Put(daemonSet(2), class) {
		t.Error("a class is news once")
	}
	next := &cluster.PodClass{Key: "c"}
	if d.Reclass(map[*cluster.PodClass]*cluster.PodClass{class: next}); d.InOrder()[0].Class != next {
		t.Error("the daemon has its old class")
	}
	if entries, bytes := d.Remembered(); entries != 1 || bytes <= 0 {
		t.Errorf("%d pods are remembered in %d bytes", entries, bytes)
	}
	d.Delete("ds")
	if entries, _ := d.Remembered(); entries != 0 || len(d.InOrder()) != 0 {
		t.Error("it is gone and known")
	}
	learn("c", "1", "cpu", 0)
	d.DropPods()
	if entries, bytes := d.Remembered(); entries != 0 || bytes != 0 {
		t.Errorf("pods of nobody take %d bytes", bytes)
	}
}

// What the API server adds to pods is in the template that counts.
func TestTheTemplateHasTheDefaults(t *testing.T) {
	d, class := New(), "sandbox"
	ds := daemonSet(1)
	ds.Spec.Template.Spec = corev1.PodSpec{RuntimeClassName: &class, PriorityClassName: "high"}
	d.SetRuntimeClass(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: class},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"sandboxed": "true"}}})
	d.SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7})
	_, spec := d.Template(ds)
	if spec.NodeSelector["sandboxed"] != "true" || spec.Priority == nil || *spec.Priority != 7 {
		t.Errorf("the template is %+v", spec)
	}
	if ds.Spec.Template.Spec.Priority != nil {
		t.Error("the DaemonSet has been changed")
	}
}
