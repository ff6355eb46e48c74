package ingest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// unlimited is how many volumes a node can attach of which no limit is known.
const unlimited = 1 << 40

// noteAttachLimits notes that some node or type can attach only so many volumes of these drivers. Until then a driver's
// volumes are not counted at all, which saves a dimension for each driver without limits. The lock is held.
func (b *Book) noteAttachLimits(drivers []string) {
	news := false
	slices.Sort(drivers)
	for _, driver := range drivers {
		if !b.limited[driver] {
			b.limited[driver], news = true, true
		}
	}
	if !news {
		return
	}
	b.remakeClasses(func(r *classSpec) bool {
		for _, q := range r.requests {
			if driver, ok := strings.CutPrefix(q.name, resource.AttachPrefix); ok && slices.Contains(drivers, driver) {
				return true
			}
		}
		return false
	})
}

// readTypeLimits notes what the types that are for sale can attach. The lock is held.
func (b *Book) readTypeLimits() {
	limits := make(map[string]map[string]int32)
	var drivers []string
	for _, c := range valuesByKey(b.poolCatalogs) { // of two limits of a type the last one stands, always the same
		if c.list == nil {
			continue
		}
		for _, t := range c.list.types {
			if len(t.VolumeLimits) > 0 {
				limits[t.Name] = t.VolumeLimits
				drivers = slices.AppendSeq(drivers, maps.Keys(t.VolumeLimits))
			}
		}
	}
	if maps.EqualFunc(limits, b.typeLimits, maps.Equal) {
		return // most lists bring other prices: nothing has to be measured again
	}
	b.typeLimits, b.measureDue = limits, true
	slices.Sort(drivers)
	b.noteAttachLimits(slices.Compact(drivers))
}

// remakeClasses makes classes anew whose resources are numbered differently now, and gives them to their pods. The lock
// is held.
func (b *Book) remakeClasses(which func(*classSpec) bool) {
	changed := make(map[*cluster.PodClass]*cluster.PodClass)
	for key, r := range b.classes {
		if which(r) {
			changed[r.class] = b.makeClass(key, r)
		}
	}
	if len(changed) == 0 {
		return
	}
	swap := func(r *classSpec) {
		if c := changed[r.class]; c != nil {
			r.class = c
		}
	}
	for _, r := range b.classes {
		swap(r)
	}
	for _, r := range b.specsByKey {
		swap(r)
	}
	for _, r := range b.derivedSpecs {
		swap(r)
	}
	for uid, d := range b.daemons {
		if c := changed[d.Class]; c != nil {
			next := *d
			next.Class = c
			b.daemons[uid] = &next
		}
	}
	for _, old := range b.pods.all() {
		c := changed[old.Class]
		if c == nil {
			continue
		}
		p := *old
		if p.Class = c; b.volumesOfPods[p.UID] != nil {
			b.applyVolumes(&p, b.volumesOfPods[p.UID])
		}
		b.pods.set(p.UID, &p)
	}
	b.noteAndWake(changesDemand | changesRoom)
}

// allocatableOf is what pods may use of a node, with what it can attach. The lock is held.
func (b *Book) allocatableOf(n *cluster.Node, list corev1.ResourceList) resource.Vector {
	v := b.measure(list)
	limits := b.csiLimits[n.Name]
	if _, initialized := n.Labels.Get(cluster.InitializedLabel); n.Ours && !initialized {
		// Its drivers may not have come up yet.
		kind, _ := n.Labels.Get(cluster.InstanceTypeLabel)
		limits = withDefaults(limits, b.typeLimits[kind])
	}
	return b.withAttachLimits(v, limits)
}

// withDefaults are the limits, and the other ones of drivers that the first say nothing about.
func withDefaults(limits, other map[string]int32) map[string]int32 {
	if len(other) == 0 {
		return limits
	}
	out := maps.Clone(other)
	maps.Copy(out, limits)
	return out
}

// withAttachLimits sets how many volumes can be attached, driver by driver. The lock is held.
func (b *Book) withAttachLimits(v resource.Vector, limits map[string]int32) resource.Vector {
	for driver := range b.limited {
		dim, ok := b.names.Lookup(resource.AttachPrefix + driver)
		if !ok {
			continue
		}
		v[dim] = unlimited
		if n, known := limits[driver]; known {
			v[dim] = int64(n)
		}
	}
	return v
}
