package oracle

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// kindsOf names the kinds of constraint that decide where the pod may run in the world.
func kindsOf(w *world, pod *corev1.Pod) []string {
	var out []string
	add := func(holds bool, kind string) {
		if holds {
			out = append(out, kind)
		}
	}
	addRequests(pod, add)
	addNodeTerms(pod, add)
	addSpreads(pod, add)
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		addTerms("pod affinity", pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, add)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		addTerms("pod anti-affinity", pod, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, add)
	}
	add(keptAway(w, pod), "anti-affinity of a running pod")
	for _, p := range pod.Spec.Containers[0].Ports {
		add(p.HostPort != 0 && p.HostIP == "", "host port")
		add(p.HostPort != 0 && p.HostIP != "", "host port with an address")
	}
	addVolumes(w, pod, add)
	add(wishes(pod), "preferences")
	add(len(out) == 0, "plain")
	add(pod.Status.Phase == corev1.PodRunning, "from a leaving node")
	return compact(out)
}

// wishes tells whether the pod prefers some nodes without insisting.
func wishes(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && (a.NodeAffinity != nil &&
		len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}

func compact(list []string) []string {
	seen := make(map[string]bool)
	var out []string
	for _, v := range list {
		if !seen[v] {
			out = append(out, v)
		}
		seen[v] = true
	}
	return out
}

func addRequests(pod *corev1.Pod, add func(bool, string)) {
	for _, c := range pod.Spec.InitContainers {
		add(c.RestartPolicy == nil, "init container")
		add(c.RestartPolicy != nil, "sidecar")
	}
	requests := pod.Spec.Containers[0].Resources.Requests
	_, cpu := requests[corev1.ResourceCPU]
	_, memory := requests[corev1.ResourceMemory]
	_, extended := requests[gpu]
	_, pages := requests[hugepages]
	_, storage := requests[corev1.ResourceEphemeralStorage]
	add(!cpu || !memory, "no request")
	add(extended, "extended resource")
	add(pages, "hugepages")
	add(storage, "ephemeral storage")
	add(pod.Spec.Overhead != nil, "overhead")
	add(pod.Spec.Resources != nil, "pod-level resources")
	add(pod.Spec.Priority != nil, "priority")
}

func addNodeTerms(pod *corev1.Pod, add func(bool, string)) {
	add(len(pod.Spec.NodeSelector) > 0, "node selector")
	add(len(pod.Spec.Tolerations) > 0, "tolerations")
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	add(len(terms) > 1, "node affinity, ORed terms")
	for _, t := range terms {
		for _, e := range t.MatchExpressions {
			add(true, "node affinity "+string(e.Operator))
			add(e.Key == corev1.LabelHostname, "node affinity to a host")
		}
		add(len(t.MatchFields) > 0, "node affinity matchFields")
	}
}

// keyKind names the topology keys that are drawn.
func keyKind(key string) string {
	switch key {
	case corev1.LabelTopologyZone:
		return "zone"
	case corev1.LabelHostname:
		return "hostname"
	case capacityTypeLabel:
		return "capacity type"
	}
	return "custom key"
}

func selects(s *metav1.LabelSelector, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

func addSpreads(pod *corev1.Pod, add func(bool, string)) {
	hard := 0
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			add(true, "spread, ScheduleAnyway")
			continue
		}
		hard++
		add(true, "spread over "+keyKind(c.TopologyKey))
		add(!selects(c.LabelSelector, pod), "spread of other pods")
		add(c.MaxSkew > 1, "spread, maxSkew above 1")
		add(c.MinDomains != nil && *c.MinDomains > 1, "spread, minDomains")
		add(c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
			"spread, nodeAffinityPolicy Ignore")
		add(c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
			"spread, nodeTaintsPolicy Honor")
		add(len(c.MatchLabelKeys) > 0, "spread, matchLabelKeys")
	}
	add(hard > 1, "several spreads")
}

