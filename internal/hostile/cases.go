package hostile

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Case is objects in the order in which a watch delivers them.
type Case struct {
	Name    string
	Objects []client.Object
}

// Cases are the objects that must not cost others their nodes. Each is about as large as the API server takes.
func Cases() []Case {
	one := func(name string, objects ...client.Object) Case { return Case{name, objects} }
	return []Case{
		one("affinity-terms", Together(4000)),
		one("affinity-topologies", TogetherEverywhere(4000)),
		one("anti-affinity-terms", Apart(4000)),
		one("preferred-pod-terms", PreferredTerms(4000)),
		one("soft-spread", Spread(2000, corev1.ScheduleAnyway)),
		one("hard-spread", Spread(2000, corev1.DoNotSchedule)),
		one("node-selector", NodeSelector(20_000)),
		one("node-affinity-terms", NodeAffinity(8000, 1, 1)),
		one("node-affinity-expressions", NodeAffinity(1, 10_000, 1)),
		one("node-affinity-values", NodeAffinity(1, 1, 60_000)),
		one("node-affinity-grid", NodeAffinity(100, 100, 4)),
		one("node-affinity-repeated", RepeatedExpressions(10_000)),
		one("preferred-nodes", PreferredNodes(8000)),
		{"volumes", Volumes(5000, 500)},
		{"volume-choices", Choices(200, 200)},
		one("volume-topologies", StorageClass(0), Volume("pv", 5000), Claim(text("claim-", 0), "pv"),
			Mounting("topologies", 1)),
		one("invented-resources", Invented(12)),
		one("thousands-of-resources", Invented(10_000)),
		one("tolerations", Tolerant(20_000)),
		one("host-ports", HostPorts(10_000)),
		one("containers", Containers(3000)),
		one("labels", Labelled(40_000)),
		one("selector-expressions", SelectorExpressions(20_000)),
		one("term-namespaces", ManyNamespaces(40_000)),
		one("label-keys", LabelKeys(8000)),
		RepellingCase(2000),
		DistinctCase(5000),
		{"namespaces", Namespaces(2000)},
		one("owner-of-1MiB", Owned(strings.Repeat("u", 1_000_000))),
		one("owner-of-odd-characters", Owned("a,b=")),
		{"daemonset", []client.Object{DaemonSet(NodeSelector(20_000))}},
		{"daemonset-huge", []client.Object{HugeDaemonSet("10000")}},
		{"daemonset-large", []client.Object{HugeDaemonSet("449")}},
		{"daemonsets-1000", DaemonSets(1000)},
		{"budget-selector", []client.Object{Budget(20_000)}},
	}
}

// RepellingCase is n pods of a class each that repel each other.
func RepellingCase(n int) Case {
	return Case{fmt.Sprint("repelling-classes-", n), objects(Repelling(n))}
}

// DistinctCase is n pods of a class each.
func DistinctCase(n int) Case { return Case{fmt.Sprint("distinct-classes-", n), objects(Distinct(n))} }

// AtTheBounds are pods that are just small enough to be read in full. The bounds are in docs/concepts/bounds.md.
func AtTheBounds() []Case {
	one := func(name string, objects ...client.Object) Case { return Case{name, objects} }
	return []Case{
		one("affinity-terms", Together(200)),
		one("affinity-topologies", TogetherEverywhere(200)),
		one("anti-affinity-terms", Apart(200)),
		one("preferred-pod-terms", PreferredTerms(200)),
		one("soft-spread", Spread(64, corev1.ScheduleAnyway)),
		one("hard-spread", Spread(64, corev1.DoNotSchedule)),
		one("node-selector", NodeSelector(256)),
		one("node-affinity-terms", NodeAffinity(256, 8, 8)),
		one("node-affinity-expressions", NodeAffinity(1, 2048, 8)),
		one("node-affinity-values", NodeAffinity(1, 1, 20_000)),
		{"node-affinity-exclusions", objects(Excluding(3, 20_000))},
		one("preferred-nodes", PreferredNodes(256)),
		one("tolerations", Tolerant(512)),
		one("host-ports", HostPorts(2048)),
		one("selector-expressions", SelectorExpressions(4096)),
		one("term-namespaces", ManyNamespaces(4000)),
		one("containers", Containers(512)),
		{"volumes", Volumes(512, 512)},
		{"volume-choices", Choices(512, 1000)},
	}
}

func objects(pods []*corev1.Pod) []client.Object {
	out := make([]client.Object, len(pods))
	for i, p := range pods {
		out[i] = p
	}
	return out
}

// Namespaces are n namespaces with a label of their own, and pods whose anti-affinity selects them all.
func Namespaces(n int) []client.Object {
	var out []client.Object
	for i := range n {
		name := text("ns-", i)
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"n": name}}})
		p := Pod(text("roams-", i))
		p.Namespace, p.Labels = name, map[string]string{"roams": "yes"}
		t := term(corev1.LabelHostname, selector("roams", "no"))
		t.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "n", Operator: metav1.LabelSelectorOpNotIn, Values: []string{name}}}}
		p.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t},
			},
		}
		out = append(out, p)
	}
	return out
}

// DaemonSet runs the pod on every node.
func DaemonSet(pod *corev1.Pod) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: pod.Name,
		UID: types.UID("ds-" + pod.Name)},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels},
			Spec: pod.Spec}}}
}

// HugeDaemonSet asks for so many CPUs on every node, with the highest priority that there is.
func HugeDaemonSet(cpu string) *appsv1.DaemonSet {
	p := Pod("huge")
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = apiresource.MustParse(cpu)
	highest := int32(2_000_001_000)
	p.Spec.Priority = &highest
	return DaemonSet(p)
}

// DaemonSets are n that ask for next to nothing: each takes one of the pods that a node may have.
func DaemonSets(n int) []client.Object {
	var out []client.Object
	for i := range n {
		p := Pod(text("daemon-", i))
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("1m")}
		out = append(out, DaemonSet(p))
	}
	return out
}

// Budget is a PodDisruptionBudget whose selector has n expressions.
func Budget(n int) *policyv1.PodDisruptionBudget {
	s := &metav1.LabelSelector{}
	for i := range n {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key(i),
			Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: fmt.Sprint("budget-",
		n), UID: "pdb"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: s}}
}
