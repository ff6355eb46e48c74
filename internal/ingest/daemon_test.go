package ingest

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

func amounts(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	if cpu != "" {
		out[corev1.ResourceCPU] = apiresource.MustParse(cpu)
	}
	if memory != "" {
		out[corev1.ResourceMemory] = apiresource.MustParse(memory)
	}
	return out
}

func daemonSet(change func(*corev1.PodSpec)) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		UID: "ds", Namespace: "infra", Name: "agent",
		Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "1"},
	}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent"}}
	change(&ds.Spec.Template.Spec)
	return ds
}

// daemonPodOf is a pod of the DaemonSet, made by a template of that generation, that asks for so much CPU.
func daemonPodOf(ds *appsv1.DaemonSet, uid, generation, cpu string, age time.Duration) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(uid), Namespace: ds.Namespace, Name: uid, Labels: map[string]string{generationLabel: generation},
		CreationTimestamp: metav1.NewTime(at(12, 0).Add(-age)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", UID: ds.UID,
			Name: ds.Name, Controller: &yes}},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "agent",
		Resources: corev1.ResourceRequirements{Requests: amounts(cpu, "")}}}
	return pod
}

func daemonOf(t *testing.T, b *Book) *cluster.Daemon {
	t.Helper()
	daemons := b.Snapshot().Daemons
	if len(daemons) != 1 {
		t.Fatalf("%d daemons, want one", len(daemons))
	}
	return daemons[0]
}

func wantRequests(t *testing.T, d *cluster.Daemon, milliCPU, mebibytes int64) {
	t.Helper()
	cpu, memory := d.Class.Requests[resource.CPU], d.Class.Requests[resource.Memory]>>20
	if cpu != milliCPU || memory != mebibytes {
		t.Errorf("the daemon counts as %dm CPU and %d MiB, want %dm and %d MiB", cpu, memory, milliCPU, mebibytes)
	}
}

// A template in a DaemonSet has none of what the API server adds to a pod; see TestDaemonsAsTheAPIServerMakesThem in
// internal/e2e.
func TestDaemonIsCountedAsItsPodsWillBe(t *testing.T) {
	always, kata := corev1.ContainerRestartPolicyAlways, "kata"
	limited := func(cpu, memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: amounts(cpu, memory)}
	}
	for name, c := range map[string]struct {
		spec           func(*corev1.PodSpec)
		cpu, mebibytes int64
	}{
		"limits stand for requests": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources = limited("1500m", "1Gi")
		}, 1500, 1024},
		"a request counts before its limit": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources = limited("2", "1Gi")
			s.Containers[0].Resources.Requests = amounts("100m", "")
		}, 100, 1024},
		"the LimitRange's defaults": {func(*corev1.PodSpec) {}, 250, 64},
		"a sidecar": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources = limited("1", "128Mi")
			s.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: &always,
				Resources: limited("500m", "")}}
		}, 1500, 192},
		"an init container that needs more": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources = limited("1", "128Mi")
			s.InitContainers = []corev1.Container{{Name: "setup", Resources: limited("3", "")}}
		}, 3000, 128},
		"the RuntimeClass's overhead": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources = limited("1", "128Mi")
			s.RuntimeClassName = &kata
		}, 1200, 248},
		"limits of the whole pod": {func(s *corev1.PodSpec) {
			whole := limited("2", "1Gi")
			s.Resources = &whole
		}, 2000, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBook()
			ds := daemonSet(c.spec)
			b.SetDaemon(ds) // before what its pods get is known
			b.SetLimitRange(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "defaults"},
				Spec: corev1.LimitRangeSpec{
					Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: amounts("8", "")},
						{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("250m", "64Mi")}},
				}})
			b.SetLimitRange(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "defaults"},
				Spec: corev1.LimitRangeSpec{
					Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
						DefaultRequest: amounts("7", "7Gi")}},
				}})
			b.SetRuntimeClass(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: kata},
				Overhead: &nodev1.Overhead{PodFixed: amounts("200m", "120Mi")}})
			wantRequests(t, daemonOf(t, b), c.cpu, c.mebibytes)
			if ds.Spec.Template.Spec.Overhead != nil ||
				len(ds.Spec.Template.Spec.Containers[0].Resources.Requests) > 1 {
				t.Error("the DaemonSet itself was changed")
			}
		})
	}
}

func TestDefaultsThatGoAreCountedNoMore(t *testing.T) {
	b, _ := newBook()
	kata := "kata"
	b.SetLimitRange(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "defaults"},
		Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("250m", "64Mi")}},
		}})
	b.SetRuntimeClass(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: kata},
		Overhead: &nodev1.Overhead{PodFixed: amounts("200m", "")}})
	b.SetDaemon(daemonSet(func(s *corev1.PodSpec) { s.RuntimeClassName = &kata }))
	wantRequests(t, daemonOf(t, b), 450, 64)
	b.DeleteLimitRange("infra", "defaults")
	wantRequests(t, daemonOf(t, b), 200, 0)
	b.DeleteRuntimeClass(kata)
	wantRequests(t, daemonOf(t, b), 0, 0)
}

