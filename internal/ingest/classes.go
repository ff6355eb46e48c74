package ingest

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/resource"
)

// remakeForOffered makes classes anew that ask for what can be had only now. The lock is held.
func (b *Book) remakeForOffered() {
	if b.specs.Dims.TakeNewOffers() {
		b.specs.NumberRequested()
		b.remakeClasses(b.specs.Dims.LacksDimension)
	}
}

// reclaimDimensions gives up the numbers of resources that nobody asks for any more, if somebody was turned away
// because there was none left. The lock is held.
func (b *Book) reclaimDimensions(now time.Time) {
	if !b.specs.Dims.IsOut() {
		return
	}
	b.remakeClasses(b.specs.Yield(b.dimensionsFixed()))
	if !b.specs.Dims.FreeUnused(b.dimensionsInUse(), now) {
		return
	}
	b.dropUnused() // classes that count by the old numbers among them
	b.specs.Renumber()
	b.remakeClasses(b.specs.Dims.LacksDimension)
	for _, e := range b.pools {
		if e.Pool.Limits.Broken != "" {
			p := *e.Pool
			p.Limits = b.specs.Dims.LimitsOf(e.Object.Spec.Limits)
			e.Pool = &p
			b.noteAndWake(change.Room)
		}
	}
}

// remakeClasses makes classes anew whose resources are numbered differently now, and gives them to their pods. The lock
// is held.
func (b *Book) remakeClasses(which func(*podspec.Spec) bool) {
	changed := b.specs.Remake(which)
	if len(changed) == 0 {
		return
	}
	b.daemons.Reclass(changed)
	for _, old := range b.pods.All() {
		c := changed[old.Class]
		if c == nil {
			continue
		}
		p := *old
		if p.Class = c; b.mounts.Of(p.UID) != nil {
			b.applyVolumes(&p, b.mounts.Of(p.UID))
		}
		b.pods.Set(p.UID, &p)
	}
	b.noteAndWake(change.Demand | change.Room)
}

// noteAttachLimits notes that some node or type can attach only so many volumes of these drivers: classes with such
// volumes count them from now on. The lock is held.
func (b *Book) noteAttachLimits(drivers []string) {
	slices.Sort(drivers)
	if !b.specs.Dims.NoteLimited(drivers) {
		return
	}
	b.remakeClasses(func(r *podspec.Spec) bool {
		return slices.ContainsFunc(r.Requests, func(q podspec.Request) bool {
			driver, ok := strings.CutPrefix(q.Name, resource.AttachPrefix)
			return ok && slices.Contains(drivers, driver)
		})
	})
}

// readTypeLimits notes what the types that are for sale can attach. The lock is held.
func (b *Book) readTypeLimits() {
	limits, drivers := b.market.VolumeLimits()
	if !b.attachLimits.SetTypes(limits) {
		return
	}
	b.specs.Dims.RemeasureAll()
	b.noteAttachLimits(drivers)
}

// dimensionsInUse are those that a pod, a daemon, a claim or a pool's limit counts by. The lock is held.
func (b *Book) dimensionsInUse() [resource.Size]bool {
	used := b.dimensionsFixed()
	for _, p := range b.pods.All() {
		markUsed(&used, &p.Class.Requests)
	}
	for d := range b.daemons.Each {
		markUsed(&used, &d.Class.Requests)
	}
	return used
}

func markUsed(used *[resource.Size]bool, v *resource.Vector) {
	for dim := range v {
		used[dim] = used[dim] || v[dim] != 0
	}
}

// dimensionsFixed are those that a claim or a pool's limit counts by: they are nobody else's to have. The lock is held.
func (b *Book) dimensionsFixed() [resource.Size]bool {
	var used [resource.Size]bool
	for _, e := range b.claims {
		markUsed(&used, &e.Claim.Requests)
	}
	for c := range b.commands.Each {
		if create, ok := c.(command.CreateClaim); ok {
			markUsed(&used, &create.Requests)
		}
	}
	for _, e := range b.pools {
		for dim, set := range e.Pool.Limits.Set {
			used[dim] = used[dim] || set
		}
	}
	return used
}

// allocatableOf is what pods may use of a node, with what it can attach. The lock is held.
func (b *Book) allocatableOf(n *cluster.Node, list corev1.ResourceList) resource.Vector {
	return b.specs.Dims.WithAttachLimits(b.specs.Dims.Measure(list), b.attachLimits.OfNode(n))
}
