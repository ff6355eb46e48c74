package podspec

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

// IsOffered reports whether a resource can be had. Volumes are counted by limits that somebody has set.
func (d *Dimensions) IsOffered(name string) bool {
	switch {
	case strings.HasPrefix(name, resource.AttachPrefix):
		return true
	case d.supply.sold[name] || d.supply.shownBy[name] > 0:
		return true
	}
	dim, known := d.Names.Lookup(name)
	return known && dim <= resource.Pods
}

// Offer takes in that a node or a claim shows other lists than before.
func (d *Dimensions) Offer(old, now []corev1.ResourceList) {
	for _, list := range now {
		for name, q := range list {
			if q.Sign() > 0 {
				d.supply.shownBy[string(name)]++
				d.supply.hasNew = d.supply.hasNew || d.supply.shownBy[string(name)] == 1
			}
		}
	}
	for _, list := range old {
		for name, q := range list {
			if q.Sign() <= 0 {
				continue
			}
			if d.supply.shownBy[string(name)]--; d.supply.shownBy[string(name)] == 0 {
				delete(d.supply.shownBy, string(name))
			}
		}
	}
}

// SetSold takes in which resources can be bought.
func (d *Dimensions) SetSold(available map[string]bool) {
	for name := range available {
		d.supply.hasNew = d.supply.hasNew || !d.supply.sold[name]
	}
	d.supply.sold = available
}

// TakeNewOffers reports whether something has been offered since this was asked last.
func (d *Dimensions) TakeNewOffers() bool {
	had := d.supply.hasNew
	d.supply.hasNew = false
	return had
}

// NotOfferedMessage says why pods that ask for the resources get no node.
func NotOfferedMessage(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("resource %s (no instance type and no node offers it)", names[0])
	}
	slices.Sort(names)
	return fmt.Sprintf("resources %s (no instance type and no node offers them)", someOf(names))
}
