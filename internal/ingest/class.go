package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// classOf finds or makes the class of a pod. The key is a hash over text, not over numbers that depend on what else is
// in the cluster, so it survives a restart. The lock is held.
func (b *Book) classOf(spec *corev1.PodSpec, status *corev1.PodStatus) *cluster.PodClass {
	requests := podRequests(spec, status)
	terms, unsupported := termsOf(spec)
	unsupported = append(unsupported, unsupportedOf(spec)...)
	tolerations := tolerationsOf(spec.Tolerations)
	priority := int32(0)
	if spec.Priority != nil {
		priority = *spec.Priority
	}

	text := new(strings.Builder)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		q := requests[name]
		fmt.Fprintf(text, "%s=%s\n", name, q.String())
	}
	for _, term := range terms {
		fmt.Fprintf(text, "term %s\n", term)
	}
	fmt.Fprintf(text, "%+v\n%d\n%q\n", tolerations, priority, unsupported)
	sum := sha256.Sum256([]byte(text.String()))
	key := hex.EncodeToString(sum[:8])
	if class := b.classes[key]; class != nil {
		return class
	}
	class := &cluster.PodClass{Key: key, Terms: terms, Tolerations: tolerations, Priority: priority, Unsupported: unsupported}
	class.Requests, class.Unsupported = b.demand(requests, unsupported)
	b.classes[key] = class
	return class
}

// podRequests sums up what a pod takes, by Kubernetes' own rules, its slot included.
func podRequests(spec *corev1.PodSpec, status *corev1.PodStatus) corev1.ResourceList {
	requests := resourcehelper.PodRequests(&corev1.Pod{Spec: *spec, Status: *status}, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	out := make(corev1.ResourceList, len(requests)+1)
	for name, q := range requests {
		if !q.IsZero() {
			out[name] = q
		}
	}
	out[corev1.ResourcePods] = *oneSlot()
	return out
}

// demand turns requests into a vector, numbering resources that are new. A pod that asks for more kinds of resource
// than can be told apart is not planned for.
func (b *Book) demand(list corev1.ResourceList, unsupported []string) (resource.Vector, []string) {
	var v resource.Vector
	for _, name := range slices.Sorted(maps.Keys(list)) {
		dim, ok := b.names.Index(string(name))
		if !ok {
			unsupported = append(unsupported, fmt.Sprintf("resource %s (more than %d kinds of resource are in use)", name, resource.Size))
			continue
		}
		v[dim] = amount(dim, list[name])
	}
	return v, unsupported
}

// measure turns a capacity into a vector over the resources that somebody has asked for.
func (b *Book) measure(list corev1.ResourceList) resource.Vector {
	var v resource.Vector
	for name, q := range list {
		if dim, ok := b.names.Lookup(string(name)); ok {
			v[dim] = amount(dim, q)
		}
	}
	return v
}

// termsOf writes node selector and required node affinity as alternatives.
func termsOf(spec *corev1.PodSpec) (terms []require.Set, unsupported []string) {
	var base require.Set
	for key, value := range spec.NodeSelector {
		base = base.With(validate.NormalizeKey(key), require.Only(value))
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil ||
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return []require.Set{base}, nil
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchFields) > 0 {
			unsupported = append(unsupported, "nodeAffinity matchFields")
		}
		if len(term.MatchExpressions) == 0 {
			continue // such a term matches no node
		}
		set, bad := expressions(base, term.MatchExpressions)
		if bad != "" {
			unsupported = append(unsupported, bad)
		}
		terms = append(terms, set)
	}
	if len(terms) == 0 && len(unsupported) == 0 {
		unsupported = append(unsupported, "nodeAffinity whose terms are all empty and match no node")
	}
	if len(terms) == 0 {
		terms = []require.Set{base}
	}
	return terms, unsupported
}

func expressions(set require.Set, list []corev1.NodeSelectorRequirement) (out require.Set, bad string) {
	for _, e := range list {
		values, ok := require.Make(require.Operator(e.Operator), e.Values)
		if !ok {
			return set, fmt.Sprintf("nodeAffinity with %s %s %v", e.Key, e.Operator, e.Values)
		}
		set = set.With(validate.NormalizeKey(e.Key), values)
	}
	return set, ""
}

func tolerationsOf(list []corev1.Toleration) []cluster.Toleration {
	var out []cluster.Toleration
	for _, t := range list {
		switch t.Operator {
		case "", corev1.TolerationOpEqual, corev1.TolerationOpExists:
		default:
			continue // it compares numbers, which clusters don't do by default: such a toleration helps nobody there
		}
		out = append(out, cluster.Toleration{
			Key: t.Key, Value: t.Value, Exists: t.Operator == corev1.TolerationOpExists, Effect: cluster.Effect(t.Effect)})
	}
	return out
}

// unsupportedOf names what a pod insists on and the planner does not weigh. Preferences are not among it: a node that
// does not meet them still helps.
func unsupportedOf(spec *corev1.PodSpec) []string {
	var out []string
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			out = append(out, "required pod affinity")
		}
		if a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			out = append(out, "required pod anti-affinity")
		}
	}
	for _, c := range spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			out = append(out, "topology spread over "+c.TopologyKey)
		}
	}
	for _, v := range spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			out = append(out, "persistent volume "+v.Name)
		}
	}
	for _, c := range spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				out = append(out, fmt.Sprintf("host port %d", port.HostPort))
			}
		}
	}
	if len(spec.ResourceClaims) > 0 {
		out = append(out, "dynamic resource claims")
	}
	return out
}
