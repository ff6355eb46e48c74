package whatif

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/topology"
)

// BuyOne finds one new node, below the price, that takes all who have found no room; why says what keeps it from that.
// It is quicker than Buy and asks less: they may not need one another more than they did where they were, so it is for
// pods of one node.
//
// price is what the cheapest node would cost that has room for them, +Inf if there is none.
func (w *WhatIf) BuyOne(below float64) (bins []market.Bin, price float64, reason purchase.NoSwapReason) {
	var podSets []*topology.PodSet
	var contents []purchase.Content
	for _, b := range w.withoutRoom {
		podSets = append(podSets, b.PodSet)
		contents = append(contents, purchase.Content{PodSet: b.PodSet, Pods: slices.Clone(b.pods)})
	}
	var pins require.Set // if rules tell domains apart, other than nodes, the new node must be in the same
	zone, there := w.undoLog[0].target.Labels.Get(cluster.ZoneLabel)
	if there && (len(w.counts.DaemonRules) > 0 || len(w.counts.DomainKeys(podSets...)) > 0) {
		pins = pins.With(cluster.ZoneLabel, require.Only(zone))
	}
	chosen, price, reason := w.buyer.ChooseOne(contents, pins, below)
	if chosen == nil {
		return nil, price, reason
	}
	w.supplyBefore = w.market.SaveSupply()
	bin := w.buyer.TakeOne(chosen, contents)
	if len(w.counts.Rules) > 0 {
		w.tryOn(podSets, 1)
		if !w.buyer.AllFit(bin) {
			return nil, price, purchase.NotAlone
		}
	}
	w.newBins = append(w.newBins[:0], bin)
	return []market.Bin{bin.Finish()}, price, ""
}
