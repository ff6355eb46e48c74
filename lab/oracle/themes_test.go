package oracle

import (
	corev1 "k8s.io/api/core/v1"
)

// theme is a kind of constraint that a shape can be given. Put may be asked for more than once.
type theme struct {
	name string
	put  func(g *generator, pod *corev1.Pod)
}

// themes are all kinds of constraint, those that are richer in detail more than once.
func themes() []theme {
	return []theme{
		{"init container", (*generator).initContainer}, {"sidecar", (*generator).sidecar},
		{"overhead", (*generator).overhead},
		{"pod-level resources", (*generator).podLevel}, {"extended resource", (*generator).extended},
		{"hugepages", (*generator).hugepages}, {"ephemeral storage", (*generator).ephemeralStorage},
		{"node selector", (*generator).nodeSelector}, {"node affinity", (*generator).nodeAffinity},
		{"node affinity", (*generator).nodeAffinity},
		{"match fields", (*generator).matchFields}, {"tolerations", (*generator).tolerations},
		{"tolerations", (*generator).tolerations},
		{"spread", (*generator).spread}, {"spread", (*generator).spread}, {"spread", (*generator).spread},
		{"spread", (*generator).spread},
		{"affinity", (*generator).affinity}, {"affinity", (*generator).affinity}, {"affinity", (*generator).affinity},
		{"anti-affinity", (*generator).antiAffinity}, {"anti-affinity", (*generator).antiAffinity},
		{"anti-affinity", (*generator).antiAffinity},
		{"host port", (*generator).hostPort}, {"priority", (*generator).priority},
		{"preferences", (*generator).preferences},
		{"volume", (*generator).volume}, {"volume", (*generator).volume}, {"volume", (*generator).volume},
	}
}

func (g *generator) initContainer(pod *corev1.Pod) {
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: g.name("init"), Image: "init",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    amount(pick(g.dice, "100m", "1", "2")),
			corev1.ResourceMemory: amount(pick(g.dice, "64Mi", "2Gi"))}}})
}

func (g *generator) sidecar(pod *corev1.Pod) {
	g.initContainer(pod)
	always := corev1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1].RestartPolicy = &always
}

func (g *generator) overhead(pod *corev1.Pod) {
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: amount("250m"), corev1.ResourceMemory: amount("120Mi")}
}

func (g *generator) podLevel(pod *corev1.Pod) {
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    amount(pick(g.dice, "1", "2", "3")),
		corev1.ResourceMemory: amount(pick(g.dice, "3Gi", "4Gi"))}}
}

func (g *generator) extended(pod *corev1.Pod) {
	want := amount(pick(g.dice, "1", "1", "2"))
	pod.Spec.Containers[0].Resources.Requests[gpu] = want
	pod.Spec.Containers[0].Resources.Limits = merge(pod.Spec.Containers[0].Resources.Limits,
		corev1.ResourceList{gpu: want})
}

func (g *generator) hugepages(pod *corev1.Pod) {
	want := amount(pick(g.dice, "64Mi", "128Mi", "256Mi"))
	pod.Spec.Containers[0].Resources.Requests[hugepages] = want
	pod.Spec.Containers[0].Resources.Limits = merge(pod.Spec.Containers[0].Resources.Limits,
		corev1.ResourceList{hugepages: want})
}

func (g *generator) ephemeralStorage(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = amount(pick(g.dice, "2Gi",
		"6Gi", "12Gi"))
}

func merge(into, from corev1.ResourceList) corev1.ResourceList {
	out := into.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	for name, q := range from {
		out[name] = q
	}
	return out
}

func (g *generator) nodeSelector(pod *corev1.Pod) {
	pod.Spec.NodeSelector = pick(g.dice,
		map[string]string{corev1.LabelTopologyZone: pick(g.dice, g.zones...)},
		map[string]string{capacityTypeLabel: pick(g.dice, "spot", "on-demand")},
		map[string]string{rackLabel: pick(g.dice, "r1", "r2", "r3")},
		map[string]string{corev1.LabelArchStable: pick(g.dice, "amd64", "arm64"), corev1.LabelOSStable: "linux"},
		map[string]string{poolLabel: pick(g.dice, "pool-1", "pool-2")})
}

// terms is the pod's required node affinity.
func terms(pod *corev1.Pod) *corev1.NodeSelector {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	if pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func (g *generator) nodeAffinity(pod *corev1.Pod) {
	required := terms(pod)
	for range g.between(1, 2) {
		var term corev1.NodeSelectorTerm
		for range g.between(1, 2) {
			term.MatchExpressions = append(term.MatchExpressions, g.expression())
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
}

func (g *generator) expression() corev1.NodeSelectorRequirement {
	operator := pick(g.dice, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
		corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
	key := pick(g.dice, corev1.LabelTopologyZone, capacityTypeLabel, rackLabel, corev1.LabelArchStable,
		corev1.LabelHostname)
	out := corev1.NodeSelectorRequirement{Key: key, Operator: operator}
	switch operator {
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		out.Key, out.Values = coresLabel, []string{pick(g.dice, "1", "2", "4", "8")}
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		out.Values = map[string][]string{
			corev1.LabelTopologyZone: some(g.dice, 2, g.zones...), capacityTypeLabel: some(g.dice, 1, "spot",
				"on-demand"),
			rackLabel: some(g.dice, 2, "r1", "r2", "r3"), corev1.LabelArchStable: some(g.dice, 1, "amd64", "arm64"),
			corev1.LabelHostname: some(g.dice, 2, "n1", "n2", "n3"),
		}[key]
	case corev1.NodeSelectorOpDoesNotExist:
		out.Key = pick(g.dice, rackLabel, "example.com/nowhere", poolLabel)
	}
	return out
}

func (g *generator) matchFields(pod *corev1.Pod) {
	required := terms(pod)
	required.NodeSelectorTerms = append(required.NodeSelectorTerms,
		corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: nodeNameField, Operator: pick(g.dice, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
			Values: []string{pick(g.dice, "n1", "n2", "n3")}}}})
}

// nodeNameField is the one field that node affinity can select by.
const nodeNameField = "metadata.name"

func (g *generator) tolerations(pod *corev1.Pod) {
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, pick(g.dice,
		corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "a"},
		corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "b",
			Effect: corev1.TaintEffectNoSchedule},
		corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: pick(g.dice, "",
			corev1.TaintEffectNoExecute)},
		corev1.Toleration{Operator: corev1.TolerationOpExists}))
}

func (g *generator) hostPort(pod *corev1.Pod) {
	port := corev1.ContainerPort{ContainerPort: 80, HostPort: pick(g.dice, int32(80), 8080, 8081),
		Protocol: pick(g.dice, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP)}
	if g.chance(40) {
		port.HostIP = pick(g.dice, "127.0.0.1", "10.0.0.1", "0.0.0.0")
	}
	pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, port)
}

func (g *generator) priority(pod *corev1.Pod) {
	pod.Spec.Priority = pick(g.dice, new(int32(100)), new(int32(1000)))
}

// preferences must not change what is possible.
func (g *generator) preferences(pod *corev1.Pod) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	a := pod.Spec.Affinity
	switch g.IntN(3) {
	case 0:
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{
			Weight:     int32(g.between(1, 100)),
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{g.expression()}}}}
	case 1:
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution =
			[]corev1.WeightedPodAffinityTerm{{Weight: int32(g.between(1, 100)), PodAffinityTerm: g.podTerm(pod)}}
	case 2:
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution =
			[]corev1.WeightedPodAffinityTerm{{Weight: int32(g.between(1, 100)), PodAffinityTerm: g.podTerm(pod)}}
	}
}
