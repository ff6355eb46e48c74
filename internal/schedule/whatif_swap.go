package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/topology"
)

// BuyOne finds one new node, below the price, that takes all who have found no room; why says what keeps it from that.
// It is quicker than Buy and asks less: they may not need one another more than they did where they were, so it is for
// pods of one node.
//
// price is what the cheapest node would cost that has room for them, +Inf if there is none.
func (w *WhatIf) BuyOne(below float64) (bins []market.Bin, price float64, reason NoSwapReason) {
	var pins require.Set
	if zone, there := w.undoLog[0].target.Labels.Get(cluster.ZoneLabel); there && w.hasDomainRules() {
		pins = pins.With(cluster.ZoneLabel, require.Only(zone))
	}
	var podSets []*topology.PodSet
	var contents []binContent
	for _, b := range w.withoutRoom {
		podSets = append(podSets, b.PodSet)
		contents = append(contents, binContent{b.PodSet, slices.Clone(b.pods), nil})
	}
	chosen, price, reason := w.buyer.chooseOne(contents, pins, below)
	if chosen == nil {
		return nil, price, reason
	}
	w.supplyBefore = w.market.SaveSupply()
	bin := w.buyer.takeOne(chosen, contents)
	if len(w.counts.Rules) > 0 {
		w.tryOn(podSets, 1)
		if !w.buyer.allFit(bin) {
			return nil, price, NotAlone
		}
	}
	w.newBins = append(w.newBins[:0], bin)
	return []market.Bin{bin.finish()}, price, ""
}

// hasDomainRules reports whether rules tell domains apart, other than nodes, for somebody who has found no room.
func (w *WhatIf) hasDomainRules() bool {
	return len(w.counts.DaemonRules) > 0 || slices.ContainsFunc(w.withoutRoom, func(b movingBatch) bool {
		return len(w.counts.DomainKeys(b.PodSet)) > 0
	})
}