// A RuntimeClass also says where its pods run, and the host's network which ports they take.
func TestDaemonRunsWhereItsPodsWill(t *testing.T) {
	b, _ := newBook()
	kata := "kata"
	b.SetRuntimeClass(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: kata}, Scheduling: &nodev1.Scheduling{
		NodeSelector: map[string]string{"runtime": "kata"}, Tolerations: []corev1.Toleration{{Key: "kata",
			Operator: corev1.TolerationOpExists}},
	}})
	b.SetDaemon(daemonSet(func(s *corev1.PodSpec) {
		s.RuntimeClassName, s.HostNetwork = &kata, true
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9100, Protocol: corev1.ProtocolTCP}}
	}))
	class := daemonOf(t, b).Class
	taint := []cluster.Taint{{Key: "kata", Effect: cluster.NoSchedule}}
	if !cluster.MayRunOn(class, cluster.LabelsOf(map[string]string{"runtime": "kata"}), taint) ||
		cluster.MayRunOn(class, nil, nil) {
		t.Error("the daemon should run on the RuntimeClass's nodes and on no other")
	}
	if len(class.Ports) != 1 || class.Ports[0].Number != 9100 {
		t.Errorf("the daemon takes ports %v, want 9100", class.Ports)
	}
}

// Webhooks and autoscalers change pods, not templates: only a pod shows what the next one will ask for.
func TestDaemonIsCountedAsItsNewestPod(t *testing.T) {
	b, _ := newBook()
	ds := daemonSet(func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = amounts("100m", "") })
	b.SetPod(daemonPodOf(ds, "b", "1", "400m", 2*time.Minute)) // the watch of pods may be ahead
	b.SetDaemon(ds)
	wantRequests(t, daemonOf(t, b), 400, 0)
	b.SetPod(daemonPodOf(ds, "a", "1", "300m", time.Hour))
	wantRequests(t, daemonOf(t, b), 400, 0)
	before := b.Snapshot().SupplyRev
	b.SetPod(daemonPodOf(ds, "c", "1", "500m", time.Minute))
	wantRequests(t, daemonOf(t, b), 500, 0)
	if b.Snapshot().SupplyRev == before {
		t.Error("nobody is told that new nodes have less room now")
	}
	b.DeletePod(daemonPodOf(ds, "c", "1", "500m", time.Minute))
	wantRequests(t, daemonOf(t, b), 500, 0) // the next one will ask for the same

	stranger := daemonPodOf(ds, "z", "1", "64", 0)
	stranger.Namespace = "elsewhere"
	b.SetPod(stranger)
	wantRequests(t, daemonOf(t, b), 500, 0) // anybody can name an owner

	next := ds.DeepCopy()
	next.Annotations[appsv1.DeprecatedTemplateGeneration] = "2"
	next.Spec.Template.Spec.Containers[0].Resources.Requests = amounts("200m", "")
	b.SetDaemon(next)
	wantRequests(t, daemonOf(t, b), 200, 0) // no pod of the new template has been seen
	b.SetPod(daemonPodOf(ds, "d", "2", "600m", 0))
	wantRequests(t, daemonOf(t, b), 600, 0)

	b.DeleteDaemon(ds.UID)
	if n, _ := b.daemons.Remembered(); n != 1 { // the stranger's
		t.Errorf("%d pods of DaemonSets are remembered, want one", n)
	}
	b.dropUnused()
	if n, _ := b.daemons.Remembered(); n != 0 {
		t.Errorf("%d pods of no DaemonSet are remembered", n)
	}
}

// A node that has its pod of a DaemonSet needs no more room for another one.
func TestADaemonSetCountsOnceOnANode(t *testing.T) {
	b, _ := newBook()
	ds := daemonSet(func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = amounts("400m", "") })
	b.SetDaemon(ds)
	room := amounts("4", "8Gi")
	room["pods"] = apiresource.MustParse("110")
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Capacity: room,
		Allocatable: room,
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	free := func() int64 { return b.Snapshot().SchedulerView().Hosts()[0].Free[resource.CPU] }
	if got := free(); got != 3600 {
		t.Errorf("%dm of cpu are free while the pod has yet to come, want 3600m", got)
	}
	pod := daemonPodOf(ds, "a", "1", "400m", time.Minute)
	pod.Spec.NodeName = "n"
	b.SetPod(pod)
	if got := free(); got != 3600 {
		t.Errorf("%dm of cpu are free beside the pod, want 3600m", got)
	}
}
