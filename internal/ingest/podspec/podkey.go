package podspec

import (
	"encoding/binary"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// podKeyWriter writes the parts of a pod that its class is made from as bytes, so that a pod of a known pod key is
// found by one look into a map instead of being read again. Two pods have the same bytes only if all those parts are
// equal: each string and each list carries its length. The buffer is used again for the next pod.
type podKeyWriter struct {
	bytes    []byte
	pairs    []cluster.Label
	requests []Request
}

// podKey writes a pod's pod key. The result is valid until the next call.
func (w *podKeyWriter) podKey(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) []byte {
	w.bytes = w.bytes[:0]
	w.labels(spec.NodeSelector)
	w.number(len(spec.Tolerations))
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		w.text(t.Key)
		w.text(t.Value)
		w.text(string(t.Operator))
		w.text(string(t.Effect))
	}
	if spec.Priority != nil {
		w.number(1)
		w.number(int(*spec.Priority))
	} else {
		w.number(0)
	}
	w.number(len(spec.ResourceClaims))
	w.containers(spec.Containers)
	w.containers(spec.InitContainers)
	w.resources(spec.Overhead)
	w.podLevel(spec, status)
	w.statuses(status)
	if spec.Affinity == nil && len(spec.TopologySpreadConstraints) == 0 {
		w.number(0)
		return w.bytes
	}
	w.number(1)
	w.rules(meta, spec)
	return w.bytes
}

func (w *podKeyWriter) containers(list []corev1.Container) {
	w.number(len(list))
	for i := range list {
		c := &list[i]
		w.text(c.Name) // it joins the container to its status
		w.resources(c.Resources.Requests)
		w.flag(c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways)
		w.number(len(c.Ports))
		for j := range c.Ports {
			p := &c.Ports[j]
			w.number(int(p.HostPort))
			if p.HostPort > 0 {
				w.text(p.HostIP)
				w.text(string(p.Protocol))
			}
		}
	}
}

func (w *podKeyWriter) podLevel(spec *corev1.PodSpec, status *corev1.PodStatus) {
	for _, r := range []*corev1.ResourceRequirements{spec.Resources, status.Resources} {
		w.flag(r != nil)
		if r != nil {
			w.resources(r.Requests)
		}
	}
	w.resources(status.AllocatedResources)
}

// statuses writes what a resize in place has given the containers.
func (w *podKeyWriter) statuses(status *corev1.PodStatus) {
	for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range list {
			c := &list[i]
			if c.Resources == nil && c.AllocatedResources == nil {
				continue
			}
			w.flag(true)
			w.text(c.Name)
			w.resources(c.AllocatedResources)
			w.flag(c.Resources != nil)
			if c.Resources != nil {
				w.resources(c.Resources.Requests)
			}
		}
		w.flag(false)
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodResizePending {
			w.text(c.Reason)
		}
	}
	w.flag(false)
}

