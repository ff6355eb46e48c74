package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/require"
)

// mostAnnotations is how many bytes the keys and values of an object's annotations may have.
const mostAnnotations = 256 << 10

// Labels is what a cloud provider adds to the labels of the contract. The zero value adds nothing.
type Labels struct {
	// WellKnown are labels that the provider sets from the instance type, so that pools may require them even if they
	// are in a restricted domain.
	WellKnown map[string]bool
	// RestrictedDomains are domains, with their subdomains, whose other labels are the provider's own.
	RestrictedDomains []string
}

// IsWellKnown tells whether instance types or offerings decide the label.
func (l Labels) IsWellKnown(key string) bool {
	switch key {
	case v1.NodePoolLabelKey, v1.CapacityTypeLabelKey,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable,
		corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild:
		return true
	}
	return l.WellKnown[key]
}

// IsRestricted tells whether the label is the controller's or the provider's own, so that neither a pool nor a pod may
// ask for it.
func (l Labels) IsRestricted(key string) bool {
	if l.IsWellKnown(key) || key == v1.ProvisionerNameLabelKey {
		return false
	}
	if key == corev1.LabelHostname {
		return true
	}
	_, restricted := l.restrictedDomain(key)
	return restricted
}

func (l Labels) restrictedDomain(key string) (string, bool) {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return "", false
	}
	for _, restricted := range append([]string{v1.Group}, l.RestrictedDomains...) {
		if domain == restricted || strings.HasSuffix(domain, "."+restricted) {
			return restricted, true
		}
	}
	return "", false
}

// NormalizeKey returns the stable name of a label that is known under an older one, and any other key as it is.
func NormalizeKey(key string) string {
	switch key {
	case corev1.LabelFailureDomainBetaZone:
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	}
	return key
}

func templateLabels(field string, set map[string]string, labels Labels) []Problem {
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(set)) {
		at := fmt.Sprintf("%s[%s]", field, key)
		if key == v1.NodePoolLabelKey {
			problems = append(problems, Problem{
				Field: at, Value: set[key], Why: "is set from the name of the NodePool", Fix: "remove this label",
			})
			continue
		}
		problems = append(problems, labelKey(at, key, labels)...)
		for _, why := range validation.IsValidLabelValue(set[key]) {
			problems = append(problems, badLabelValue(at, set[key], why))
		}
	}
	return problems
}

// annotations checks what the API server would refuse on each NodeClaim of the pool. It reads keys without regard to
// case.
func annotations(field string, set map[string]string) []Problem {
	var problems []Problem
	size := 0
	for _, key := range slices.Sorted(maps.Keys(set)) {
		size += len(key) + len(set[key])
		for _, why := range validation.IsQualifiedName(strings.ToLower(key)) {
			problems = append(problems, Problem{
				Field: fmt.Sprintf("%s[%s]", field, key),
				Value: key,
				Why:   "is not the name of an annotation: " + why,
				Fix:   "correct the name",
			})
		}
	}
	if size > mostAnnotations {
		problems = append(problems, Problem{
			Field: field, Why: fmt.Sprintf("holds %d bytes", size), Fix: fmt.Sprintf("keep it to %d", mostAnnotations),
		})
	}
	return problems
}

// labelled checks a name that each node of the pool carries as the value of a label. The name of an object may be
// longer than such a value.
func labelled(field, name, fix string) []Problem {
	var problems []Problem
	for _, why := range validation.IsValidLabelValue(name) {
		problems = append(problems, Problem{
			Field: field, Value: name, Why: "is the value of a label on each node and can't be one: " + why, Fix: fix,
		})
	}
	return problems
}

// labelKey checks the name of a label that a pool sets or requires. The field is where the key stands; the key is
// part of the words, because the field does not always show it.
func labelKey(field, key string, labels Labels) []Problem {
	var problems []Problem
	for _, why := range validation.IsQualifiedName(key) {
		problems = append(problems, Problem{
			Field: field, Value: key, Why: "is not the name of a label: " + why, Fix: "correct the name",
		})
	}
	if !labels.IsRestricted(key) {
		return problems
	}
	if key == corev1.LabelHostname {
		return append(problems, Problem{
			Field: field, Value: key, Why: "is set by each node itself", Fix: "use a label that several nodes share",
		})
	}
	domain, _ := labels.restrictedDomain(key)
	fix := "use a label of another domain, or one of " + strings.Join(labels.wellKnownIn(domain), ", ")
	if meant := require.Nearest(key, labels.wellKnown()); meant != "" {
		fix = "write " + meant + ", if that is meant; or " + fix
	}
	return append(problems, Problem{
		Field: field,
		Value: key,
		Why:   "is in the domain " + domain + ", whose labels are set by the controller",
		Fix:   fix,
	})
}

// wellKnownIn lists the labels of a restricted domain that may be used all the same.
func (l Labels) wellKnownIn(domain string) []string {
	keys := []string{v1.CapacityTypeLabelKey}
	for key := range l.WellKnown {
		if of, _, _ := strings.Cut(key, "/"); of == domain {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func badLabelValue(field, value, why string) Problem {
	return Problem{
		Field: field, Value: value, Why: "is not the value of a label: " + why, Fix: "correct the value",
	}
}
