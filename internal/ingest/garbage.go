package ingest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// collectFrom is how many entries, and collectFromBytes about how many bytes, may be remembered before they are looked
// through at all. At most twice what the pods and daemons that are there need is remembered beyond that.
const (
	collectFrom      = 4096
	collectFromBytes = 32 << 20
)

// collectThreshold is how much may be remembered before it is looked through.
type collectThreshold struct{ entries, bytes int }

// internLabels are a pod's labels; pods with equal labels share one value. The lock is held.
func (b *Book) internLabels(labels map[string]string) cluster.Labels {
	b.keyWriter.bytes = b.keyWriter.bytes[:0]
	b.keyWriter.labels(labels)
	if have, ok := b.labelSets[string(b.keyWriter.bytes)]; ok {
		return have
	}
	out := cluster.LabelsOf(labels)
	b.labelSets[string(b.keyWriter.bytes)] = out
	b.keptBytes += labelsCost(string(b.keyWriter.bytes), out)
	return out
}

// internLimits is what a pod's containers may use at most of what every node has; nil without limits. Pods with equal
// limits share one value. It is for people: no decision depends on it. The lock is held.
func (b *Book) internLimits(spec *corev1.PodSpec) *resource.Vector {
	var sum resource.Vector
	limited := false
	add := func(list corev1.ResourceList) {
		for name, q := range list {
			// The numbers of other resources may be given to others some day.
			if dim, ok := b.names.Lookup(string(name)); ok && dim <= resource.Pods {
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
	if have := b.podLimits[sum]; have != nil {
		return have
	}
	kept := sum
	b.podLimits[sum] = &kept
	return &kept
}

// collectGarbage forgets what only pods had that are long gone, once that may be half of what is remembered. The lock
// is held.
func (b *Book) collectGarbage() {
	if b.countRemembered() > max(b.collectAt.entries, collectFrom) || b.keptBytes > max(b.collectAt.bytes,
		collectFromBytes) {
		b.dropUnused()
		b.collectAt = collectThreshold{2 * b.countRemembered(), 2 * b.keptBytes}
	}
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

// daemonPodCost is nothing for a pod that is not known.
func daemonPodCost(key string, p *daemonPod) int {
	if p.uid == "" {
		return 0
	}
	return entryCost + len(key) + len(p.uid) + len(p.generation) + valueCost*len(p.requests)
}

func specCost(r *classSpec) int {
	n := len(r.requests) + len(r.tolerations) + len(r.ports) + len(r.rules) + len(r.preferences)
	for _, list := range [][]require.Set{r.terms, r.ownTerms} {
		for _, set := range list {
			n += set.Size()
		}
	}
	for i := range r.preferences {
		n += r.preferences[i].Term.Size()
	}
	cost := entryCost + valueCost*n
	for _, text := range r.unsupported {
		cost += len(text)
	}
	return cost
}

// countBytes sums up about how many bytes are remembered. The lock is held.
func (b *Book) countBytes() int {
	sum := 0
	for key, r := range b.specsByKey {
		sum += len(key) + specCost(r)
	}
	for key, r := range b.derivedSpecs {
		sum += len(key.text) + specCost(r)
	}
	for _, r := range b.rules {
		sum += ruleCost(r)
	}
	for key, labels := range b.labelSets {
		sum += labelsCost(key, labels)
	}
	for key, p := range b.daemonPods {
		sum += daemonPodCost(key, &p)
	}
	return sum + entryCost*(len(b.classes)+len(b.podLimits))
}

// dropUnused forgets pod keys, classes, rules and labels that no pod and no daemon has, and pods of DaemonSets that are
// not there. The lock is held.
func (b *Book) dropUnused() {
	classes, rules, worn := make(map[*cluster.PodClass]bool), make(map[string]bool), make(map[*cluster.Label]bool)
	ceilings := make(map[*resource.Vector]bool)
	for _, p := range b.pods.all() {
		ceilings[p.Limits] = true
		classes[p.Class] = true
		if len(p.Labels) > 0 {
			worn[&p.Labels[0]] = true
		}
	}
	for _, d := range b.daemons {
		classes[d.Class] = true
	}
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
	bases := make(map[*classSpec]bool)
	for _, v := range b.volumesOfPods {
		bases[v.base] = true
	}
	if b.spreadDefaults != nil {
		for _, e := range b.spreadDefaults.pods {
			bases[e.base] = true
		}
	}
	maps.DeleteFunc(b.specsByKey, func(_ string, r *classSpec) bool { return !classes[r.class] && !bases[r] })
	maps.DeleteFunc(b.classes, func(_ string, r *classSpec) bool { return !classes[r.class] })
	maps.DeleteFunc(b.derivedSpecs, func(_ derivedKey, r *classSpec) bool { return !classes[r.class] && !bases[r] })
	maps.DeleteFunc(b.rules, func(key string, _ *cluster.Rule) bool { return !rules[key] })
	maps.DeleteFunc(b.labelSets, func(_ string, l cluster.Labels) bool { return len(l) > 0 && !worn[&l[0]] })
	made := make(map[string]bool, len(b.daemonSets))
	for uid, ds := range b.daemonSets {
		made[cluster.OwnerKey(ds.Namespace, uid)] = true
	}
	maps.DeleteFunc(b.daemonPods, func(owner string, _ daemonPod) bool { return !made[owner] })
	maps.DeleteFunc(b.podLimits, func(_ resource.Vector, v *resource.Vector) bool { return !ceilings[v] })
	for r := range bases {
		if !classes[r.class] {
			r.class = nil
		}
	}
	b.keptBytes = b.countBytes()
}

func (b *Book) countRemembered() int {
	return len(b.specsByKey) + len(b.derivedSpecs) + len(b.classes) + len(b.rules) + len(b.labelSets) +
		len(b.podLimits) + len(b.daemonPods)
}
