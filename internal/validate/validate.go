// Package validate checks NodePools and NodeClaims for what the API server can't check from a schema: names that need
// more than a pattern, labels that the controller or the cloud provider owns, duplicates across lists, schedules.
//
// It stands on floor 3, because it knows Kubernetes objects; it does no input or output and holds no state. What it
// finds is data: the caller turns the problems of a NodePool into its ValidationSucceeded condition.
package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Problem is one thing that is wrong with an object, in words for the person who wrote it.
type Problem struct {
	// Field is the path of the field, such as spec.template.spec.taints[0].key.
	Field string
	// Value is what stands there; empty if nothing does.
	Value string
	// Why says what is wrong with it.
	Why string
	// Fix says what to do.
	Fix string
}

// String returns the problem as one line.
func (p Problem) String() string {
	where := p.Field
	if p.Value != "" {
		where += " " + strconv.Quote(p.Value)
	}
	return fmt.Sprintf("%s %s; %s", where, p.Why, p.Fix)
}

// NodePool returns what is wrong with a pool, in the order of its fields.
func NodePool(pool *v1.NodePool, labels Labels) []Problem {
	const spec = "spec.template.spec"
	template := &pool.Spec.Template

	problems := labelled("metadata.name", pool.Name, "use a name of at most 63 characters")
	problems = append(problems, templateLabels("spec.template.metadata.labels", template.Labels, labels)...)
	problems = append(problems, annotations("spec.template.metadata.annotations", template.Annotations)...)
	problems = append(problems, taints(spec, template.Spec.Taints, template.Spec.StartupTaints)...)
	problems = append(problems, requirements(spec+".requirements", template.Spec.Requirements, labels)...)
	for i, r := range template.Spec.Requirements {
		if NormalizeKey(r.Key) == v1.NodePoolLabelKey {
			problems = append(problems, Problem{
				Field: fmt.Sprintf("%s.requirements[%d].key", spec, i),
				Value: r.Key,
				Why:   "is set from the name of the NodePool",
				Fix:   "remove this requirement",
			})
		}
	}
	problems = append(problems, nodeClassRef(spec+".nodeClassRef", template.Spec.NodeClassRef)...)
	problems = append(problems, lifetimes(spec, template.Spec.TerminationGracePeriod, template.Spec.ExpireAfter)...)
	problems = append(problems, limits("spec.limits", pool.Spec.Limits)...)
	return append(problems, disruption("spec.disruption", pool.Spec.Disruption)...)
}

// limits of less than nothing are a slip of the pen: nobody means them.
func limits(field string, list corev1.ResourceList) []Problem {
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			problems = append(problems, Problem{
				Field: field + "." + string(name), Value: q.String(), Why: "is negative", Fix: "use 0 or more, or " +
					"remove the limit"})
		}
	}
	return problems
}

// NodeClaim returns what is wrong with a claim, in the order of its fields. A claim, unlike a pool, may require
// karpenter.sh/nodepool: that is how a launch ties it to its pool.
func NodeClaim(claim *v1.NodeClaim, labels Labels) []Problem {
	problems := taints("spec", claim.Spec.Taints, claim.Spec.StartupTaints)
	problems = append(problems, requirements("spec.requirements", claim.Spec.Requirements, labels)...)
	problems = append(problems, nodeClassRef("spec.nodeClassRef", claim.Spec.NodeClassRef)...)
	return append(problems, lifetimes("spec", claim.Spec.TerminationGracePeriod, claim.Spec.ExpireAfter)...)
}

func nodeClassRef(field string, ref *v1.NodeClassReference) []Problem {
	if ref == nil {
		return []Problem{{Field: field, Why: "is missing", Fix: "set group, kind and name of a NodeClass"}}
	}
	var problems []Problem
	parts := []struct{ name, value string }{{"group", ref.Group}, {"kind", ref.Kind}, {"name", ref.Name}}
	for _, part := range parts {
		if part.value == "" {
			problems = append(problems, Problem{
				Field: field + "." + part.name,
				Why:   "is empty",
				Fix:   "set it to the " + part.name + " of a NodeClass",
			})
		}
	}
	problems = append(problems, labelled(field+".name", ref.Name, "refer to a NodeClass whose name has at most 63 "+
		"characters")...)
	if strings.Contains(ref.Group, "/") {
		problems = append(problems, Problem{
			Field: field + ".group",
			Value: ref.Group,
			Why:   "holds a slash",
			Fix:   "give the group without a version",
		})
	}
	return problems
}
