package whatif

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/topology"
)

// Buy finds the cheapest new nodes for those who have found no room; ok is false if some can't be had any. A brief look
// takes a fraction of the time and may miss the cheapest by a few percent.
func (w *WhatIf) Buy(brief bool) (bins []market.Bin, ok bool) {
	w.buyer.Brief = brief
	var podSets []*topology.PodSet
	for _, b := range w.withoutRoom {
		b.PodSet.Pods, b.PodSet.WithoutGroup = slices.Clone(b.pods), false
		podSets = append(podSets, b.PodSet)
	}
	defer func() {
		for _, p := range podSets {
			p.Pods, p.LastConflict = nil, nil
		}
	}()
	w.market.TrimRankings()
	if w.supplyBefore == nil {
		w.supplyBefore = w.market.SaveSupply()
	} else {
		w.supplyBefore.Restore(w.market)
	}
	w.tryOn(podSets, purchase.MaxRounds)
	w.newBins = w.buyer.Buy(podSets)
	for _, b := range w.newBins {
		bins = append(bins, b.Finish())
	}
	return bins, !purchase.AnyUnplaced(podSets)
}

// tryOn lets the buyer try on a copy of the counts in which only what has to do with the pod sets is counted on, as
// often as is said.
func (w *WhatIf) tryOn(podSets []*topology.PodSet, times int) {
	w.steps += copyCost(w.counts, podSets, times)
	w.buyer.Counts, w.buyer.Named = w.counts.CopyFor(&w.scratchCounts, podSets), w.binsNamed
}

// copyCost is about how many steps it takes to copy what the counts know of the pod sets, and to put their pods on new
// nodes so often.
func copyCost(t *topology.Counts, podSets []*topology.PodSet, times int) int {
	sum := len(t.Rules) / ruleCopies
	for _, p := range podSets {
		sum += times * p.RuleSteps() * max(1, len(p.Pods))
	}
	return sum
}

// ruleCopies is how many rules can be copied in the time in which one is looked at.
const ruleCopies = 4

// addBin takes a new node and its pods into the topology counts.
func (w *WhatIf) addBin(b *purchase.OpenBin) {
	if len(w.counts.Rules) > 0 {
		pos := b.AddNodeTo(w.counts, w.binsNamed)
		for _, ld := range b.Contents {
			w.counts.AddPods(pos, ld.PodSet, len(ld.Pods))
		}
	}
	w.binsNamed++
	for _, ld := range b.Contents {
		w.counts.Volumes.Reserve(ld.PodSet.Exclusive)
	}
}
