// Package hostile builds Kubernetes objects that are valid, small enough for the API server and far larger than anybody
// needs: what a user of one namespace could write to keep a controller from working for everybody else. It is for tests
// and benchmarks.
package hostile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Namespace is where hostile objects live.
const Namespace = "hostile"

// Pod is an ordinary small pod for which kube-scheduler has found no place.
func Pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{container("main")}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
	}
}

func container(name string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: apiresource.MustParse("100m"), corev1.ResourceMemory: apiresource.MustParse("128Mi")}}}
}

func key(i int) string { return fmt.Sprintf("k%05d", i) }

func text(prefix string, i int) string { return fmt.Sprintf("%s%05d", prefix, i) }

func texts(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text(prefix, i)
	}
	return out
}

func selector(label, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
}

func term(topology string, s *metav1.LabelSelector) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: s}
}

// Terms is n affinity terms, each about other pods.
func Terms(n int, topology string) []corev1.PodAffinityTerm {
	out := make([]corev1.PodAffinityTerm, n)
	for i := range out {
		out[i] = term(topology, selector("a", fmt.Sprint(i)))
	}
	return out
}

// Together is a pod with n required affinity terms.
func Together(n int) *corev1.Pod {
	p := Pod("together")
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: Terms(n, corev1.LabelHostname)}}
	return p
}

// TogetherEverywhere is a pod with n required affinity terms, each about domains of its own.
func TogetherEverywhere(n int) *corev1.Pod {
	p := Together(n)
	p.Name, p.UID = "everywhere", "uid-everywhere"
	list := p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range list {
		list[i].TopologyKey = text("topology-", i)
	}
	return p
}

// Apart is a pod with n required anti-affinity terms.
func Apart(n int) *corev1.Pod {
	p := Pod("apart")
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: Terms(n, corev1.LabelTopologyZone)}}
	return p
}

// PreferredTerms is a pod with n preferred affinity terms.
func PreferredTerms(n int) *corev1.Pod {
	p := Pod("preferred")
	a := &corev1.PodAffinity{}
	for i, t := range Terms(n, corev1.LabelTopologyZone) {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: int32(1 + i%100), PodAffinityTerm: t})
	}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: a}
	return p
}

// Spread is a pod with n topology spread constraints, each over a key of its own.
func Spread(n int, when corev1.UnsatisfiableConstraintAction) *corev1.Pod {
	p := Pod("spread")
	for i := range n {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: text("topology-", i), WhenUnsatisfiable: when, LabelSelector: selector("app",
				"spread")})
	}
	return p
}

// NodeSelector is a pod whose nodeSelector has n labels.
func NodeSelector(n int) *corev1.Pod {
	p := Pod("selector")
	p.Spec.NodeSelector = make(map[string]string, n)
	for i := range n {
		p.Spec.NodeSelector[key(i)] = "v"
	}
	return p
}

// NodeAffinity is a pod with required node affinity: so many terms, with so many expressions, with so many values each.
func NodeAffinity(terms, expressions, values int) *corev1.Pod {
	p := Pod("affinity")
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: nodeTerms(terms,
			expressions, values)}}}
	return p
}

// Excluding are pods that may run on any architecture but so many that do not exist. What they exclude goes to a node
// that they share with others.
func Excluding(pods, values int) []*corev1.Pod {
	out := make([]*corev1.Pod, pods)
	for i := range out {
		out[i] = Pod(text("excluding-", i))
		arch := corev1.NodeSelectorRequirement{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpNotIn}
		for j := range values {
			arch.Values = append(arch.Values, fmt.Sprintf("a%d-%055d", i, j))
		}
		out[i].Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{arch},
				}}}}}
	}
	return out
}

// Owned is a pod that says a controller of a kind that nobody knows owns it, by that UID.
func Owned(uid string) *corev1.Pod {
	p, controls := Pod("owned"), true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Unknown", Name: "x",
		UID: types.UID(uid), Controller: &controls}}
	return p
}

func nodeTerms(terms, expressions, values int) []corev1.NodeSelectorTerm {
	out := make([]corev1.NodeSelectorTerm, terms)
	for i := range out {
		for j := range expressions {
			out[i].MatchExpressions = append(out[i].MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key(j), Operator: corev1.NodeSelectorOpNotIn, Values: texts(fmt.Sprint("v", i, "-"), values)})
		}
	}
	return out
}

