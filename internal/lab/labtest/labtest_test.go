package labtest

import (
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { Main(m) }

// widgets is a custom resource of no meaning.
func widgets() fstest.MapFS {
	return fstest.MapFS{
		"notes.txt": {Data: []byte("not a definition")},
		"crds/widgets.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.tenon.sh}
spec:
  group: test.tenon.sh
  scope: Cluster
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)},
	}
}

func widget(name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetAPIVersion("test.tenon.sh/v1")
	w.SetKind("Widget")
	w.SetName(name)
	w.SetFinalizers([]string{"test.tenon.sh/forgotten"})
	return w
}

func simulatedNode(name, cpu string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:  resource.MustParse(cpu),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:       name,
			Labels:     map[string]string{"kwok.x-k8s.io/node": "fake"},
			Finalizers: []string{"test.tenon.sh/forgotten"},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

func deployment(namespace string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "pause"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pause"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "pause", Image: "pause",
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
					},
				}}},
			},
		},
	}
}

// within polls a condition of the real cluster.
func within(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited %s in vain for %s", patience, what)
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPodsRunOnSimulatedNodes(t *testing.T) {
	l := New(t)
	c := l.Client(scheme.Scheme)
	node := simulatedNode("worker", "4")
	create(t, c, node)
	within(t, 20*time.Second, "the node to be ready and without taints", func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		return ready(node) && len(node.Spec.Taints) == 0
	})
	if cpu := node.Status.Capacity.Cpu().String(); cpu != "4" {
		t.Errorf("the node has %s CPUs, want the 4 it was made with", cpu)
	}

	d := deployment(l.Namespace(), 20)
	// A pod that names its node from the start is run too, however its events
	// and those of the node interleave.
	bound := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(), Name: "bound"},
		Spec:       corev1.PodSpec{NodeName: "late", Containers: d.Spec.Template.Spec.Containers},
	}
	create(t, c, d, bound, simulatedNode("late", "1"))
	within(t, 60*time.Second, "20 pods and the bound one to run", func() bool {
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods, client.InNamespace(l.Namespace())); err != nil {
			t.Fatal(err)
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
				running++
			}
		}
		return running == 21
	})

	if err := c.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	within(t, 60*time.Second, "all pods to go", func() bool {
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods, client.InNamespace(l.Namespace())); err != nil {
			t.Fatal(err)
		}
		return len(pods.Items) == 0
	})
}

// The simulated kubelets can be told to be slow or sick, with the marks that Karpenter's own suites use.
func TestKubeletsCanBeSlowOrSick(t *testing.T) {
	l := New(t)
	c := l.Client(scheme.Scheme)
	sick := simulatedNode("sick", "4")
	sick.Labels["kwok.x-k8s.io/stage"] = "unhealthy"
	create(t, c, simulatedNode("well", "4"), sick)
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(), Name: name},
			Spec:       corev1.PodSpec{NodeName: "well", Containers: deployment("", 1).Spec.Template.Spec.Containers},
		}
	}
	slow, unready := pod("slow"), pod("unready")
	slow.Annotations = map[string]string{"pod-delete.stage.kwok.x-k8s.io/delay": "1h"}
	unready.Labels = map[string]string{"kwok.x-k8s.io/stage": "unhealthy"}
	plain := pod("plain")
	create(t, c, slow, unready, plain)
	get := func(p *corev1.Pod) bool { return c.Get(t.Context(), client.ObjectKeyFromObject(p), p) == nil }
	within(t, 60*time.Second, "the pods to start", func() bool {
		return get(slow) && get(unready) && slow.Status.Phase == corev1.PodRunning && unready.Status.StartTime != nil
	})
	for _, condition := range unready.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionFalse {
			t.Errorf("the unhealthy pod is Ready=%s", condition.Status)
		}
	}
	for _, p := range []*corev1.Pod{slow, plain} {
		if err := c.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 60*time.Second, "the ordinary pod to go", func() bool { return !get(plain) })
	if !get(slow) || slow.DeletionTimestamp == nil {
		t.Error("the slow pod went as fast as the other, or was never asked to")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(sick), sick); err != nil || ready(sick) {
		t.Errorf("the sick node is ready, or gone (%v)", err)
	}
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestEachTestFindsACleanSlate(t *testing.T) {
	first := New(t)
	first.InstallCRDs(widgets())
	first.InstallCRDs(widgets())
	c := first.Client(scheme.Scheme)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stuck",
			Finalizers: []string{"test.tenon.sh/forgotten"}},
		Spec: corev1.PodSpec{NodeName: "gone", Containers: []corev1.Container{{Name: "a", Image: "b"}}},
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "old"},
		InvolvedObject: corev1.ObjectReference{Namespace: "default", Kind: "Pod", Name: "stuck"},
	}
	create(t, c, simulatedNode("leftover", "1"), deployment("default", 3), deployment(first.Namespace(), 3),
		widget("left"), pod, event)

	second := New(t)
	if second.Namespace() == first.Namespace() {
		t.Error("two tests share a namespace")
	}
	for _, list := range []client.ObjectList{&corev1.NodeList{}, &corev1.PodList{}, &appsv1.DeploymentList{},
		&appsv1.ReplicaSetList{}, widgetList()} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if n := count(list); n != 0 {
			t.Errorf("%T: %d left", list, n)
		}
	}
	// The definitions stay, so a test can go on at once.
	create(t, second.Client(scheme.Scheme), widget("new"))
}

func widgetList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("test.tenon.sh/v1")
	list.SetKind("WidgetList")
	return list
}

func count(list client.ObjectList) int {
	switch l := list.(type) {
	case *corev1.NodeList:
		return len(l.Items)
	case *corev1.PodList:
		return len(l.Items)
	case *appsv1.DeploymentList:
		return len(l.Items)
	case *appsv1.ReplicaSetList:
		return len(l.Items)
	case *unstructured.UnstructuredList:
		return len(l.Items)
	}
	return -1
}

func TestEachHasALabOfItsOwn(t *testing.T) {
	labs := NewLabs(2)
	t.Cleanup(func() {
		if err := labs.end(); err != nil {
			t.Error(err)
		}
	})
	outer := labs.New(t)
	hosts := map[string]bool{outer.Config().Host: true}
	create(t, outer.Client(scheme.Scheme), simulatedNode("kept", "1"))
	for _, name := range []string{"starts another", "gets the free one"} {
		t.Run(name, func(t *testing.T) {
			inner := labs.New(t)
			if inner.Config().Host == outer.Config().Host {
				t.Fatal("two tests have the same lab at the same time")
			}
			hosts[inner.Config().Host] = true
		})
	}
	if len(hosts) != 2 {
		t.Errorf("%d labs were used, want one more than the first", len(hosts))
	}
	if err := outer.Client(scheme.Scheme).Get(t.Context(), client.ObjectKey{Name: "kept"}, &corev1.Node{}); err != nil {
		t.Errorf("another test has wiped this one's lab: %v", err)
	}
}

func TestOnlyLocalClustersAreWiped(t *testing.T) {
	for host, ok := range map[string]bool{
		"https://127.0.0.1:6443":     true,
		"https://prod.example.com":   false,
		"https://10.0.0.1:6443":      false,
		"127.0.0.1.example.com:6443": false,
	} {
		if err := mustBeLocal(&rest.Config{Host: host}); (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
}
