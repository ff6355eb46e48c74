package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/topology"
)

// reuseHopeless answers for the pods of classes that found no place before, as long as nothing has happened that could
// help them. Pods whose rules look at other pods are always tried: a pod that comes may help them.
func (p *Placement) reuseHopeless(before *Placement, podSets []*topology.PodSet) {
	if before == nil || p.helpRev == 0 || before.helpRev != p.helpRev {
		return
	}
	for _, set := range podSets {
		reason, known := before.hopeless[set.Class.Key]
		if !known || !set.IsIndependent() {
			continue
		}
		p.hopeless[set.Class.Key] = reason
		for _, pod := range set.TakePods(len(set.Pods)) {
			reason.Pod = pod
			p.Unplaced = append(p.Unplaced, reason)
		}
	}
}

// findHopeless finds the pod sets for which there is nothing, were they alone: neither a host nor anything for sale.
// Pod sets that others were preferred to are not among them: they are tried again each time.
func (f *hostFitter) findHopeless() {
	for _, p := range f.podSets {
		p.Hopeless = p.IsIndependent() && !f.market.FeasibleSet([]*cluster.PodClass{p.Class},
			nil).Fits(&p.Class.Requests) &&
			!slices.ContainsFunc(f.hosts, func(h *topology.Host) bool {
				return h.Takes(p) && f.suits(h, p) || h.HasSeatFor(p)
			})
	}
}

// rememberHopeless keeps the reason of a pod set for which there is nothing.
func (p *Placement) rememberHopeless(set *topology.PodSet, reason Unplaced) {
	if reason.Pod = nil; set.Hopeless {
		p.hopeless[set.Class.Key] = reason
	}
}
