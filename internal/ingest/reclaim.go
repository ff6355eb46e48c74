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
	b.giveWay()
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
	b.numberWanted()
	b.crowded = b.crowded || len(b.offers.gaveWay) > 0
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

// lacksNumber reports whether the recipe asks for a resource that its class does not count by, though it could.
func (b *Book) lacksNumber(r *recipe) bool {
	return slices.ContainsFunc(r.missing, func(name string) bool {
		_, numbered := b.names.Lookup(name)
		return numbered && b.offered(name) && !b.offers.gaveWay[name]
	})
}

// numberWanted numbers the resources that classes ask for and that can be had: first what can be bought. The lock is held.
func (b *Book) numberWanted() {
	sold, others := b.wanted()
	for _, name := range append(sold, others...) {
		if _, numbered := b.names.Lookup(name); numbered {
			continue
		}
		if _, ok := b.number(corev1.ResourceName(name)); ok {
			delete(b.offers.gaveWay, name)
		}
	}
}

// wanted are the resources that classes ask for and that can be had: those that can be bought, and the others. The lock is held.
func (b *Book) wanted() (sold, others []string) {
	names := make(map[string]bool)
	for _, r := range b.classes {
		for _, q := range r.requests {
			if b.counts(corev1.ResourceName(q.name)) && b.offered(q.name) {
				names[q.name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if b.offers.sold[name] {
			sold = append(sold, name)
		} else {
			others = append(others, name)
		}
	}
	return sold, others
}

// giveWay has classes no longer count by what nobody offers any more, nor, for each resource that could be bought and has no
// number, by one that only nodes offer. The numbers are free for others once no plan is left that counts by them. The lock is
// held.
func (b *Book) giveWay() {
	sold, others := b.wanted()
	waiting := 0
	for _, name := range sold {
		if _, numbered := b.names.Lookup(name); !numbered {
			waiting++
		}
	}
	held := b.dimensionsHeld()
	for _, name := range others {
		dim, numbered := b.names.Lookup(name)
		if !numbered || held[dim] {
			continue
		}
		if delete(b.offers.gaveWay, name); waiting > 0 {
			b.offers.gaveWay[name] = true
			waiting--
		}
	}
	b.remake(func(r *recipe) bool {
		if b.lacksNumber(r) {
			return true
		}
		for _, q := range r.requests {
			_, numbered := b.names.Lookup(q.name)
			gone := !b.offered(q.name) || b.offers.gaveWay[q.name]
			if numbered && gone && b.counts(corev1.ResourceName(q.name)) && !slices.Contains(r.missing, q.name) {
				return true
			}
		}
		return false
	})
}

// counts reports whether a resource is worth a dimension: volumes are counted once a limit is known.
func (b *Book) counts(name corev1.ResourceName) bool {
	driver, attach := strings.CutPrefix(string(name), resource.AttachPrefix)
	return !attach || b.limited[driver]
}

// dimensionsInUse are those that a pod, a daemon, a claim or a pool's limit counts by. The lock is held.
func (b *Book) dimensionsInUse() [resource.Size]bool {
	used := b.dimensionsHeld()
	for _, p := range b.pods.all() {
		mark(&used, &p.Class.Requests)
	}
	for _, d := range b.daemons {
		mark(&used, &d.Class.Requests)
	}
	return used
}

func mark(used *[resource.Size]bool, v *resource.Vector) {
	for dim := range v {
		used[dim] = used[dim] || v[dim] != 0
	}
}

// dimensionsHeld are those that a claim or a pool's limit counts by: they are nobody else's to have. The lock is held.
func (b *Book) dimensionsHeld() [resource.Size]bool {
	var used [resource.Size]bool
	for _, e := range b.claims {
		mark(&used, &e.claim.Requests)
	}
	for _, f := range b.flights {
		if create, ok := f.command.(command.CreateClaim); ok {
			mark(&used, &create.Requests)
		}
	}
	for _, e := range b.pools {
		for dim, set := range e.pool.Limits.Set {
			used[dim] = used[dim] || set
		}
	}
	return used
}
