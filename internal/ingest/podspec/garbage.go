package podspec

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Labels are a pod's labels; pods with equal labels share one value.
func (s *Specs) Labels(labels map[string]string) cluster.Labels {
	s.keyWriter.bytes = s.keyWriter.bytes[:0]
	s.keyWriter.labels(labels)
	if have, ok := s.labelSets[string(s.keyWriter.bytes)]; ok {
		return have
	}
	out := cluster.LabelsOf(labels)
	s.labelSets[string(s.keyWriter.bytes)] = out
	s.keptBytes += labelsCost(string(s.keyWriter.bytes), out)
	return out
}

// Limits is what a pod's containers may use at most of what every node has; nil without limits. Pods with equal
// limits share one value. It is for people: no decision depends on it.
func (s *Specs) Limits(spec *corev1.PodSpec) *resource.Vector {
	var sum resource.Vector
	limited := false
	add := func(list corev1.ResourceList) {
		for name, q := range list {
			// The numbers of other resources may be given to others some day.
			if dim, ok := s.Dims.Names.Lookup(string(name)); ok && dim <= resource.Pods {
				sum[dim] += amount(dim, q)
				limited = true
			}
		}
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Resources.Limits)
	}
	for i := range spec.InitContainers {
		if always := spec.InitContainers[i].RestartPolicy; always != nil &&
			*always == corev1.ContainerRestartPolicyAlways {
			add(spec.InitContainers[i].Resources.Limits)
		}
	}
	if !limited {
		return nil
	}
	if have := s.limits[sum]; have != nil {
		return have
	}
	kept := sum
	s.limits[sum] = &kept
	return &kept
}

// What an entry costs beside its text: about as much as its values take in memory.
const (
	entryCost = 300
	valueCost = 64
)

func labelsCost(key string, labels cluster.Labels) int {
	return entryCost + len(key) + valueCost*len(labels)
}

func ruleCost(r *cluster.Rule) int {
	cost := entryCost + 2*len(r.Key)
	if len(r.Selectors) == 1 { // several are shared by the rules of a pod
		cost += valueCost * (r.Selectors[0].Labels.Size() + r.Selectors[0].NamespaceLabels.Size())
	}
	return cost
}

func specCost(r *Spec) int {
	n := len(r.Requests) + len(r.tolerations) + len(r.ports) + len(r.rules) + len(r.preferences)
	for _, list := range [][]require.Set{r.Terms, r.OwnTerms} {
		for _, set := range list {
			n += set.Size()
		}
	}
	for i := range r.preferences {
		n += r.preferences[i].Term.Size()
	}
	cost := entryCost + valueCost*n
	for _, text := range r.Unsupported {
		cost += len(text)
	}
	return cost
}

// countBytes sums up about how many bytes are remembered.
func (s *Specs) countBytes() int {
	sum := 0
	for key, r := range s.byKey {
		sum += len(key) + specCost(r)
	}
	for key, r := range s.derived {
		sum += len(key.text) + specCost(r)
	}
	for _, r := range s.rules {
		sum += ruleCost(r)
	}
	for key, labels := range s.labelSets {
		sum += labelsCost(key, labels)
	}
	return sum + entryCost*(len(s.classes)+len(s.limits))
}

// Used is what of all that is remembered still is in use.
type Used struct {
	Classes map[*cluster.PodClass]bool
	// Labels are the first of each list of labels.
	Labels map[*cluster.Label]bool
	Limits map[*resource.Vector]bool
	// Specs are those that pods will be made anew from.
	Specs map[*Spec]bool
}

// rulesOf are the keys of the rules that classes have.
func rulesOf(classes map[*cluster.PodClass]bool) map[string]bool {
	rules := make(map[string]bool)
	for c := range classes {
		for _, r := range c.Rules {
			rules[r.Key] = true
		}
		for _, w := range c.Preferences {
			if w.Rule != nil {
				rules[w.Rule.Key] = true
			}
		}
	}
	return rules
}

// Forget forgets pod keys, classes, rules, labels and limits that are not in use.
func (s *Specs) Forget(u Used) {
	rules := rulesOf(u.Classes)
	maps.DeleteFunc(s.byKey, func(_ string, r *Spec) bool { return !u.Classes[r.class] && !u.Specs[r] })
	maps.DeleteFunc(s.classes, func(_ string, r *Spec) bool { return !u.Classes[r.class] })
	maps.DeleteFunc(s.derived, func(_ derivedKey, r *Spec) bool { return !u.Classes[r.class] && !u.Specs[r] })
	maps.DeleteFunc(s.rules, func(key string, _ *cluster.Rule) bool { return !rules[key] })
	maps.DeleteFunc(s.labelSets, func(_ string, l cluster.Labels) bool { return len(l) > 0 && !u.Labels[&l[0]] })
	maps.DeleteFunc(s.limits, func(_ resource.Vector, v *resource.Vector) bool { return !u.Limits[v] })
	for r := range u.Specs {
		if !u.Classes[r.class] {
			r.class = nil
		}
	}
	s.keptBytes = s.countBytes()
}

// Entries is how many entries of each kind are remembered.
type Entries struct{ PodKeys, Classes, Derived, Rules, LabelSets, Limits int }

// Sum is how many that are in all.
func (e Entries) Sum() int {
	return e.PodKeys + e.Classes + e.Derived + e.Rules + e.LabelSets + e.Limits
}

// Entries counts what is remembered.
func (s *Specs) Entries() Entries {
	return Entries{PodKeys: len(s.byKey), Classes: len(s.classes), Derived: len(s.derived), Rules: len(s.rules),
		LabelSets: len(s.labelSets), Limits: len(s.limits)}
}

// Bytes is about how many bytes that takes.
func (s *Specs) Bytes() int { return s.keptBytes }