// RepeatedExpressions is a pod whose node affinity says n times something else of one label.
func RepeatedExpressions(n int) *corev1.Pod {
	p := NodeAffinity(1, n, 1)
	list := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions
	for i := range list {
		list[i].Key, list[i].Values = "k", []string{text("v", i)}
	}
	return p
}

// PreferredNodes is a pod with n preferences for nodes.
func PreferredNodes(n int) *corev1.Pod {
	p := Pod("prefers")
	a := &corev1.NodeAffinity{}
	for i, t := range nodeTerms(n, 1, 1) {
		t.MatchExpressions[0].Key = key(i)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(1 + i%100), Preference: t})
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: a}
	return p
}

// Invented is a pod that asks for n resources that nothing offers.
func Invented(n int) *corev1.Pod {
	p := Pod("invented")
	for i := range n {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(text("example.com/invented-", i))] =
			*apiresource.NewQuantity(1, apiresource.DecimalSI)
	}
	return p
}

// Tolerant is a pod with n tolerations.
func Tolerant(n int) *corev1.Pod {
	p := Pod("tolerant")
	for i := range n {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key(i),
			Operator: corev1.TolerationOpExists})
	}
	return p
}

// HostPorts is a pod that occupies n ports of the host.
func HostPorts(n int) *corev1.Pod {
	p := Pod("ports")
	for i := range n {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports,
			corev1.ContainerPort{ContainerPort: int32(1 + i), HostPort: int32(1 + i), Protocol: corev1.ProtocolTCP})
	}
	return p
}

// Containers is a pod with n containers and as many init containers.
func Containers(n int) *corev1.Pod {
	p := Pod("containers")
	p.Spec.Containers = nil
	for i := range n {
		p.Spec.Containers = append(p.Spec.Containers, container(text("c", i)))
		p.Spec.InitContainers = append(p.Spec.InitContainers, container(text("i", i)))
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: text("c", i)})
	}
	return p
}

// Labelled is a pod with n labels.
func Labelled(n int) *corev1.Pod {
	p := Pod("labelled")
	for i := range n {
		p.Labels[key(i)] = "v"
	}
	return p
}

// SelectorExpressions is a pod with one anti-affinity term whose selector has n expressions.
func SelectorExpressions(n int) *corev1.Pod {
	p := Pod("expressions")
	s := &metav1.LabelSelector{}
	for i := range n {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key(i),
			Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(corev1.LabelHostname, s)}}}
	return p
}

// ManyNamespaces is a pod with one anti-affinity term that names n namespaces.
func ManyNamespaces(n int) *corev1.Pod {
	p := Pod("namespaces")
	t := term(corev1.LabelHostname, selector("app", "x"))
	t.Namespaces = texts("ns-", n)
	p.Spec.Affinity = &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t},
		},
	}
	return p
}

// LabelKeys is a pod with one anti-affinity term that takes the values of n labels from the pod.
func LabelKeys(n int) *corev1.Pod {
	p := Labelled(n)
	p.Name, p.UID = "labelkeys", "uid-labelkeys"
	t := term(corev1.LabelHostname, selector("app", "x"))
	for i := range n {
		t.MatchLabelKeys = append(t.MatchLabelKeys, key(i))
	}
	p.Spec.Affinity = &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t},
		},
	}
	return p
}

// Repelling is n pods of a class each that all repel each other on every node.
func Repelling(n int) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		p := Pod(text("repel-", i))
		p.Labels = map[string]string{"repel": text("v", i)}
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *apiresource.NewMilliQuantity(int64(100+i),
			apiresource.DecimalSI)
		p.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					term(corev1.LabelHostname,
						&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
							{Key: "repel", Operator: metav1.LabelSelectorOpExists},
							{Key: "repel", Operator: metav1.LabelSelectorOpNotIn, Values: []string{text("v", i)}}}})},
			},
		}
		out[i] = p
	}
	return out
}

// Distinct is n pods of a class each, without rules.
func Distinct(n int) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		out[i] = Pod(text("distinct-", i))
		out[i].Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *apiresource.NewMilliQuantity(int64(100+i),
			apiresource.DecimalSI)
	}
	return out
}
