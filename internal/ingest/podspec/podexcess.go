package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// How much of each list of a pod is read. Everything below is handled in proportion to its size; a pod with more is not
// planned for and says why. Each bound is far above what people write and small enough that one pod costs milliseconds.
// They are listed in docs/concepts/bounds.md.
const (
	MostSelectorLabels  = 256    // spec.nodeSelector
	MostNodeTerms       = 256    // node affinity: required terms, and as many preferred ones
	MostNodeExpressions = 2048   // node affinity: expressions in all terms
	MostNodeValues      = 20_000 // node affinity: values in all expressions
	mostNodeEntries     = 4096   // the labels of the node selector once for each required term, and their expressions
	MostPodTerms        = 200    // terms of pod affinity and anti-affinity, required and preferred
	MostSpreads         = 64     // spec.topologySpreadConstraints
	MostTolerations     = 512
	MostContainers      = 1024 // init containers included
	MostHostPorts       = 2048
	MostResources       = 64   // kinds of resource that all containers together ask for
	mostRequests        = 8192 // entries in the requests of all containers
	MostVolumes         = 512
	MostPlaces          = 1024 // terms in a volume's node affinity, or in a storage class's allowed topologies
)

// podExcess is what a pod has too much of.
type podExcess struct {
	node, podRules, tolerations, resources, ports bool
	messages                                      []string
}

func (x *podExcess) isAny() bool { return len(x.messages) > 0 }

// check notes that a list is too long, and reports whether it is.
func (x *podExcess) check(have, most int, field, fix string) bool {
	if have <= most {
		return false
	}
	x.messages = append(x.messages, fmt.Sprintf("%s: %d found, at most %d are read; %s", field, have, most, fix))
	return true
}

// podExcessOf measures what a pod asks for. It costs a fraction of reading it.
func podExcessOf(spec *corev1.PodSpec) podExcess {
	var x podExcess
	x.node = x.check(len(spec.NodeSelector), MostSelectorLabels, "labels in spec.nodeSelector",
		"select nodes by fewer labels")
	if a := spec.Affinity; a != nil {
		if a.NodeAffinity != nil {
			x.nodeAffinity(a.NodeAffinity, len(spec.NodeSelector))
		}
		x.podAffinity(a)
	}
	x.spreads(spec.TopologySpreadConstraints)
	x.tolerations = x.check(len(spec.Tolerations), MostTolerations, "spec.tolerations", "tolerate several taints by "+
		"one toleration without a value or a key")
	x.check(len(spec.Containers)+len(spec.InitContainers), MostContainers, "containers and init containers",
		"split the pod")
	ports, requests, longest := 0, 0, 0
	for _, list := range [2][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			n := len(list[i].Resources.Requests)
			ports, requests, longest = ports+len(list[i].Ports), requests+n, max(longest, n)
		}
	}
	x.resources = x.check(longest, MostResources, "resources in the requests of a container", "ask for fewer kinds "+
		"of resource") ||
		x.check(requests, mostRequests, "requests of all containers", "split the pod")
	if ports > MostHostPorts {
		x.ports = x.check(len(portsOf(spec)), MostHostPorts, "host ports of containers", "name fewer host ports")
	}
	if len(spec.Volumes) > MostVolumes {
		x.check(countSources(spec), MostVolumes, "spec.volumes with claims or disks", "use fewer volumes or split "+
			"the pod")
	}
	return x
}

func (x *podExcess) nodeAffinity(a *corev1.NodeAffinity, labels int) {
	const field, fix = "spec.affinity.nodeAffinity", "list several values in one expression"
	terms, expressions, values := 0, 0, 0
	add := func(t *corev1.NodeSelectorTerm) {
		for _, list := range [2][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
			expressions += len(list)
			for i := range list {
				values += len(list[i].Values)
			}
		}
	}
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms = len(required.NodeSelectorTerms)
		for i := range required.NodeSelectorTerms {
			add(&required.NodeSelectorTerms[i])
		}
	}
	entries := terms*labels + expressions
	preferred := a.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range preferred {
		add(&preferred[i].Preference)
	}
	problem := x.check(terms, MostNodeTerms, "required terms in "+field, fix)
	problem = x.check(len(preferred), MostNodeTerms, "preferred terms in "+field, fix) || problem
	problem = x.check(expressions, MostNodeExpressions, "expressions in "+field, fix) || problem
	problem = x.check(values, MostNodeValues, "values in "+field, "select nodes by a label that they share") || problem
	problem = problem || x.check(entries, mostNodeEntries, "labels of spec.nodeSelector, once for each term, and "+
		"expressions in "+field, "ask for fewer labels in spec.nodeSelector")
	x.node = x.node || problem
}

