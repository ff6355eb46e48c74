package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/validate"
)

func amounts(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if amount != "" {
			out[name] = apiresource.MustParse(amount)
		}
	}
	return out
}

// limits are resources without requests.
func limits(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: amounts(cpu, memory)}
}

func (w *world) daemonSet(name string, change func(*corev1.PodSpec)) *appsv1.DaemonSet {
	labels := map[string]string{"app": "agent", "agent": name}
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Image: "registry.k8s.io/pause:3.10"}}
	change(&ds.Spec.Template.Spec)
	return ds
}

// createDaemonSets makes DaemonSets whose templates say less than their pods will, and what the API server adds.
func (w *world) createDaemonSets() {
	w.Helper()
	always, kata := corev1.ContainerRestartPolicyAlways, "kata"
	w.create(
		&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: "defaults"},
			Spec: corev1.LimitRangeSpec{
				Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: amounts("300m", ""),
					DefaultRequest: amounts("", "70Mi")}},
			}},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: kata}, Handler: kata,
			Overhead: &nodev1.Overhead{PodFixed: amounts("110m", "120Mi")}},
		w.daemonSet("limits", func(s *corev1.PodSpec) { s.Containers[0].Resources = limits("1500m", "1Gi") }),
		w.daemonSet("defaults", func(*corev1.PodSpec) {}),
		w.daemonSet("sidecar", func(s *corev1.PodSpec) {
			s.Containers[0].Resources = limits("1", "")
			s.InitContainers = []corev1.Container{
				{Name: "mesh", Image: "mesh", RestartPolicy: &always, Resources: limits("", "200Mi")},
				{Name: "setup", Image: "setup", Resources: limits("2", "")},
			}
		}),
		w.daemonSet("runtime", func(s *corev1.PodSpec) { s.RuntimeClassName = &kata }),
		w.daemonSet("whole", func(s *corev1.PodSpec) {
			whole := limits("2", "1Gi")
			s.Resources = &whole
		}),
		w.daemonSet("host", func(s *corev1.PodSpec) {
			s.HostNetwork = true
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9100}}
		}),
	)
}

// TestDaemonsAsTheAPIServerMakesThem compares what a DaemonSet is counted for before any of its pods is there with the
// pods that the API server and the DaemonSet controller then make.
func TestDaemonsAsTheAPIServerMakesThem(t *testing.T) {
	w := newWorld(t)
	w.createDaemonSets()
	// The node comes last: without one there are no pods, and by then the API server has heard of the LimitRange.
	room := amounts("16", "64Gi")
	room[corev1.ResourcePods] = apiresource.MustParse("110")
	w.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker",
		Labels: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room}})
	book := ingest.New(time.Now, validate.Labels{}, nil)
	var sets appsv1.DaemonSetList
	w.must(w.c.List(w.ctx, &sets, client.InNamespace(w.lab.Namespace())))
	for i := range sets.Items {
		book.SetDaemon(&sets.Items[i])
	}
	var ranges corev1.LimitRangeList
	w.must(w.c.List(w.ctx, &ranges))
	for i := range ranges.Items {
		book.SetLimitRange(&ranges.Items[i])
	}
	var classes nodev1.RuntimeClassList
	w.must(w.c.List(w.ctx, &classes))
	for i := range classes.Items {
		book.SetRuntimeClass(&classes.Items[i])
	}
	expected := book.Snapshot().Daemons
	if len(expected) != 6 {
		t.Fatalf("%d DaemonSets, want 6", len(expected))
	}
	w.eventually(func() string {
		if n := len(w.pods()); n != len(expected) {
			return fmt.Sprintf("%d of %d DaemonSets have a pod", n, len(expected))
		}
		return ""
	})
	for _, pod := range w.pods() {
		book.SetPod(&pod)
	}
	s := book.Snapshot()
	for _, d := range expected {
		for _, p := range s.Pods {
			if d.Owns(p) && (p.Class.Requests != d.Class.Requests || len(p.Class.Ports) != len(d.Class.Ports)) {
				t.Errorf("DaemonSet %s counts as %v with ports %v; its pod asks for %v with ports %v", d.Name,
					d.Class.Requests, d.Class.Ports, p.Class.Requests, p.Class.Ports)
			}
		}
	}
}

// TestDaemonOfHigherPriorityIsCountedFirst has a DaemonSet whose pod would push the workload's off a node that is too
// small for both: the workload would wait again, and the same node would be bought again.
func TestDaemonOfHigherPriorityIsCountedFirst(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("general"),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Value: 1000000},
		w.daemonSet("agent", func(s *corev1.PodSpec) {
			s.PriorityClassName = "first"
			s.Containers[0].Resources = limits("1500m", "64Mi")
		}))
	c := w.run()
	w.create(w.deployment("app", 1, "1500m"))
	w.eventually(func() string { return w.running("app", 1) })
	w.eventually(func() string { return w.running("agent", 1) })
	w.eventually(w.tally)
	if made := strings.Count(c.log.String(), creation); made != 1 {
		t.Errorf("%d nodes were made for one pod, want one:\n%s", made, planned(c))
	}
}
