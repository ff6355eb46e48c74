package oracle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// name is new each time.
func (g *generator) name(prefix string) string {
	g.next++
	return fmt.Sprintf("%s-%d", prefix, g.next)
}

// selector draws which pods count: mostly those like the pod itself.
func (g *generator) selector(pod *corev1.Pod) *metav1.LabelSelector {
	switch n := g.IntN(100); {
	case n < 55:
		return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: pod.Labels[appLabel]}}
	case n < 75:
		return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: pick(g.dice, "a", "b", "c")}}
	case n < 92:
		e := metav1.LabelSelectorRequirement{Key: appLabel, Operator: pick(g.dice, metav1.LabelSelectorOpIn,
			metav1.LabelSelectorOpNotIn), Values: some(g.dice, 2, "a", "b", "c")}
		if g.chance(30) {
			e = metav1.LabelSelectorRequirement{Key: revisionLabel, Operator: pick(g.dice, metav1.LabelSelectorOpExists,
				metav1.LabelSelectorOpDoesNotExist)}
		}
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}
	case n < 97:
		return &metav1.LabelSelector{} // every pod
	}
	return nil // no pod
}

func (g *generator) spread(pod *corev1.Pod) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(pick(g.dice, 1, 1, 1, 2, 3)), LabelSelector: g.selector(pod),
		WhenUnsatisfiable: corev1.DoNotSchedule,
		TopologyKey: pick(g.dice, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelTopologyZone,
			corev1.LabelHostname, corev1.LabelHostname, rackLabel, capacityTypeLabel),
	}
	for _, other := range pod.Spec.TopologySpreadConstraints {
		if other.TopologyKey == c.TopologyKey {
			return // the API allows one for each key and way
		}
	}
	if g.chance(10) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
	} else if g.chance(25) {
		c.MinDomains = new(int32(g.between(1, 4)))
	}
	policies := []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
	if g.chance(40) {
		c.NodeAffinityPolicy = new(pick(g.dice, policies...))
	}
	if g.chance(40) {
		c.NodeTaintsPolicy = new(pick(g.dice, policies...))
	}
	if g.chance(20) && c.LabelSelector != nil {
		c.MatchLabelKeys = []string{revisionLabel}
		mergeKeys(c.LabelSelector, pod, revisionLabel, metav1.LabelSelectorOpIn)
	}
	pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, c)
}

// mergeKeys writes a key's value into the selector, as the API server does when a pod is created.
func mergeKeys(s *metav1.LabelSelector, pod *corev1.Pod, key string, operator metav1.LabelSelectorOperator) {
	if value, ok := pod.Labels[key]; ok {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator,
			Values: []string{value}})
	}
}

func (g *generator) podTerm(pod *corev1.Pod) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{LabelSelector: g.selector(pod),
		TopologyKey: pick(g.dice, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname,
			corev1.LabelHostname, corev1.LabelHostname, rackLabel, capacityTypeLabel)}
	switch n := g.IntN(100); {
	case n < 15:
		t.Namespaces = some(g.dice, 2, "blue", "red", "green")
	case n < 25:
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{teamLabel: pick(g.dice,
			"one", "two")}}
	case n < 30:
		t.NamespaceSelector = &metav1.LabelSelector{}
	case n < 35:
		t.Namespaces = []string{"blue"}
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{teamLabel: "two"}}
	}
	if t.LabelSelector == nil {
		return t
	}
	if g.chance(15) {
		t.MatchLabelKeys = []string{revisionLabel}
		mergeKeys(t.LabelSelector, pod, revisionLabel, metav1.LabelSelectorOpIn)
	} else if g.chance(12) {
		if g.chance(50) {
			t.LabelSelector = &metav1.LabelSelector{}
		}
		t.MismatchLabelKeys = []string{revisionLabel}
		mergeKeys(t.LabelSelector, pod, revisionLabel, metav1.LabelSelectorOpNotIn)
	}
	return t
}

func (g *generator) affinity(pod *corev1.Pod) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.PodAffinity == nil {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	a := pod.Spec.Affinity.PodAffinity
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
		g.podTerm(pod))
}

func (g *generator) antiAffinity(pod *corev1.Pod) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.PodAntiAffinity == nil {
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	a := pod.Spec.Affinity.PodAntiAffinity
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
		g.podTerm(pod))
}
