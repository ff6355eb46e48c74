package ingest

import (
	"maps"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// sweepFrom is how much may be remembered before it is looked through at all.
const sweepFrom = 4096

// wornLabels are a pod's labels; pods with equal labels share one value. The lock is held.
func (b *Book) wornLabels(labels map[string]string) cluster.Labels {
	b.scribe.bytes = b.scribe.bytes[:0]
	b.scribe.labels(labels)
	if have, ok := b.worn[string(b.scribe.bytes)]; ok {
		return have
	}
	out := cluster.LabelsOf(labels)
	b.worn[string(b.scribe.bytes)] = out
	return out
}

// sweep forgets what only pods had that are long gone, once that may be half of what is remembered. The lock is held.
func (b *Book) sweep() {
	if b.remembered() > max(b.sweepAt, sweepFrom) {
		b.dropUnused()
		b.sweepAt = 2 * b.remembered()
	}
}

// dropUnused forgets shapes, classes, rules and labels that no pod and no daemon has. The lock is held.
func (b *Book) dropUnused() {
	classes, rules, worn := make(map[*cluster.PodClass]bool), make(map[string]bool), make(map[*cluster.Label]bool)
	for _, p := range b.pods.all() {
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
	for r := range bases {
		if !classes[r.class] {
			r.class = nil
		}
	}
}

func (b *Book) remembered() int {
	return len(b.shapes) + len(b.mountedRecipes) + len(b.classes) + len(b.rules) + len(b.worn)
}
