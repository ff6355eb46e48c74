package ingest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// allocatableOf is what pods may use of a node, with what it can attach. The lock is held.
func (b *Book) allocatableOf(n *cluster.Node, list corev1.ResourceList) resource.Vector {
	v := b.specs.Dims.Measure(list)
	limits := b.csiLimits[n.Name]
	if _, initialized := n.Labels.Get(cluster.InitializedLabel); n.Ours && !initialized {
		// Its drivers may not have come up yet.
		kind, _ := n.Labels.Get(cluster.InstanceTypeLabel)
		limits = withDefaults(limits, b.typeLimits[kind])
	}
	return b.specs.Dims.WithAttachLimits(v, limits)
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
