package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// identity is what makes two taints of a node the same one.
type identity struct {
	key    string
	effect corev1.TaintEffect
}

// taints checks both lists together: the node gets them all, so a pair of key and effect may stand only once in both.
func taints(field string, lasting, startup []v1.Taint) []Problem {
	seen := map[identity]string{}
	problems := taintList(field+".taints", lasting, seen)
	return append(problems, taintList(field+".startupTaints", startup, seen)...)
}

func taintList(field string, list []v1.Taint, seen map[identity]string) []Problem {
	var problems []Problem
	for i, t := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		problems = append(problems, taint(at, t)...)
		id := identity{t.Key, t.Effect}
		if first, ok := seen[id]; ok {
			problems = append(problems, Problem{
				Field: at,
				Value: fmt.Sprintf("%s:%s", t.Key, t.Effect),
				Why:   "has the key and effect of " + first,
				Fix:   "remove one of them",
			})
			continue
		}
		seen[id] = at
	}
	return problems
}

func taint(at string, t v1.Taint) []Problem {
	var problems []Problem
	for _, why := range validation.IsQualifiedName(t.Key) {
		problems = append(problems, Problem{
			Field: at + ".key", Value: t.Key, Why: "is not the key of a taint: " + why, Fix: "correct the key",
		})
	}
	if t.Value != "" {
		for _, why := range validation.IsQualifiedName(t.Value) {
			problems = append(problems, Problem{
				Field: at + ".value", Value: t.Value, Why: "is not the value of a taint: " + why,
				Fix: "correct the value",
			})
		}
	}
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute, "":
		return problems
	}
	return append(problems, Problem{
		Field: at + ".effect",
		Value: string(t.Effect),
		Why:   "is not the effect of a taint",
		Fix:   "use NoSchedule, PreferNoSchedule or NoExecute",
	})
}
