package hostile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// podClasses is n pods of a class each, with what makes each of them special.
func podClasses(name string, n int, special func(i int, p *corev1.Pod)) Case {
	pods := Distinct(n)
	for i, p := range pods {
		special(i, p)
	}
	return Case{fmt.Sprint(name, "-", n), objects(pods)}
}

func affinityOf(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

// Unsold is n pods of a class each that ask for instance types which nobody sells.
func Unsold(n int) Case {
	return podClasses("unsold", n, func(i int, p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: text("x", i)}
	})
}

// Mistyped is n pods of a class each that ask for labels which no node has, though some have one that is much like it.
func Mistyped(n int) Case {
	return podClasses("mistyped", n, func(i int, p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone + "s": text("x", i)}
	})
}

// ManyClasses are n pods each, of n classes, that get in each other's way in different manners.
func ManyClasses(n int) []Case {
	return []Case{
		RepellingCase(n), DistinctCase(n), Unsold(n), Mistyped(n),
		podClasses("chain", n, inAChain(corev1.LabelTopologyZone)),
		podClasses("chain-of-hosts", n, inAChain(corev1.LabelHostname)),
		podClasses("together", n, func(_ int, p *corev1.Pod) {
			p.Labels = map[string]string{"app": "together"}
			near(p, term(corev1.LabelHostname, selector("app", "together")))
		}),
		podClasses("spread", n, func(i int, p *corev1.Pod) {
			p.Labels = map[string]string{"app": fmt.Sprint(i)}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
				TopologyKey:       corev1.LabelTopologyZone,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector("app", fmt.Sprint(i))}}
		}),
		podClasses("topologies", n, func(i int, p *corev1.Pod) {
			p.Labels = map[string]string{"app": fmt.Sprint(i)}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
				TopologyKey:       text("topology-", i),
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector("app", fmt.Sprint(i))}}
		}),
		podClasses("selectors", n, func(i int, p *corev1.Pod) {
			affinityOf(p).NodeAffinity = &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key(i),
							Operator: corev1.NodeSelectorOpDoesNotExist}}}},
				},
			}
		}),
		podClasses("tolerations", n, func(i int, p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: key(i), Operator: corev1.TolerationOpExists}}
		}),
		podClasses("wishes", n, func(i int, p *corev1.Pod) {
			a := &corev1.NodeAffinity{}
			for j := range 3 {
				a.PreferredDuringSchedulingIgnoredDuringExecution =
					append(a.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
						Weight: int32(1 + (i+j*37)%100),
						Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpNotIn,
								Values: []string{text("type-", i)}}}}})
			}
			affinityOf(p).NodeAffinity = a
		}),
		podClasses("ports", n, func(i int, p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(1 + i%60_000),
				HostIP: fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250)}}
		}),
	}
}

// inAChain has each pod ask for the domain of the one before it.
func inAChain(topology string) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		p.Labels = map[string]string{"step": fmt.Sprint(i)}
		if i > 0 {
			near(p, term(topology, selector("step", fmt.Sprint(i-1))))
		}
	}
}

// near has a pod ask for the domain of others.
func near(p *corev1.Pod, to corev1.PodAffinityTerm) {
	affinityOf(p).PodAffinity = &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{to}}
}
