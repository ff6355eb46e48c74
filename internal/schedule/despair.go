package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// despair answers for the pods of classes that found no place before, as long as nothing has happened that could help
// them. Pods whose rules look at other pods are always tried: a pod that comes may help them.
func (p *Placement) despair(before *Placement, kinds []*kind) {
	if before == nil || p.help == 0 || before.help != p.help {
		return
	}
	for _, k := range kinds {
		why, known := before.hopeless[k.class.Key]
		if !known || !steady(k) {
			continue
		}
		p.hopeless[k.class.Key] = why
		for _, pod := range k.take(len(k.pods)) {
			why.Pod = pod
			p.Unplaced = append(p.Unplaced, why)
		}
	}
}

// steady reports whether what the kind's pods find depends on nothing but their class, nodes and what is for sale.
func steady(k *kind) bool {
	return len(k.carries) == 0 && len(k.counted) == 0 && len(k.exclusive) == 0 && len(k.volumes) == 0
}

// doom finds the kinds for which there is nothing, were they alone: neither a host nor anything for sale. Kinds that others
// were preferred to are not among them: they are tried again each time.
func (s *settler) doom() {
	for _, k := range s.kinds {
		k.doomed = steady(k) && !s.shop.site([]*cluster.PodClass{k.class}, nil).holds(&k.class.Requests) &&
			!slices.ContainsFunc(s.houses, func(h *house) bool { return s.fits(h, k) && s.suits(h, k) || h.keeps(k) })
	}
}

// keeps reports whether the host keeps a seat for pods of the kind.
func (h *house) keeps(k *kind) bool {
	return slices.ContainsFunc(h.Seats, func(seat cluster.Seat) bool { return seat.Class == k.class.Key })
}

// remember keeps the reason of a kind for which there is nothing.
func (p *Placement) remember(k *kind, why Unplaced) {
	if why.Pod = nil; k.doomed {
		p.hopeless[k.class.Key] = why
	}
}
