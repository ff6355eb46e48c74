package ingest

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

// reclaimAfter is how long nobody must have asked for a resource before its number is given to another: longer than any
// plan lives that still counts by the old one.
const reclaimAfter = time.Minute

// numberResource finds or makes the dimension of a resource. The lock is held.
func (b *Book) numberResource(name corev1.ResourceName) (dim int, ok bool) {
	if dim, ok = b.names.Lookup(string(name)); ok {
		return dim, true
	}
	dim, ok = b.names.Index(string(name))
	b.measureDue, b.outOfDimensions = b.measureDue || ok, b.outOfDimensions || !ok
	return dim, ok
}

// reclaimDimensions gives up the numbers of resources that nobody asks for any more, if somebody was turned away
// because there was none left. The lock is held.
func (b *Book) reclaimDimensions(now time.Time) {
	if !b.outOfDimensions {
		return
	}
	b.yieldDimensions()
	used := b.dimensionsInUse()
	var freed [resource.Size]bool
	for dim := resource.Pods + 1; dim < resource.Size; dim++ {
		switch {
		case used[dim]:
			b.unusedSince[dim] = time.Time{}
		case b.unusedSince[dim].IsZero():
			b.unusedSince[dim] = now
		case now.Sub(b.unusedSince[dim]) >= reclaimAfter:
			b.names.Free(dim)
			b.unusedSince[dim], freed[dim] = time.Time{}, true
		}
	}
	if freed == [resource.Size]bool{} {
		return
	}
	b.dropUnused() // classes that count by the old numbers among them
	b.outOfDimensions, b.measureDue = false, true
	b.numberRequested()
	b.outOfDimensions = b.outOfDimensions || len(b.resourceSupply.yielded) > 0
	b.remakeClasses(b.lacksDimension)
	for _, e := range b.pools {
		if e.pool.Limits.Broken != "" {
			p := *e.pool
			p.Limits = b.limitsOf(e.object.Spec.Limits)
			e.pool = &p
			b.noteAndWake(changesRoom)
		}
	}
}

// lacksDimension reports whether the spec asks for a resource that its class does not count by, though it could.
func (b *Book) lacksDimension(r *classSpec) bool {
	return slices.ContainsFunc(r.uncounted, func(name string) bool {
		_, numbered := b.names.Lookup(name)
		return numbered && b.isOffered(name) && !b.resourceSupply.yielded[name]
	})
}

// numberRequested numbers the resources that classes ask for and that can be had: first what can be bought. The lock is
// held.
func (b *Book) numberRequested() {
	available, others := b.requestedResources()
	for _, name := range append(available, others...) {
		if _, numbered := b.names.Lookup(name); numbered {
			continue
		}
		if _, ok := b.numberResource(corev1.ResourceName(name)); ok {
			delete(b.resourceSupply.yielded, name)
		}
	}
}

// requestedResources are the resources that classes ask for and that can be had: those that can be bought, and the
// others. The lock is held.
func (b *Book) requestedResources() (available, others []string) {
	names := make(map[string]bool)
	for _, r := range b.classes {
		for _, q := range r.requests {
			if b.isCounted(corev1.ResourceName(q.name)) && b.isOffered(q.name) {
				names[q.name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if b.resourceSupply.sold[name] {
			available = append(available, name)
		} else {
			others = append(others, name)
		}
	}
	return available, others
}

// yieldDimensions has classes no longer count by what nobody offers any more, nor, for each resource that could be
// bought and has no number, by one that only nodes offer. The numbers are free for others once no plan is left that
// counts by them. The lock is held.
func (b *Book) yieldDimensions() {
	available, others := b.requestedResources()
	waiting := 0
	for _, name := range available {
		if _, numbered := b.names.Lookup(name); !numbered {
			waiting++
		}
	}
	held := b.dimensionsFixed()
	for _, name := range others {
		dim, numbered := b.names.Lookup(name)
		if !numbered || held[dim] {
			continue
		}
		if delete(b.resourceSupply.yielded, name); waiting > 0 {
			b.resourceSupply.yielded[name] = true
			waiting--
		}
	}
	b.remakeClasses(func(r *classSpec) bool {
		if b.lacksDimension(r) {
			return true
		}
		for _, q := range r.requests {
			_, numbered := b.names.Lookup(q.name)
			gone := !b.isOffered(q.name) || b.resourceSupply.yielded[q.name]
			if numbered && gone && b.isCounted(corev1.ResourceName(q.name)) && !slices.Contains(r.uncounted, q.name) {
				return true
			}
		}
		return false
	})
}

// isCounted reports whether a resource is worth a dimension: volumes are counted once a limit is known.
func (b *Book) isCounted(name corev1.ResourceName) bool {
	driver, attach := strings.CutPrefix(string(name), resource.AttachPrefix)
	return !attach || b.limited[driver]
}

// dimensionsInUse are those that a pod, a daemon, a claim or a pool's limit counts by. The lock is held.
func (b *Book) dimensionsInUse() [resource.Size]bool {
	used := b.dimensionsFixed()
	for _, p := range b.pods.all() {
		markUsed(&used, &p.Class.Requests)
	}
	for _, d := range b.daemons {
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
		markUsed(&used, &e.claim.Requests)
	}
	for _, f := range b.inFlight {
		if create, ok := f.command.(command.CreateClaim); ok {
			markUsed(&used, &create.Requests)
		}
	}
	for _, e := range b.pools {
		for dim, set := range e.pool.Limits.Set {
			used[dim] = used[dim] || set
		}
	}
	return used
}
