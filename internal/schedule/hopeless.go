package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// reuseHopeless answers for the pods of classes that found no place before, as long as nothing has happened that could
// help them. Pods whose rules look at other pods are always tried: a pod that comes may help them.
func (p *Placement) reuseHopeless(before *Placement, podSets []*podSet) {
	if before == nil || p.helpRev == 0 || before.helpRev != p.helpRev {
		return
	}
	for _, set := range podSets {
		reason, known := before.hopeless[set.class.Key]
		if !known || !isIndependent(set) {
			continue
		}
		p.hopeless[set.class.Key] = reason
		for _, pod := range set.takePods(len(set.pods)) {
			reason.Pod = pod
			p.Unplaced = append(p.Unplaced, reason)
		}
	}
}

// findHopeless finds the pod sets for which there is nothing, were they alone: neither a host nor anything for sale.
// Pod sets that others were preferred to are not among them: they are tried again each time.
func (f *hostFitter) findHopeless() {
	for _, p := range f.podSets {
		p.hopeless = isIndependent(p) && !f.market.feasibleSet([]*cluster.PodClass{p.class},
			nil).fits(&p.class.Requests) &&
			!slices.ContainsFunc(f.hosts, func(h *hostState) bool {
				return h.takes(p) && f.suits(h, p) || h.hasSeatFor(p)
			})
	}
}

// rememberHopeless keeps the reason of a pod set for which there is nothing.
func (p *Placement) rememberHopeless(set *podSet, reason Unplaced) {
	if reason.Pod = nil; set.hopeless {
		p.hopeless[set.class.Key] = reason
	}
}
