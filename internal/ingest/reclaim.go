package ingest

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

// reclaimAfter is how long nobody must have asked for a resource before its number is given to another: longer than any
// plan lives that still counts by the old one.
const reclaimAfter = time.Minute

// number finds or makes the dimension of a resource. The lock is held.
func (b *Book) number(name corev1.ResourceName) (dim int, ok bool) {
	if dim, ok = b.names.Lookup(string(name)); ok {
		return dim, true
	}
	dim, ok = b.names.Index(string(name))
	b.unmeasured, b.crowded = b.unmeasured || ok, b.crowded || !ok
	return dim, ok
}

// reclaim gives up the numbers of resources that nobody asks for any more, if somebody was turned away because there
// was none left. The lock is held.
func (b *Book) reclaim(now time.Time) {
	if !b.crowded {
		return
	}
	used := b.dimensionsInUse()
	var freed [resource.Size]bool
	for dim := resource.Pods + 1; dim < resource.Size; dim++ {
		switch {
		case used[dim]:
			b.idle[dim] = time.Time{}
		case b.idle[dim].IsZero():
			b.idle[dim] = now
		case now.Sub(b.idle[dim]) >= reclaimAfter:
			b.names.Free(dim)
			b.idle[dim], freed[dim] = time.Time{}, true
		}
	}
	if freed == [resource.Size]bool{} {
		return
	}
	b.dropUnused() // classes that count by the old numbers among them
	b.crowded, b.unmeasured = false, true
	b.remake(b.lacksNumber)
	for _, e := range b.pools {
		if e.pool.Limits.Broken != "" {
			p := *e.pool
			p.Limits = b.limitsOf(e.object.Spec.Limits)
			e.pool = &p
			b.touch(room)
		}
	}
}

// lacksNumber reports whether the recipe asks for a resource that has no dimension.
func (b *Book) lacksNumber(r *recipe) bool {
	for name := range r.requests {
		if _, ok := b.names.Lookup(string(name)); !ok && b.counts(name) {
			return true
		}
	}
	return false
}

// counts reports whether a resource is worth a dimension: volumes are counted once a limit is known.
func (b *Book) counts(name corev1.ResourceName) bool {
	driver, attach := strings.CutPrefix(string(name), resource.AttachPrefix)
	return !attach || b.limited[driver]
}

// dimensionsInUse are those that a pod, a daemon, a claim or a pool's limit counts by. The lock is held.
func (b *Book) dimensionsInUse() [resource.Size]bool {
	var used [resource.Size]bool
	add := func(v *resource.Vector) {
		for dim := range v {
			used[dim] = used[dim] || v[dim] != 0
		}
	}
	for _, p := range b.pods.all() {
		add(&p.Class.Requests)
	}
	for _, d := range b.daemons {
		add(&d.Class.Requests)
	}
	for _, e := range b.claims {
		add(&e.claim.Requests)
	}
	for _, f := range b.flights {
		if create, ok := f.command.(command.CreateClaim); ok {
			add(&create.Requests)
		}
	}
	for _, e := range b.pools {
		for dim, set := range e.pool.Limits.Set {
			used[dim] = used[dim] || set
		}
	}
	return used
}