func addTerms(what string, pod *corev1.Pod, terms []corev1.PodAffinityTerm, add func(bool, string)) {
	for _, t := range terms {
		add(true, what+" in "+keyKind(t.TopologyKey))
		own := selects(t.LabelSelector, pod) && len(t.Namespaces) == 0 && t.NamespaceSelector == nil
		add(own, what+" to its kind")
		add(!own, what+" to others")
		add(len(t.Namespaces) > 0, what+", namespaces")
		add(t.NamespaceSelector != nil, what+", namespaceSelector")
		add(len(t.MatchLabelKeys) > 0, what+", matchLabelKeys")
		add(len(t.MismatchLabelKeys) > 0, what+", mismatchLabelKeys")
	}
	add(len(terms) > 1, what+", several terms")
}

// keptAway tells whether a running pod wants none like this one beside it.
func keptAway(w *world, pod *corev1.Pod) bool {
	for _, other := range w.Pods {
		if other.Spec.NodeName == "" || other.Spec.Affinity == nil || other.Spec.Affinity.PodAntiAffinity == nil ||
			other.Namespace != pod.Namespace {
			continue
		}
		for _, t := range other.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if len(t.Namespaces) == 0 && t.NamespaceSelector == nil && selects(t.LabelSelector, pod) {
				return true
			}
		}
	}
	return false
}

func addVolumes(w *world, pod *corev1.Pod, add func(bool, string)) {
	limited := false
	for _, n := range w.CSINodes {
		limited = limited || n.Spec.Drivers[0].Allocatable != nil
	}
	for i := range pod.Spec.Volumes {
		name := claimName(pod, &pod.Spec.Volumes[i])
		add(pod.Spec.Volumes[i].Ephemeral != nil, "volume, ephemeral")
		add(limited, "volume, attach limit")
		add(strings.HasPrefix(name, "shared-"), "volume, shared")
		for _, c := range w.VolumeClaims {
			if c.Namespace != pod.Namespace || c.Name != name {
				continue
			}
			add(c.Spec.AccessModes[0] == corev1.ReadWriteOncePod, "volume, ReadWriteOncePod")
			add(c.Spec.VolumeName == "" && *c.Spec.StorageClassName == waits, "volume, WaitForFirstConsumer")
			add(c.Spec.VolumeName == "" && *c.Spec.StorageClassName == waitsZonal, "volume, allowedTopologies")
			add(c.Spec.VolumeName == "" && *c.Spec.StorageClassName == local, "volume, waits for one that is there")
			add(c.Spec.VolumeName != "", "volume, bound "+reach(w, c.Spec.VolumeName))
		}
	}
}

// reach says how a volume is tied to a place.
func reach(w *world, name string) string {
	for _, v := range w.Volumes {
		switch {
		case v.Name != name:
		case len(v.Labels) > 0:
			return "to a zone by label"
		case v.Spec.NodeAffinity == nil:
			return "to no place"
		case v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key == corev1.LabelHostname:
			return "to a host"
		}
	}
	return "to zones"
}

// poolKinds names what decided about a new node besides its pods.
func poolKinds(w *world, b *bin) []string {
	p := w.pool(b.Pool)
	var out []string
	add := func(holds bool, kind string) {
		if holds {
			out = append(out, kind)
		}
	}
	add(p.Spec.Weight != nil, "pool with weight")
	add(p.Spec.Limits != nil, "pool with limits")
	add(len(p.Spec.Template.Spec.Taints) > 0, "pool with taints")
	add(len(p.Spec.Template.Spec.StartupTaints) > 0, "pool with startup taints")
	add(asksForChoice(p), "pool with minValues")
	add(len(w.DaemonSets) > 0, "new node with daemonsets")
	_, open := b.Labels[rackLabel]
	add(open && p.Spec.Template.Metadata.Labels == nil, "new node with a label that its pods decided")
	add(b.Offerings[0].Reservation != "", "new node that is reserved")
	return out
}
