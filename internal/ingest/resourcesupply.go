package ingest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/resource"
)

// resourceSupply is which resources can be had at all. What nobody has needs no dimension: a pod that asks for it can't
// be placed, and the few dimensions are left to those who can.
type resourceSupply struct {
	sold    map[string]bool // by an instance type of some catalog
	shownBy map[string]int  // how many lists of nodes and claims have some of it
	// yielded are resources that only nodes offer and that are not counted: there were too many kinds.
	yielded map[string]bool
	// hasNew says that something has been offered since the classes were made.
	hasNew bool
}

func newResourceSupply() resourceSupply {
	return resourceSupply{sold: make(map[string]bool), shownBy: make(map[string]int), yielded: make(map[string]bool)}
}

// isOffered reports whether a resource can be had. Volumes are counted by limits that somebody has set. The lock is
// held.
func (b *Book) isOffered(name string) bool {
	switch {
	case strings.HasPrefix(name, resource.AttachPrefix):
		return true
	case b.resourceSupply.sold[name] || b.resourceSupply.shownBy[name] > 0:
		return true
	}
	dim, known := b.names.Lookup(name)
	return known && dim <= resource.Pods
}

// updateOffered takes in that a node or a claim shows other lists than before. The lock is held.
func (b *Book) updateOffered(old, now []corev1.ResourceList) {
	for _, list := range now {
		for name, q := range list {
			if q.Sign() > 0 {
				b.resourceSupply.shownBy[string(name)]++
				b.resourceSupply.hasNew = b.resourceSupply.hasNew || b.resourceSupply.shownBy[string(name)] == 1
			}
		}
	}
	for _, list := range old {
		for name, q := range list {
			if q.Sign() <= 0 {
				continue
			}
			if b.resourceSupply.shownBy[string(name)]--; b.resourceSupply.shownBy[string(name)] == 0 {
				delete(b.resourceSupply.shownBy, string(name))
			}
		}
	}
}

// updateSold takes in what the catalogs sell. The lock is held.
func (b *Book) updateSold() {
	available := make(map[string]bool)
	seen := make(map[*typeList]bool)
	for _, c := range b.poolCatalogs {
		if c.list == nil || seen[c.list] {
			continue
		}
		seen[c.list] = true
		for _, t := range c.list.types {
			for name, q := range t.Capacity {
				if q.Sign() > 0 {
					available[string(name)] = true
				}
			}
			for driver := range t.VolumeLimits {
				available[resource.AttachPrefix+driver] = true
			}
		}
	}
	for name := range available {
		b.resourceSupply.hasNew = b.resourceSupply.hasNew || !b.resourceSupply.sold[name]
	}
	b.resourceSupply.sold = available
}

// remakeForOffered makes classes anew that ask for what can be had only now. The lock is held.
func (b *Book) remakeForOffered() {
	if !b.resourceSupply.hasNew {
		return
	}
	b.resourceSupply.hasNew = false
	b.numberRequested()
	b.remakeClasses(b.lacksDimension)
}

// notOfferedMessage says why pods that ask for the resources get no node.
func notOfferedMessage(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("resource %s (no instance type and no node offers it)", names[0])
	}
	slices.Sort(names)
	return fmt.Sprintf("resources %s (no instance type and no node offers them)", someOf(names))
}
