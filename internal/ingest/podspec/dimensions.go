package podspec

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// ReclaimAfter is how long nobody must have asked for a resource before its number is given to another: longer than any
// plan lives that still counts by the old one.
const ReclaimAfter = time.Minute

// nodesLimit is the one limit that is not a resource of a node.
const nodesLimit = "nodes"

// Unlimited is how many volumes a node can attach of which no limit is known.
const Unlimited = 1 << 40

// Dimensions numbers the resources that are counted, and knows which of them can be had.
type Dimensions struct {
	Names *resource.Names
	// resource lists are to be measured again: a resource has got a number
	measureDue      bool
	outOfDimensions bool                     // somebody found no dimension left
	unusedSince     [resource.Size]time.Time // since when nobody counts by a dimension, while there is one too few
	supply          resourceSupply
	limited         map[string]bool // drivers of which some limit has been heard
}

// number finds or makes the dimension of a resource.
func (d *Dimensions) number(name corev1.ResourceName) (dim int, ok bool) {
	if dim, ok = d.Names.Lookup(string(name)); ok {
		return dim, true
	}
	dim, ok = d.Names.Index(string(name))
	d.measureDue, d.outOfDimensions = d.measureDue || ok, d.outOfDimensions || !ok
	return dim, ok
}

// IsOut reports whether somebody found no dimension left.
func (d *Dimensions) IsOut() bool { return d.outOfDimensions }

// FreeUnused gives up the numbers of resources that have been in nobody's use for a while, and reports whether there
// were any.
func (d *Dimensions) FreeUnused(used [resource.Size]bool, now time.Time) bool {
	var freed [resource.Size]bool
	for dim := resource.Pods + 1; dim < resource.Size; dim++ {
		switch {
		case used[dim]:
			d.unusedSince[dim] = time.Time{}
		case d.unusedSince[dim].IsZero():
			d.unusedSince[dim] = now
		case now.Sub(d.unusedSince[dim]) >= ReclaimAfter:
			d.Names.Free(dim)
			d.unusedSince[dim], freed[dim] = time.Time{}, true
		}
	}
	return freed != [resource.Size]bool{}
}

// TakeMeasureDue reports whether resource lists are to be measured again: a resource has got a number since this was
// asked last.
func (d *Dimensions) TakeMeasureDue() bool {
	due := d.measureDue
	d.measureDue = false
	return due
}

// RemeasureAll has all resource lists measured again.
func (d *Dimensions) RemeasureAll() { d.measureDue = true }

// NoteLimited notes that some node or type can attach only so many volumes of these drivers, and reports whether that
// is news. Until then a driver's volumes are not counted at all, which saves a dimension for each driver without
// limits.
func (d *Dimensions) NoteLimited(drivers []string) (news bool) {
	for _, driver := range drivers {
		if !d.limited[driver] {
			d.limited[driver], news = true, true
		}
	}
	return news
}

// Renumber numbers what classes ask for, after numbers have become free.
func (s *Specs) Renumber() {
	s.Dims.outOfDimensions, s.Dims.measureDue = false, true
	s.NumberRequested()
	s.Dims.outOfDimensions = s.Dims.outOfDimensions || len(s.Dims.supply.yielded) > 0
}

// LacksDimension reports whether the spec asks for a resource that its class does not count by, though it could.
func (d *Dimensions) LacksDimension(r *Spec) bool {
	return slices.ContainsFunc(r.uncounted, func(name string) bool {
		_, numbered := d.Names.Lookup(name)
		return numbered && d.IsOffered(name) && !d.supply.yielded[name]
	})
}

// NumberRequested numbers the resources that classes ask for and that can be had: first what can be bought.
func (s *Specs) NumberRequested() {
	available, others := s.requestedResources()
	for _, name := range append(available, others...) {
		if _, numbered := s.Dims.Names.Lookup(name); numbered {
			continue
		}
		if _, ok := s.Dims.number(corev1.ResourceName(name)); ok {
			delete(s.Dims.supply.yielded, name)
		}
	}
}

// requestedResources are the resources that classes ask for and that can be had: those that can be bought, and the
// others.
func (s *Specs) requestedResources() (available, others []string) {
	names := make(map[string]bool)
	for _, r := range s.classes {
		for _, q := range r.Requests {
			if s.Dims.isCounted(corev1.ResourceName(q.Name)) && s.Dims.IsOffered(q.Name) {
				names[q.Name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if s.Dims.supply.sold[name] {
			available = append(available, name)
		} else {
			others = append(others, name)
		}
	}
	return available, others
}

// Yield chooses the classes that are to be made anew so that none counts any longer by what nobody offers any
// more, nor, for each resource that could be bought and has no number, by one that only nodes offer. The numbers are
// free for others once no plan is left that counts by them. Those that are held stay.
func (s *Specs) Yield(held [resource.Size]bool) func(*Spec) bool {
	available, others := s.requestedResources()
	waiting := 0
	for _, name := range available {
		if _, numbered := s.Dims.Names.Lookup(name); !numbered {
			waiting++
		}
	}
	for _, name := range others {
		dim, numbered := s.Dims.Names.Lookup(name)
		if !numbered || held[dim] {
			continue
		}
		if delete(s.Dims.supply.yielded, name); waiting > 0 {
			s.Dims.supply.yielded[name] = true
			waiting--
		}
	}
	return func(r *Spec) bool {
		if s.Dims.LacksDimension(r) {
			return true
		}
		for _, q := range r.Requests {
			_, numbered := s.Dims.Names.Lookup(q.Name)
			gone := !s.Dims.IsOffered(q.Name) || s.Dims.supply.yielded[q.Name]
			if numbered && gone && s.Dims.isCounted(corev1.ResourceName(q.Name)) &&
				!slices.Contains(r.uncounted, q.Name) {
				return true
			}
		}
		return false
	}
}

// isCounted reports whether a resource is worth a dimension: volumes are counted once a limit is known.
func (d *Dimensions) isCounted(name corev1.ResourceName) bool {
	driver, attach := strings.CutPrefix(string(name), resource.AttachPrefix)
	return !attach || d.limited[driver]
}

// LimitsOf reads the limits of a pool, numbering resources that are new.
func (d *Dimensions) LimitsOf(list corev1.ResourceList) cluster.Limits {
	var l cluster.Limits
	for name, q := range list {
		if name == nodesLimit {
			l.HasNodes, l.Nodes = true, q.Value()
			continue
		}
		dim, ok := d.number(name)
		if !ok {
			l.Broken = string(name)
			continue
		}
		l.Set[dim], l.Amount[dim] = true, amount(dim, q)
	}
	return l
}

// WithAttachLimits sets how many volumes can be attached, driver by driver.
func (d *Dimensions) WithAttachLimits(v resource.Vector, limits map[string]int32) resource.Vector {
	for driver := range d.limited {
		dim, ok := d.Names.Lookup(resource.AttachPrefix + driver)
		if !ok {
			continue
		}
		v[dim] = Unlimited
		if n, known := limits[driver]; known {
			v[dim] = int64(n)
		}
	}
	return v
}
