package ingest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/resource"
)

// offers is which resources can be had at all. What nobody has needs no dimension: a pod that asks for it can't be placed, and
// the few dimensions are left to those who can.
type offers struct {
	sold map[string]bool // by an instance type of some catalog
	has  map[string]int  // how many lists of nodes and claims have some of it
	// gaveWay are resources that only nodes offer and that are not counted: there were too many kinds.
	gaveWay map[string]bool
	// news says that something has been offered since the classes were made.
	news bool
}

func newOffers() offers {
	return offers{sold: make(map[string]bool), has: make(map[string]int), gaveWay: make(map[string]bool)}
}

// offered reports whether a resource can be had. Volumes are counted by limits that somebody has set. The lock is held.
func (b *Book) offered(name string) bool {
	switch {
	case strings.HasPrefix(name, resource.AttachPrefix):
		return true
	case b.offers.sold[name] || b.offers.has[name] > 0:
		return true
	}
	dim, known := b.names.Lookup(name)
	return known && dim <= resource.Pods
}

// offer takes in that a node or a claim shows other lists than before. The lock is held.
func (b *Book) offer(old, now []corev1.ResourceList) {
	for _, list := range now {
		for name, q := range list {
			if q.Sign() > 0 {
				b.offers.has[string(name)]++
				b.offers.news = b.offers.news || b.offers.has[string(name)] == 1
			}
		}
	}
	for _, list := range old {
		for name, q := range list {
			if q.Sign() <= 0 {
				continue
			}
			if b.offers.has[string(name)]--; b.offers.has[string(name)] == 0 {
				delete(b.offers.has, string(name))
			}
		}
	}
}

// readSold takes in what the catalogs sell. The lock is held.
func (b *Book) readSold() {
	sold := make(map[string]bool)
	seen := make(map[*measured]bool)
	for _, e := range b.shelf {
		if e.stock == nil || seen[e.stock] {
			continue
		}
		seen[e.stock] = true
		for _, t := range e.stock.types {
			for name, q := range t.Capacity {
				if q.Sign() > 0 {
					sold[string(name)] = true
				}
			}
			for driver := range t.VolumeLimits {
				sold[resource.AttachPrefix+driver] = true
			}
		}
	}
	for name := range sold {
		b.offers.news = b.offers.news || !b.offers.sold[name]
	}
	b.offers.sold = sold
}

// offerAgain makes classes anew that ask for what can be had only now. The lock is held.
func (b *Book) offerAgain() {
	if !b.offers.news {
		return
	}
	b.offers.news = false
	b.numberWanted()
	b.remake(b.lacksNumber)
}

// nobodyOffers says why pods that ask for the resources get no node.
func nobodyOffers(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("resource %s (no instance type and no node offers it)", names[0])
	}
	slices.Sort(names)
	return fmt.Sprintf("resources %s (no instance type and no node offers them)", someOf(names))
}
