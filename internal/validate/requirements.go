package validate

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// KnownValues splits the values of a requirement into those that mean something for its key and those that don't. Only
// karpenter.sh/capacity-type has a fixed set; every value of another key is known.
func KnownValues(key string, values []string) (known, unknown []string) {
	if NormalizeKey(key) != v1.CapacityTypeLabelKey {
		return values, nil
	}
	for _, value := range values {
		switch value {
		case v1.CapacityTypeSpot, v1.CapacityTypeOnDemand, v1.CapacityTypeReserved:
			known = append(known, value)
		default:
			unknown = append(unknown, value)
		}
	}
	return known, unknown
}

func requirements(field string, list []v1.NodeSelectorRequirementWithMinValues, labels Labels) []Problem {
	var problems []Problem
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		problems = append(problems, labelKey(at+".key", NormalizeKey(r.Key), labels)...)
		problems = append(problems, operands(at, r)...)
		for j, value := range r.Values {
			for _, why := range validation.IsValidLabelValue(value) {
				problems = append(problems, badLabelValue(fmt.Sprintf("%s.values[%d]", at, j), value, why))
			}
		}
		problems = append(problems, minValues(at, r)...)
	}
	return problems
}

// operands checks that the values are such that the operator can work with them.
func operands(at string, r v1.NodeSelectorRequirementWithMinValues) []Problem {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return inOperands(at, r)
	case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return nil
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, v1.NodeSelectorOpGte, v1.NodeSelectorOpLte:
		if len(r.Values) == 1 && isWholeNumber(r.Values[0]) {
			return nil
		}
		return []Problem{{
			Field: at + ".values",
			Value: strings.Join(r.Values, ", "),
			Why:   fmt.Sprintf("does not go with operator %s for %s", r.Operator, r.Key),
			Fix:   "give exactly one whole number of 0 or more",
		}}
	}
	return []Problem{{
		Field: at + ".operator",
		Value: string(r.Operator),
		Why:   "is not an operator",
		Fix:   "use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte",
	}}
}

func inOperands(at string, r v1.NodeSelectorRequirementWithMinValues) []Problem {
	if len(r.Values) == 0 {
		return []Problem{{
			Field: at + ".values",
			Why:   fmt.Sprintf("is empty, so operator In for %s allows nothing", r.Key),
			Fix:   "add a value, or use operator Exists",
		}}
	}
	if known, _ := KnownValues(r.Key, r.Values); len(known) == 0 {
		return []Problem{{
			Field: at + ".values",
			Value: strings.Join(r.Values, ", "),
			Why:   "holds no value that " + r.Key + " can have",
			Fix: fmt.Sprintf("use %s, %s or %s", v1.CapacityTypeSpot, v1.CapacityTypeOnDemand,
				v1.CapacityTypeReserved),
		}}
	}
	return nil
}

func minValues(at string, r v1.NodeSelectorRequirementWithMinValues) []Problem {
	if r.MinValues == nil {
		return nil
	}
	least := *r.MinValues
	if least < 1 || least > 50 {
		return []Problem{{
			Field: at + ".minValues", Value: strconv.Itoa(least), Why: "is out of range", Fix: "use 1 to 50",
		}}
	}
	known, _ := KnownValues(r.Key, r.Values)
	if r.Operator != corev1.NodeSelectorOpIn || len(known) == 0 || len(known) >= least {
		return nil
	}
	return []Problem{{
		Field: at + ".minValues",
		Value: strconv.Itoa(least),
		Why:   fmt.Sprintf("is greater than the %d usable values of %s", len(known), r.Key),
		Fix:   "add values or lower minValues",
	}}
}

func isWholeNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0
}
