package choose

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Allows tells whether a node whose label has the value, or that lacks the label if exists is false, meets the
// requirement. A requirement that can't be understood is met by nothing.
func Allows(r *v1.NodeSelectorRequirementWithMinValues, value string, exists bool) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return exists && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !exists || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return exists
	case corev1.NodeSelectorOpDoesNotExist:
		return !exists
	default:
		return exists && compares(r, value)
	}
}

// compares is Allows for the operators that compare whole numbers.
func compares(r *v1.NodeSelectorRequirementWithMinValues, value string) bool {
	if len(r.Values) != 1 {
		return false
	}
	have, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	bound, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil {
		return false
	}
	switch r.Operator {
	case corev1.NodeSelectorOpGt:
		return have > bound
	case corev1.NodeSelectorOpLt:
		return have < bound
	case v1.NodeSelectorOpGte:
		return have >= bound
	case v1.NodeSelectorOpLte:
		return have <= bound
	default:
		return false
	}
}
