package ingest

import (
	"encoding/binary"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// scribe writes the parts of a pod that its class is made from as bytes, so that a pod of a known shape is found by one
// look into a map instead of being read again. Two pods have the same bytes only if all those parts are equal: each
// string and each list carries its length. The buffer is used again for the next pod.
type scribe struct {
	bytes    []byte
	pairs    []cluster.Label
	requests []request
}

// shape writes a pod's shape. The result is valid until the next call.
func (s *scribe) shape(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) []byte {
	s.bytes = s.bytes[:0]
	s.labels(spec.NodeSelector)
	s.number(len(spec.Tolerations))
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		s.text(t.Key)
		s.text(t.Value)
		s.text(string(t.Operator))
		s.text(string(t.Effect))
	}
	if spec.Priority != nil {
		s.number(1)
		s.number(int(*spec.Priority))
	} else {
		s.number(0)
	}
	s.number(len(spec.ResourceClaims))
	s.containers(spec.Containers)
	s.containers(spec.InitContainers)
	s.resources(spec.Overhead)
	s.podLevel(spec, status)
	s.statuses(status)
	if spec.Affinity == nil && len(spec.TopologySpreadConstraints) == 0 {
		s.number(0)
		return s.bytes
	}
	s.number(1)
	s.ties(meta, spec)
	return s.bytes
}

func (s *scribe) containers(list []corev1.Container) {
	s.number(len(list))
	for i := range list {
		c := &list[i]
		s.text(c.Name) // it joins the container to its status
		s.resources(c.Resources.Requests)
		s.flag(c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways)
		s.number(len(c.Ports))
		for j := range c.Ports {
			p := &c.Ports[j]
			s.number(int(p.HostPort))
			if p.HostPort > 0 {
				s.text(p.HostIP)
				s.text(string(p.Protocol))
			}
		}
	}
}

func (s *scribe) podLevel(spec *corev1.PodSpec, status *corev1.PodStatus) {
	for _, r := range []*corev1.ResourceRequirements{spec.Resources, status.Resources} {
		s.flag(r != nil)
		if r != nil {
			s.resources(r.Requests)
		}
	}
	s.resources(status.AllocatedResources)
}

// statuses writes what a resize in place has given the containers.
func (s *scribe) statuses(status *corev1.PodStatus) {
	for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range list {
			c := &list[i]
			if c.Resources == nil && c.AllocatedResources == nil {
				continue
			}
			s.flag(true)
			s.text(c.Name)
			s.resources(c.AllocatedResources)
			s.flag(c.Resources != nil)
			if c.Resources != nil {
				s.resources(c.Resources.Requests)
			}
		}
		s.flag(false)
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodResizePending {
			s.text(c.Reason)
		}
	}
	s.flag(false)
}

