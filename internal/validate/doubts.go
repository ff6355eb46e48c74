package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/require"
)

// wellKnown lists all labels that instance types or offerings decide.
func (l Labels) wellKnown() []string {
	return slices.AppendSeq([]string{v1.NodePoolLabelKey, v1.CapacityTypeLabelKey,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable,
		corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild}, maps.Keys(l.WellKnown))
}

// Doubts are what is allowed in a pool and probably not meant: labels that differ from well-known ones in a letter or
// two, and limits of what no node has. As they stand such labels are the user's own, which every node of the pool gets
// and which choose nothing, and such limits limit nothing.
func Doubts(pool *v1.NodePool, labels Labels) []Problem {
	var out []Problem
	doubt := func(field, key string) {
		if key = NormalizeKey(key); labels.IsWellKnown(key) || labels.IsRestricted(key) {
			return
		}
		if meant := require.Nearest(key, labels.wellKnown()); meant != "" {
			out = append(out, Problem{
				Field: field, Value: key, Why: "is a label of your own and chooses no instance type",
				Fix: "if you mean " + meant + ", write that",
			})
		}
	}
	for i, r := range pool.Spec.Template.Spec.Requirements {
		doubt(fmt.Sprintf("spec.template.spec.requirements[%d].key", i), r.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(pool.Spec.Template.Labels)) {
		doubt("spec.template.metadata.labels", key)
	}
	return append(out, doubtfulLimits(pool.Spec.Limits)...)
}

// doubtfulLimits finds limits of resources that have no domain in their name and are none of Kubernetes' own.
func doubtfulLimits(limits corev1.ResourceList) []Problem {
	own := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourcePods),
		string(corev1.ResourceEphemeralStorage), "nodes"}
	var out []Problem
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		extended := strings.ContainsRune(string(name), '/')
		hugePages := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if extended || hugePages || slices.Contains(own, string(name)) {
			continue
		}
		fix := "the names are " + strings.Join(own, ", ") + ", and extended resources with their domain"
		if meant := require.Nearest(string(name), own); meant != "" {
			fix = "if you mean " + meant + ", write that"
		}
		out = append(out, Problem{
			Field: "spec.limits", Value: string(name), Why: "is a resource that no node has, and limits nothing",
			Fix: fix,
		})
	}
	return out
}
