package ingest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// sweepFrom is how many entries, and sweepFromBytes about how many bytes, may be remembered before they are looked through at
// all. At most twice what the pods and daemons that are there need is remembered beyond that.
const (
	sweepFrom      = 4096
	sweepFromBytes = 32 << 20
)

// sweepPoint is how much may be remembered before it is looked through.
type sweepPoint struct{ entries, bytes int }

// wornLabels are a pod's labels; pods with equal labels share one value. The lock is held.
func (b *Book) wornLabels(labels map[string]string) cluster.Labels {
	b.scribe.bytes = b.scribe.bytes[:0]
	b.scribe.labels(labels)
	if have, ok := b.worn[string(b.scribe.bytes)]; ok {
		return have
	}
	out := cluster.LabelsOf(labels)
	b.worn[string(b.scribe.bytes)] = out
	b.kept += wornCost(string(b.scribe.bytes), out)
	return out
}

// ceilingOf is what a pod's containers may use at most of what every node has; nil without limits. Pods with equal limits
// share one value. It is for people: no decision depends on it. The lock is held.
func (b *Book) ceilingOf(spec *corev1.PodSpec) *resource.Vector {
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
		if always := spec.InitContainers[i].RestartPolicy; always != nil && *always == corev1.ContainerRestartPolicyAlways {
			add(spec.InitContainers[i].Resources.Limits)
		}
	}
	if !limited {
		return nil
	}
	if have := b.ceilings[sum]; have != nil {
		return have
	}
	kept := sum
	b.ceilings[sum] = &kept
	return &kept
}

// sweep forgets what only pods had that are long gone, once that may be half of what is remembered. The lock is held.
func (b *Book) sweep() {
	if b.remembered() > max(b.sweepAt.entries, sweepFrom) || b.kept > max(b.sweepAt.bytes, sweepFromBytes) {
		b.dropUnused()
		b.sweepAt = sweepPoint{2 * b.remembered(), 2 * b.kept}
	}
}

// What an entry costs beside its text: about as much as its values take in memory.
const (
	entryCost = 300
	valueCost = 64
)

func wornCost(key string, labels cluster.Labels) int {
	return entryCost + len(key) + valueCost*len(labels)
}

func ruleCost(r *cluster.Rule) int {
	cost := entryCost + 2*len(r.Key)
	if len(r.Selectors) == 1 { // several are shared by the rules of a pod
		cost += valueCost * (r.Selectors[0].Labels.Size() + r.Selectors[0].Among.Size())
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

func recipeCost(r *recipe) int {
	n := len(r.requests) + len(r.tolerations) + len(r.ports) + len(r.rules) + len(r.wishes)
	for _, list := range [][]require.Set{r.terms, r.own} {
		for _, set := range list {
			n += set.Size()
		}
	}
	for i := range r.wishes {
		n += r.wishes[i].Term.Size()
	}
	cost := entryCost + valueCost*n
	for _, text := range r.unsupported {
		cost += len(text)
	}
	return cost
}

// weigh sums up about how many bytes are remembered. The lock is held.
func (b *Book) weigh() int {
	sum := 0
	for key, r := range b.shapes {
		sum += len(key) + recipeCost(r)
	}
	for key, r := range b.mountedRecipes {
		sum += len(key.text) + recipeCost(r)
	}
	for _, r := range b.rules {
		sum += ruleCost(r)
	}
	for key, labels := range b.worn {
		sum += wornCost(key, labels)
	}
	for key, p := range b.daemonPods {
		sum += daemonPodCost(key, &p)
	}
	return sum + entryCost*(len(b.classes)+len(b.ceilings))
}

// dropUnused forgets shapes, classes, rules and labels that no pod and no daemon has, and pods of DaemonSets that are not
// there. The lock is held.
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
		for _, w := range c.Wishes {
			if w.Rule != nil {
				rules[w.Rule.Key] = true
			}
		}
	}
	bases := make(map[*recipe]bool)
	for _, m := range b.mounts {
		bases[m.base] = true
	}
	if b.defaults != nil {
		for _, e := range b.defaults.pods {
			bases[e.base] = true
		}
	}
	maps.DeleteFunc(b.shapes, func(_ string, r *recipe) bool { return !classes[r.class] && !bases[r] })
	maps.DeleteFunc(b.classes, func(_ string, r *recipe) bool { return !classes[r.class] })
	maps.DeleteFunc(b.mountedRecipes, func(_ mountKey, r *recipe) bool { return !classes[r.class] && !bases[r] })
	maps.DeleteFunc(b.rules, func(key string, _ *cluster.Rule) bool { return !rules[key] })
	maps.DeleteFunc(b.worn, func(_ string, l cluster.Labels) bool { return len(l) > 0 && !worn[&l[0]] })
	made := make(map[string]bool, len(b.daemonSets))
	for uid, ds := range b.daemonSets {
		made[cluster.OwnerKey(ds.Namespace, uid)] = true
	}
	maps.DeleteFunc(b.daemonPods, func(owner string, _ daemonPod) bool { return !made[owner] })
	maps.DeleteFunc(b.ceilings, func(_ resource.Vector, v *resource.Vector) bool { return !ceilings[v] })
	for r := range bases {
		if !classes[r.class] {
			r.class = nil
		}
	}
	b.kept = b.weigh()
}

func (b *Book) remembered() int {
	return len(b.shapes) + len(b.mountedRecipes) + len(b.classes) + len(b.rules) + len(b.worn) + len(b.ceilings) + len(b.daemonPods)
}