// ties writes what a pod asks of nodes and of other pods. Here its namespace and labels matter, too.
func (s *scribe) ties(meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	s.text(meta.Namespace)
	a := spec.Affinity
	if a == nil {
		a = &corev1.Affinity{}
	}
	s.flag(a.NodeAffinity != nil)
	if a.NodeAffinity != nil {
		s.nodeAffinity(a.NodeAffinity)
	}
	s.flag(a.PodAffinity != nil)
	if p := a.PodAffinity; p != nil {
		s.affinity(meta, p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	s.flag(a.PodAntiAffinity != nil)
	if p := a.PodAntiAffinity; p != nil {
		s.affinity(meta, p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	s.number(len(spec.TopologySpreadConstraints))
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		s.text(c.TopologyKey)
		s.text(string(c.WhenUnsatisfiable))
		s.number(int(c.MaxSkew))
		s.selector(c.LabelSelector)
		s.own(meta, c.MatchLabelKeys)
		s.flag(c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore)
		s.flag(c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor)
		if c.MinDomains != nil {
			s.number(int(*c.MinDomains))
		} else {
			s.number(0)
		}
	}
}

func (s *scribe) nodeAffinity(a *corev1.NodeAffinity) {
	required := a.RequiredDuringSchedulingIgnoredDuringExecution
	s.flag(required != nil)
	if required != nil {
		s.number(len(required.NodeSelectorTerms))
		for i := range required.NodeSelectorTerms {
			s.nodeTerm(&required.NodeSelectorTerms[i])
		}
	}
	s.number(len(a.PreferredDuringSchedulingIgnoredDuringExecution))
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
		s.number(int(p.Weight))
		s.nodeTerm(&p.Preference)
	}
}

func (s *scribe) nodeTerm(t *corev1.NodeSelectorTerm) {
	for _, list := range [][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		s.number(len(list))
		for i := range list {
			s.text(list[i].Key)
			s.text(string(list[i].Operator))
			s.texts(list[i].Values)
		}
	}
}

func (s *scribe) affinity(meta *metav1.ObjectMeta, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	s.number(len(required))
	for i := range required {
		s.podTerm(meta, &required[i])
	}
	s.number(len(preferred))
	for i := range preferred {
		s.number(int(preferred[i].Weight))
		s.podTerm(meta, &preferred[i].PodAffinityTerm)
	}
}

func (s *scribe) podTerm(meta *metav1.ObjectMeta, t *corev1.PodAffinityTerm) {
	s.text(t.TopologyKey)
	s.texts(t.Namespaces)
	s.selector(t.NamespaceSelector)
	s.selector(t.LabelSelector)
	s.own(meta, t.MatchLabelKeys)
	s.own(meta, t.MismatchLabelKeys)
}

// own writes the pod's own values of the keys.
func (s *scribe) own(meta *metav1.ObjectMeta, keys []string) {
	s.number(len(keys))
	for _, key := range keys {
		value, has := meta.Labels[key]
		s.text(key)
		s.flag(has)
		s.text(value)
	}
}

func (s *scribe) selector(in *metav1.LabelSelector) {
	s.flag(in != nil)
	if in == nil {
		return
	}
	s.labels(in.MatchLabels)
	s.number(len(in.MatchExpressions))
	for i := range in.MatchExpressions {
		s.text(in.MatchExpressions[i].Key)
		s.text(string(in.MatchExpressions[i].Operator))
		s.texts(in.MatchExpressions[i].Values)
	}
}

// labels writes a map by rising key.
func (s *scribe) labels(m map[string]string) {
	s.number(len(m))
	if len(m) == 0 {
		return
	}
	s.pairs = s.pairs[:0]
	for key, value := range m {
		s.pairs = append(s.pairs, cluster.Label{Key: key, Value: value})
	}
	slices.SortFunc(s.pairs, func(a, b cluster.Label) int { return strings.Compare(a.Key, b.Key) })
	for i := range s.pairs {
		s.text(s.pairs[i].Key)
		s.text(s.pairs[i].Value)
	}
}

// request is an amount of a resource.
type request struct {
	name   string
	amount apiresource.Quantity
}

// resources writes a list by rising name; none is not the same as an empty one.
func (s *scribe) resources(list corev1.ResourceList) {
	s.flag(list != nil)
	s.number(len(list))
	if len(list) == 0 {
		return
	}
	s.requests = s.requests[:0]
	for name, q := range list {
		s.requests = append(s.requests, request{string(name), q})
	}
	slices.SortFunc(s.requests, func(a, b request) int { return strings.Compare(a.name, b.name) })
	for i := range s.requests {
		s.text(s.requests[i].name)
		s.quantity(&s.requests[i].amount)
	}
}

// quantity writes an amount to its last digit. Amounts that are equal may be written in two ways (1 and 1000m), which
// costs a second shape and no harm: the class they lead to is the same.
func (s *scribe) quantity(q *apiresource.Quantity) {
	if n, ok := q.AsInt64(); ok {
		s.number(0)
		s.number(int(n))
		return
	}
	const nanoRange = 1 << 33 // as many units can be counted in billionths
	if q.CmpInt64(nanoRange) < 0 && q.CmpInt64(-nanoRange) > 0 {
		s.number(1)
		s.number(int(q.ScaledValue(apiresource.Nano)))
		return
	}
	s.number(2)
	s.text(q.String())
}

func (s *scribe) texts(list []string) {
	s.number(len(list))
	for _, t := range list {
		s.text(t)
	}
}

func (s *scribe) text(t string) {
	s.bytes = binary.AppendUvarint(s.bytes, uint64(len(t)))
	s.bytes = append(s.bytes, t...)
}

func (s *scribe) number(n int) { s.bytes = binary.AppendVarint(s.bytes, int64(n)) }

func (s *scribe) flag(f bool) {
	if f {
		s.bytes = append(s.bytes, 1)
		return
	}
	s.bytes = append(s.bytes, 0)
}
