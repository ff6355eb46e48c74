package schedule

import (
	"slices"
	"strconv"
)

// mostRankings bounds how many rankings of types are kept from one what-if to the next.
const mostRankings = 64

// Buy finds the cheapest new nodes for those who have found no room; ok is false if some can't be had any. A brief look
// takes a fraction of the time and may miss the cheapest by a few percent.
func (w *WhatIf) Buy(brief bool) (bins []Bin, ok bool) {
	w.market.brief = brief
	var podSets []*podSet
	for _, b := range w.withoutRoom {
		b.podSet.pods, b.podSet.withoutGroup = slices.Clone(b.pods), false
		podSets = append(podSets, b.podSet)
	}
	defer func() {
		for _, p := range podSets {
			p.pods, p.assignedSets, p.lastConflict = nil, nil, nil
		}
	}()
	for _, pm := range w.market.markets {
		if len(pm.rankings) > mostRankings {
			pm.rankings = nil
		}
	}
	if w.newBins = nil; w.supplyBefore == nil {
		w.supplyBefore = w.market.saveSupply()
	} else {
		w.supplyBefore.restore(w.market)
	}
	w.steps += copyCost(w.counts, podSets, maxRounds)
	trial := w.counts.copyFor(&w.scratchCounts, podSets)
	hosts := &hostFitter{counts: trial, market: w.market, podSets: podSets, usePreferences: w.usePreferences}
	for round := range maxRounds {
		more := buyTiers(trial, w.market, podSets, hosts, round > 0)
		kept, dropped := verify(trial, w.market, more, w.binsNamed+len(w.newBins))
		w.newBins = append(w.newBins, kept...)
		if !anyUnplaced(podSets) || !anotherRoundHelps(trial, podSets, len(kept), dropped) {
			break
		}
		if w.supplyBefore.bounded {
			w.market.refresh()
		}
	}
	for _, b := range w.newBins {
		bins = append(bins, b.finish())
	}
	return bins, !anyUnplaced(podSets)
}

// copyCost is about how many steps it takes to copy what the counts know of the pod sets, and to put their pods on new
// nodes so often.
func copyCost(t *topologyCounts, podSets []*podSet, times int) int {
	sum := len(t.rules) / ruleCopies
	for _, p := range podSets {
		sum += times * p.ruleSteps() * max(1, len(p.pods))
	}
	return sum
}

// ruleCopies is how many rules can be copied in the time in which one is looked at.
const ruleCopies = 4

// anyUnplaced reports whether some kind still has pods without a place.
func anyUnplaced(podSets []*podSet) bool {
	return slices.ContainsFunc(podSets, func(p *podSet) bool { return len(p.pods) > 0 })
}

// addBin takes a new node and its pods into the topology counts.
func (w *WhatIf) addBin(b *openBin) {
	h := b.asHost("new-" + strconv.Itoa(w.binsNamed))
	w.binsNamed++
	if len(w.counts.rules) > 0 {
		pos := w.counts.addNode(&h)
		w.counts.addPossibleDomains(b, &h, pos)
		w.counts.addDaemonsToBin(b, pos)
		for _, ld := range b.contents {
			w.counts.addPods(pos.domains, pos.countsForSpread, ld.podSet, len(ld.pods))
		}
	}
	for _, ld := range b.contents {
		w.counts.volumes.reserve(ld.podSet.exclusive)
	}
}

// copyFor makes out a copy of the counts in which only those rules are counted on that have to do with the pod sets:
// the others are not copied, because nobody asks for them.
func (tc *topologyCounts) copyFor(out *topologyCounts, podSets []*podSet) *topologyCounts {
	rules, spreads := make([]bool, len(tc.rules)), make([]bool, len(tc.spreads))
	mark := func(ids []int32) {
		for _, id := range ids {
			rules[id] = true
			for _, n := range tc.rules[id].spreads {
				spreads[n] = true
			}
		}
	}
	mark(tc.daemonRules)
	for _, p := range podSets {
		mark(p.declared)
		mark(p.selectedBy)
		mark(p.preferred)
	}
	return tc.copyTo(out, rules, spreads)
}