func (x *podExcess) podAffinity(a *corev1.Affinity) {
	terms, parts := 0, 0
	required := func(list []corev1.PodAffinityTerm) {
		terms += len(list)
		for i := range list {
			parts += termParts(&list[i])
		}
	}
	preferred := func(list []corev1.WeightedPodAffinityTerm) {
		terms += len(list)
		for i := range list {
			parts += termParts(&list[i].PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		required(p.RequiredDuringSchedulingIgnoredDuringExecution)
		preferred(p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		required(p.RequiredDuringSchedulingIgnoredDuringExecution)
		preferred(p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	x.podRules = x.check(terms, MostPodTerms, "terms of pod affinity and anti-affinity in spec.affinity",
		"use fewer terms with wider selectors")
	x.podRules = x.check(parts, decode.MostSelectorParts, "labels, expressions, values and namespaces in the pod "+
		"terms of "+
		"spec.affinity",
		"select pods by a label that they share") || x.podRules
}

func termParts(t *corev1.PodAffinityTerm) int {
	return decode.SelectorParts(t.LabelSelector) + decode.SelectorParts(t.NamespaceSelector) + len(t.Namespaces) +
		len(t.MatchLabelKeys) + len(t.MismatchLabelKeys)
}

func (x *podExcess) spreads(list []corev1.TopologySpreadConstraint) {
	const field = "spec.topologySpreadConstraints"
	parts := 0
	for i := range list {
		parts += decode.SelectorParts(list[i].LabelSelector) + len(list[i].MatchLabelKeys)
	}
	problem := x.check(len(list), MostSpreads, field, "spread over fewer topology keys")
	problem = x.check(parts, decode.MostSelectorParts, "labels, expressions and values in "+field,
		"select pods by a label "+
			"that they share") || problem
	x.podRules = x.podRules || problem
}

// strip is the pod's spec without the lists that are too long. What the pod takes of its node is still counted in full.
func (x *podExcess) strip(spec *corev1.PodSpec) *corev1.PodSpec {
	out := *spec
	if x.node {
		out.NodeSelector = nil
	}
	if a := spec.Affinity; a != nil && (x.node || x.podRules) {
		kept := *a
		if x.node {
			kept.NodeAffinity = nil
		}
		if x.podRules {
			kept.PodAffinity, kept.PodAntiAffinity = nil, nil
		}
		out.Affinity = &kept
	}
	if x.podRules {
		out.TopologySpreadConstraints = nil
	}
	if x.tolerations {
		out.Tolerations = drainTolerations(spec.Tolerations)
	}
	if x.ports || x.resources {
		out.Containers, out.InitContainers = x.stripContainers(spec.Containers), x.stripContainers(spec.InitContainers)
	}
	return &out
}

// drainTolerations are those that keep a pod from being drained: they matter to a pod that runs, whatever else it has.
func drainTolerations(list []corev1.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range list {
		if len(out) < MostTolerations && (t.Key == "" || t.Key == cluster.DisruptedTaint) {
			out = append(out, t)
		}
	}
	return out
}

// stripContainers are the containers without the lists that are too long. Of the requests, those stay that every node
// has.
func (x *podExcess) stripContainers(list []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(list))
	for i := range list {
		out[i] = list[i]
		if x.ports {
			out[i].Ports = nil
		}
		if !x.resources {
			continue
		}
		out[i].Resources.Requests = make(corev1.ResourceList)
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory,
			corev1.ResourceEphemeralStorage} {
			if q, has := list[i].Resources.Requests[name]; has {
				out[i].Resources.Requests[name] = q
			}
		}
	}
	return out
}

// countSources counts the volumes that matter to where a pod may run.
func countSources(spec *corev1.PodSpec) int {
	n := 0
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		inline, _ := decode.InlineDisk(v)
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil ||
			inline != "" {
			n++
		}
	}
	return n
}

// mostNamed is how many of a list a sentence names.
const mostNamed = 3

// someOf writes a list for people, its first entries only if it is long.
func someOf(list []string) string {
	if more := len(list) - mostNamed; more > 1 {
		return fmt.Sprintf("[%s and %d more]", strings.Join(list[:mostNamed], " "), more)
	}
	return fmt.Sprint(list)
}

// FirstFew are the first reasons of a list that a person would read, and how many more there are.
func FirstFew(reasons []string) []string {
	if more := len(reasons) - mostNamed; more > 1 {
		return append(reasons[:mostNamed:mostNamed], fmt.Sprintf("and %d more of the kind", more))
	}
	return reasons
}
