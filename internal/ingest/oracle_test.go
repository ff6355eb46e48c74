package ingest

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// FuzzConversion compares what a pod has become with what Kubernetes' own helpers say of the pod: where it may run,
// what it tolerates and what it takes. As a plain test it runs the seeds below.
func FuzzConversion(f *testing.F) {
	for seed := range int64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		r := rand.New(rand.NewSource(seed))
		for range 10 {
			pod, node := randomPod(r), randomNode(r)
			b := New(time.Now, validate.Labels{}, nil)
			b.SetPod(pod)
			b.SetNode(node)
			s := b.Snapshot()
			checkMatch(t, pod, node, s)
			checkRequests(t, pod, s)
			checkRules(t, r)
		}
	})
}

func checkMatch(t *testing.T, pod *corev1.Pod, node *corev1.Node, s *cluster.Snapshot) {
	t.Helper()
	p, n := s.Pods[0], s.Nodes[0]
	want, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil {
		t.Fatalf("the helper can't judge %+v: %v", pod.Spec.Affinity, err)
	}
	_, got := p.Class.MatchesLabels(n.Labels.With(podspec.NameField, n.Name).Get) // as a host answers
	got = got && len(p.Class.Unsupported) == 0
	if got != want {
		t.Fatalf("labels %v\nselector %v\naffinity %+v\nwe say %v (%v), Kubernetes %v", node.Labels,
			pod.Spec.NodeSelector,
			pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, got,
			p.Class.Unsupported, want)
	}
	_, problem := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations,
		func(t *corev1.Taint) bool {
			return t.Effect != corev1.TaintEffectPreferNoSchedule
		}, false)
	if taint, found := cluster.Untolerated(p.Class.Tolerations, n.Taints); found != problem {
		t.Fatalf("taints %v tolerations %+v: we say %v (%v), Kubernetes %v", node.Spec.Taints, pod.Spec.Tolerations,
			found, taint, problem)
	}
}

func checkRequests(t *testing.T, pod *corev1.Pod, s *cluster.Snapshot) {
	t.Helper()
	want := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
	have := s.Pods[0].Class.Requests
	if have[resource.Pods] != 1 {
		t.Fatalf("the pod takes %d slots", have[resource.Pods])
	}
	for name, q := range want {
		dim, ok := s.Names.Lookup(string(name))
		if !ok {
			if q.IsZero() {
				continue
			}
			t.Fatalf("%s has no number", name)
		}
		amount := q.Value()
		if dim == resource.CPU {
			amount = q.MilliValue()
		}
		if have[dim] != amount {
			t.Fatalf("%s: we say %d, Kubernetes %d", name, have[dim], amount)
		}
	}
}

func randomPod(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(r.Int63())), Name: "p"}}
	if r.Intn(2) == 0 {
		pod.Spec.NodeSelector = map[string]string{pick(r, keys()): pick(r, values())}
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	if r.Intn(4) > 0 {
		required := &corev1.NodeSelector{}
		for range 1 + r.Intn(3) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, randomTerm(r))
		}
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	for range r.Intn(4) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, randomToleration(r))
	}
	for i := range 1 + r.Intn(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, randomContainer(r, fmt.Sprint("c", i)))
	}
	always := corev1.ContainerRestartPolicyAlways
	for i := range r.Intn(3) {
		c := randomContainer(r, fmt.Sprint("i", i))
		if r.Intn(2) == 0 {
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	if r.Intn(3) == 0 {
		pod.Spec.Overhead = randomResources(r)
	}
	return pod
}

func randomTerm(r *rand.Rand) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for range r.Intn(3) {
		e := corev1.NodeSelectorRequirement{Key: pick(r, keys())}
		e.Operator = []corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}[r.Intn(6)]
		switch e.Operator {
		case "In", "NotIn":
			e.Values = []string{pick(r, values()), pick(r, values())}
		case "Gt", "Lt":
			e.Values = []string{fmt.Sprint(r.Intn(5))}
		}
		term.MatchExpressions = append(term.MatchExpressions, e)
	}
	if r.Intn(6) == 0 {
		term.MatchFields = []corev1.NodeSelectorRequirement{{
			Key: podspec.NameField, Operator: pick(r, []corev1.NodeSelectorOperator{"In", "NotIn"}),
			Values: []string{pick(r, []string{"n", "m"})}}}
	}
	return term
}

func randomToleration(r *rand.Rand) corev1.Toleration {
	t := corev1.Toleration{Key: pick(r, keys()), Operator: corev1.TolerationOpExists}
	switch r.Intn(4) {
	case 0:
		t.Key = ""
	case 1, 2:
		t.Operator, t.Value = corev1.TolerationOpEqual, pick(r, values())
		if r.Intn(2) == 0 {
			t.Operator = "" // means Equal
		}
	}
	if r.Intn(2) == 0 {
		t.Effect = pick(r, effects())
	}
	return t
}

func randomContainer(r *rand.Rand, name string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: randomResources(r)}}
}

func randomResources(r *rand.Rand) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, texts := range map[corev1.ResourceName][]string{
		"cpu": {"0", "1", "1500m", "0.3", "1u"}, "memory": {"0", "1Gi", "1500M", "1.5Gi", "123456789"},
		"ephemeral-storage": {"10Gi"}, "nvidia.com/gpu": {"1", "4"}, "hugepages-2Mi": {"4Mi"},
	} {
		if r.Intn(2) == 0 {
			out[name] = apiresource.MustParse(pick(r, texts))
		}
	}
	return out
}

func randomNode(r *rand.Rand) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}}}
	for _, key := range keys() {
		if r.Intn(3) > 0 {
			node.Labels[key] = pick(r, values())
		}
	}
	for range r.Intn(3) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: pick(r, keys()), Value: pick(r, values()),
			Effect: pick(r, effects())})
	}
	node.Status.Allocatable = corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"nvidia.com/gpu", "hugepages-2Mi", "ephemeral-storage"} {
		node.Status.Allocatable[name] = apiresource.MustParse("1Gi")
	}
	return node
}

func keys() []string   { return []string{"a", "b", "example.com/c"} }
func values() []string { return []string{"", "x", "y", "1", "2", "3"} }
func effects() []corev1.TaintEffect {
	return []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute,
		corev1.TaintEffectPreferNoSchedule}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.Intn(len(from))] }
