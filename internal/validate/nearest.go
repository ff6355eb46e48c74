package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// mostSlips is how many letters a mistyped name may differ in; of a short name, one in four.
const mostSlips = 2

// Nearest is the name that was probably meant: the one of the names that differs from the word in the fewest letters; empty if
// all are too far away or the word is one of them.
func Nearest(word string, names []string) string {
	best, slips := "", min(mostSlips, len(word)/4)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if name == word {
			return ""
		}
		if d := distance(word, name, slips); d < slips {
			best, slips = name, d
		}
	}
	return best
}

// distance is how many letters must be put in, taken out or changed, or how many neighbours swapped, to make b of a; most, if
// they are at least as many.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	// rows[i%3][j] is the distance between the first i letters of a and the first j of b.
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for i := range len(a) + 1 {
		row, before, twoBefore := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		for j := range len(b) + 1 {
			switch {
			case i == 0:
				row[j] = j
			case j == 0:
				row[j] = i
			case a[i-1] == b[j-1]:
				row[j] = before[j-1]
			default:
				row[j] = 1 + min(before[j-1], before[j], row[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					row[j] = min(row[j], 1+twoBefore[j-2])
				}
			}
		}
	}
	return min(rows[len(a)%3][len(b)], most)
}

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
		if meant := Nearest(key, labels.wellKnown()); meant != "" {
			out = append(out, Problem{Field: field, Value: key, Why: "is a label of your own and chooses no instance type", Fix: "if you mean " + meant + ", write that"})
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
		if meant := Nearest(string(name), own); meant != "" {
			fix = "if you mean " + meant + ", write that"
		}
		out = append(out, Problem{
			Field: "spec.limits", Value: string(name), Why: "is a resource that no node has, and limits nothing", Fix: fix,
		})
	}
	return out
}
