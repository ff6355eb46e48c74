package decode

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MostSelectorParts is how many labels, expressions, values, namespaces and label keys are read in all selectors of a
// pod about other pods, and in the selector of any other object. The bound is in docs/concepts/bounds.md.
const MostSelectorParts = 4096

// SelectorParts counts what a selector has of them.
func SelectorParts(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	n := len(s.MatchLabels)
	for i := range s.MatchExpressions {
		n += 1 + len(s.MatchExpressions[i].Values)
	}
	return n
}