// rules writes what a pod asks of nodes and of other pods. Here its namespace and labels matter, too.
func (w *podKeyWriter) rules(meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	w.text(meta.Namespace)
	a := spec.Affinity
	if a == nil {
		a = &corev1.Affinity{}
	}
	w.flag(a.NodeAffinity != nil)
	if a.NodeAffinity != nil {
		w.nodeAffinity(a.NodeAffinity)
	}
	w.flag(a.PodAffinity != nil)
	if p := a.PodAffinity; p != nil {
		w.affinity(meta, p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	w.flag(a.PodAntiAffinity != nil)
	if p := a.PodAntiAffinity; p != nil {
		w.affinity(meta, p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	w.number(len(spec.TopologySpreadConstraints))
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		w.text(c.TopologyKey)
		w.text(string(c.WhenUnsatisfiable))
		w.number(int(c.MaxSkew))
		w.selector(c.LabelSelector)
		w.ownLabels(meta, c.MatchLabelKeys)
		w.flag(c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore)
		w.flag(c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor)
		if c.MinDomains != nil {
			w.number(int(*c.MinDomains))
		} else {
			w.number(0)
		}
	}
}

func (w *podKeyWriter) nodeAffinity(a *corev1.NodeAffinity) {
	required := a.RequiredDuringSchedulingIgnoredDuringExecution
	w.flag(required != nil)
	if required != nil {
		w.number(len(required.NodeSelectorTerms))
		for i := range required.NodeSelectorTerms {
			w.nodeTerm(&required.NodeSelectorTerms[i])
		}
	}
	w.number(len(a.PreferredDuringSchedulingIgnoredDuringExecution))
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
		w.number(int(p.Weight))
		w.nodeTerm(&p.Preference)
	}
}

func (w *podKeyWriter) nodeTerm(t *corev1.NodeSelectorTerm) {
	for _, list := range [][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		w.number(len(list))
		for i := range list {
			w.text(list[i].Key)
			w.text(string(list[i].Operator))
			w.texts(list[i].Values)
		}
	}
}

func (w *podKeyWriter) affinity(meta *metav1.ObjectMeta, required []corev1.PodAffinityTerm,
	preferred []corev1.WeightedPodAffinityTerm) {
	w.number(len(required))
	for i := range required {
		w.podTerm(meta, &required[i])
	}
	w.number(len(preferred))
	for i := range preferred {
		w.number(int(preferred[i].Weight))
		w.podTerm(meta, &preferred[i].PodAffinityTerm)
	}
}

func (w *podKeyWriter) podTerm(meta *metav1.ObjectMeta, t *corev1.PodAffinityTerm) {
	w.text(t.TopologyKey)
	w.texts(t.Namespaces)
	w.selector(t.NamespaceSelector)
	w.selector(t.LabelSelector)
	w.ownLabels(meta, t.MatchLabelKeys)
	w.ownLabels(meta, t.MismatchLabelKeys)
}

// ownLabels writes the pod's own values of the keys.
func (w *podKeyWriter) ownLabels(meta *metav1.ObjectMeta, keys []string) {
	w.number(len(keys))
	for _, key := range keys {
		value, has := meta.Labels[key]
		w.text(key)
		w.flag(has)
		w.text(value)
	}
}

func (w *podKeyWriter) selector(in *metav1.LabelSelector) {
	w.flag(in != nil)
	if in == nil {
		return
	}
	w.labels(in.MatchLabels)
	w.number(len(in.MatchExpressions))
	for i := range in.MatchExpressions {
		w.text(in.MatchExpressions[i].Key)
		w.text(string(in.MatchExpressions[i].Operator))
		w.texts(in.MatchExpressions[i].Values)
	}
}

// labels writes a map by rising key.
func (w *podKeyWriter) labels(m map[string]string) {
	w.number(len(m))
	if len(m) == 0 {
		return
	}
	w.pairs = w.pairs[:0]
	for key, value := range m {
		w.pairs = append(w.pairs, cluster.Label{Key: key, Value: value})
	}
	slices.SortFunc(w.pairs, func(a, b cluster.Label) int { return strings.Compare(a.Key, b.Key) })
	for i := range w.pairs {
		w.text(w.pairs[i].Key)
		w.text(w.pairs[i].Value)
	}
}

// Request is an amount of a resource.
type Request struct {
	Name   string
	Amount apiresource.Quantity
}

// resources writes a list by rising name; none is not the same as an empty one.
func (w *podKeyWriter) resources(list corev1.ResourceList) {
	w.flag(list != nil)
	w.number(len(list))
	if len(list) == 0 {
		return
	}
	w.requests = w.requests[:0]
	for name, q := range list {
		w.requests = append(w.requests, Request{string(name), q})
	}
	slices.SortFunc(w.requests, func(a, b Request) int { return strings.Compare(a.Name, b.Name) })
	for i := range w.requests {
		w.text(w.requests[i].Name)
		w.quantity(&w.requests[i].Amount)
	}
}

// quantity writes an amount to its last digit. Amounts that are equal may be written in two ways (1 and 1000m), which
// costs a second pod key and no harm: the class they lead to is the same.
func (w *podKeyWriter) quantity(q *apiresource.Quantity) {
	if n, ok := q.AsInt64(); ok {
		w.number(0)
		w.number(int(n))
		return
	}
	const nanoRange = 1 << 33 // as many units can be counted in billionths
	if q.CmpInt64(nanoRange) < 0 && q.CmpInt64(-nanoRange) > 0 {
		w.number(1)
		w.number(int(q.ScaledValue(apiresource.Nano)))
		return
	}
	w.number(2)
	w.text(q.String())
}

func (w *podKeyWriter) texts(list []string) {
	w.number(len(list))
	for _, t := range list {
		w.text(t)
	}
}

func (w *podKeyWriter) text(t string) {
	w.bytes = binary.AppendUvarint(w.bytes, uint64(len(t)))
	w.bytes = append(w.bytes, t...)
}

func (w *podKeyWriter) number(n int) { w.bytes = binary.AppendVarint(w.bytes, int64(n)) }

func (w *podKeyWriter) flag(f bool) {
	if f {
		w.bytes = append(w.bytes, 1)
		return
	}
	w.bytes = append(w.bytes, 0)
}
