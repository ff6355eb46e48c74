package podspec

import (
	"bytes"
	"maps"
	"math/rand"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// richPod has something of everything that a class is made from.
func richPod() *corev1.Pod {
	always, five, two, one := corev1.ContainerRestartPolicyAlways, int32(5), int32(2), int32(1)
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	amounts := func(texts ...string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": apiresource.MustParse(texts[0]), "memory": apiresource.MustParse(texts[1])}
	}
	selector := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: "In", Values: []string{"x", "y"}}}}
	}
	term := corev1.PodAffinityTerm{TopologyKey: "rack", Namespaces: []string{"one", "two"},
		NamespaceSelector: selector("ns"), LabelSelector: selector("a"),
		MatchLabelKeys: []string{"rev"}, MismatchLabelKeys: []string{"tenant"}}
	node := corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: "In", Values: []string{"ssd",
			"nvme"}}, {Key: "cores", Operator: "Gt", Values: []string{"4"}}},
		MatchFields: []corev1.NodeSelectorRequirement{{Key: NameField, Operator: "In", Values: []string{"n"}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": "a",
		"rev": "7", "tenant": "t"}}}
	pod.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{"arch": "arm", "os": "linux"}, Priority: &five, Overhead: amounts("10m", "1Mi"),
		Tolerations: []corev1.Toleration{{Key: "k", Operator: "Equal", Value: "v", Effect: "NoSchedule"},
			{Operator: "Exists"}},
		Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: amounts("1", "1Gi")},
			Ports: []corev1.ContainerPort{{HostPort: 80, HostIP: "10.0.0.1", Protocol: "UDP"},
				{ContainerPort: 9}}}},
		InitContainers: []corev1.Container{{Name: "side", RestartPolicy: &always,
			Resources: corev1.ResourceRequirements{Requests: amounts("100m", "2Gi")},
			Ports:     []corev1.ContainerPort{{HostPort: 81}}},
			{Name: "setup", Resources: corev1.ResourceRequirements{Requests: amounts("3", "5Gi")}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{node, node},
				},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 3,
					Preference: node}}},
			PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 4,
					PodAffinityTerm: term}},
			},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 5,
					PodAffinityTerm: term}},
			},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: selector("a"),
				MatchLabelKeys: []string{"rev"}, MinDomains: &two, NodeAffinityPolicy: &ignore,
				NodeTaintsPolicy: &honor},
			{MaxSkew: 2, TopologyKey: "rack", WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: selector("b"),
				MinDomains: &one}},
	}
	pod.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "main", AllocatedResources: amounts("2", "3Gi"),
			Resources: &corev1.ResourceRequirements{Requests: amounts("2500m", "2Gi")}}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodResizePending, Status: "True",
			Reason: corev1.PodReasonDeferred}}}
	return pod
}

// TestShapeMissesNothing changes one value of a pod after the other. Whenever that changes what the pod's class is made
// from, it must change the bytes by which the class is found.
func TestShapeMissesNothing(t *testing.T) {
	specs := New()
	look := func(pod *corev1.Pod) (shape []byte, key string) {
		return slices.Clone(specs.keyWriter.podKey(&pod.ObjectMeta, &pod.Spec, &pod.Status)),
			specs.readSpec(&pod.ObjectMeta,
				&pod.Spec, &pod.Status).key()
	}
	changed := 0
	for seed := range int64(4000) {
		r := rand.New(rand.NewSource(seed))
		pod := richPod()
		if seed%2 == 0 { // pod-level resources hide those of containers
			pod.Spec.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": apiresource.MustParse("9")},
			}
			pod.Status.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": apiresource.MustParse("11")},
			}
			pod.Status.AllocatedResources = corev1.ResourceList{"cpu": apiresource.MustParse("10")}
		}
		shape, key := look(pod)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			t.Fatal(err)
		}
		what := change1(r, object, "")
		other := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object, other) != nil {
			continue // the value is of no use there
		}
		otherShape, otherKey := look(other)
		if key == otherKey {
			continue
		}
		changed++
		if bytes.Equal(shape, otherShape) {
			t.Errorf("a change of %s changes the class and not the shape", what)
		}
	}
	if changed < 800 {
		t.Errorf("only %d changes mattered", changed)
	}
}

// change1 changes one value somewhere inside, and says where.
func change1(r *rand.Rand, at any, path string) string {
	switch v := at.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			return path
		}
		key := pick(r, keys)
		if next, ok := changeValue(r, v[key]); ok {
			if next == nil {
				delete(v, key)
			} else {
				v[key] = next
			}
			return path + "." + key
		}
		return change1(r, v[key], path+"."+key)
	case []any:
		if len(v) == 0 {
			return path
		}
		i := r.Intn(len(v))
		if next, ok := changeValue(r, v[i]); ok && next != nil {
			v[i] = next
			return path + "[]"
		}
		return change1(r, v[i], path+"[]")
	}
	return path
}

// changeValue is another value in its place, or none; ok is false if the change is to happen further inside.
func changeValue(r *rand.Rand, v any) (next any, ok bool) {
	if r.Intn(8) == 0 {
		return nil, true
	}
	switch v := v.(type) {
	case string:
		return pick(r, []string{v + "1", "NotIn", "In", "Exists", "4", "Infeasible", "Always", "Ignore", "Honor",
			"ScheduleAnyway", "NoExecute"}), true
	case int64:
		return v + 1, true
	case bool:
		return !v, true
	}
	return nil, false
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.Intn(len(list))] }
