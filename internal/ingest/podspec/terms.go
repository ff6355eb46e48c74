package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/validate"
)

// NameField is the one field of a node that affinity may ask for. It is kept like a label: a node answers with its
// name, and nothing that can be bought has one yet.
const NameField = "metadata.name"

// termsOf writes node selector and required node affinity as alternatives.
func termsOf(spec *corev1.PodSpec) (terms []require.Set, unsupported []string) {
	entries := make([]require.Entry, 0, len(spec.NodeSelector))
	for key, value := range spec.NodeSelector {
		entries = append(entries, require.Entry{Key: validate.NormalizeKey(key), Values: require.Only(value)})
	}
	base := require.Of(entries)
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil ||
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return []require.Set{base}, nil
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			continue // such a term matches no node
		}
		set, problem := nodeTerm(base, &term)
		if problem != "" {
			unsupported = append(unsupported, problem)
		}
		terms = append(terms, set)
	}
	if len(terms) == 0 {
		return []require.Set{base}, append(unsupported, "nodeAffinity whose terms are all empty and match no node")
	}
	return terms, unsupported
}

// nodeTerm adds one term of a node affinity to a set; bad says what in it can't be read.
func nodeTerm(set require.Set, term *corev1.NodeSelectorTerm) (out require.Set, problem string) {
	set, problem = expressions(set, term.MatchExpressions)
	if problem != "" {
		return set, problem
	}
	for _, f := range term.MatchFields {
		in := f.Operator == corev1.NodeSelectorOpIn || f.Operator == corev1.NodeSelectorOpNotIn
		if f.Key != NameField || !in || len(f.Values) != 1 {
			return set, fmt.Sprintf("nodeAffinity matchFields with %s %s %s", f.Key, f.Operator, someOf(f.Values))
		}
		values, _ := require.Make(require.Operator(f.Operator), f.Values)
		set = set.With(NameField, values)
	}
	return set, ""
}

func expressions(set require.Set, list []corev1.NodeSelectorRequirement) (out require.Set, problem string) {
	entries := make([]require.Entry, 0, len(list))
	for _, e := range list {
		values, ok := require.Make(require.Operator(e.Operator), e.Values)
		if !ok {
			return set, fmt.Sprintf("nodeAffinity with %s %s %s", e.Key, e.Operator, someOf(e.Values))
		}
		entries = append(entries, require.Entry{Key: validate.NormalizeKey(e.Key), Values: values})
	}
	return set.And(require.Of(entries)), ""
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
			Key: t.Key, Value: t.Value, Exists: t.Operator == corev1.TolerationOpExists,
			Effect: cluster.Effect(t.Effect)})
	}
	return out
}
