package schedule

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// NoSwapReason is why no single new node takes the place of another.
type NoSwapReason string

const (
	TooDear   NoSwapReason = "TooDear"   // the cheapest with room for all costs too much
	FewValues NoSwapReason = "FewValues" // it leaves fewer values than the pool's minValues ask for
	NotAlone  NoSwapReason = "NotAlone"  // the pods may not all be together there
)

// BuyOne finds one new node, below the price, that takes all who have found no room; why says what keeps it from that.
// It is quicker than Buy and asks less: they may not need one another more than they did where they were, so it is for
// pods of one node.
//
// price is what the cheapest node would cost that has room for them, +Inf if there is none.
func (w *WhatIf) BuyOne(below float64) (bins []Bin, price float64, reason NoSwapReason) {
	sets, content := w.jointDemand()
	pm, row, price := w.market.cheapestFor(sets, &content)
	if pm == nil || price >= below {
		return nil, price, TooDear
	}
	c := newChosenOffering(pm, row, sets, content)
	switch {
	case len(c.matches) < len(sets) || !c.labelsAgree():
		return nil, price, NotAlone
	case pm.firstMinValuesKey() != "" && pm.shortOfValues(c.interchangeable().offerings) != "":
		return nil, price, FewValues
	}
	bins, ok := w.verifyChoice(c)
	if !ok {
		return nil, price, NotAlone
	}
	return bins, price, ""
}

// jointDemand is where all who have found no room can be together, and what they need.
func (w *WhatIf) jointDemand() (sets []*feasibleSet, content resource.Vector) {
	var pins require.Set
	if zone, there := w.undoLog[0].target.Labels.Get(cluster.ZoneLabel); there && w.hasDomainRules() {
		pins = pins.With(cluster.ZoneLabel, require.Only(zone))
	}
	for _, b := range w.withoutRoom {
		content = content.Add(b.class.Requests.Times(int64(len(b.pods))))
		if s := w.market.feasibleSet([]*cluster.PodClass{b.class}, pins); !slices.Contains(sets, s) {
			sets = append(sets, s)
		}
	}
	slices.SortFunc(sets, func(x, y *feasibleSet) int { return x.number - y.number })
	return sets, content
}

// hasDomainRules reports whether rules tell domains apart, other than nodes, for somebody who has found no room.
func (w *WhatIf) hasDomainRules() bool {
	tells := func(ids []int32) bool {
		return slices.ContainsFunc(ids, func(id int32) bool {
			t := &w.counts.rules[id]
			return t.required && !w.counts.keys[t.key].isHostname
		})
	}
	return len(w.counts.daemonRules) > 0 || slices.ContainsFunc(w.withoutRoom, func(b movingBatch) bool {
		return tells(b.declared) || tells(b.selectedBy)
	})
}

// cheapestFor finds the cheapest offering of the first tier that has one for all the feasible sets together.
func (mk *market) cheapestFor(sets []*feasibleSet, content *resource.Vector) (best *poolMarket, row int,
	price float64) {
	price = math.Inf(1)
	for _, tier := range mk.tiers {
		for _, pm := range tier {
			rows := pm.buyable
			for _, s := range sets {
				rows = rows.And(s.offerings[pm.number])
			}
			for _, i := range pm.byPrice() {
				if o := &pm.pool.Catalog.Offerings[i]; o.Price >= price {
					break
				} else if rows.Has(i) && o.Reservation == "" && pm.fits(i, content) {
					best, row, price = pm, i, o.Price
					break
				}
			}
		}
		if best != nil {
			break
		}
	}
	return best, row, price
}

// byPrice lists what is for sale, the cheapest first.
func (pm *poolMarket) byPrice() []int {
	if pm.offeringsByPrice == nil {
		for i := range pm.forSale.All {
			pm.offeringsByPrice = append(pm.offeringsByPrice, i)
		}
		slices.SortFunc(pm.offeringsByPrice, func(i, j int) int {
			return cmp.Or(cmp.Compare(pm.pool.Catalog.Offerings[i].Price, pm.pool.Catalog.Offerings[j].Price), i-j)
		})
	}
	return pm.offeringsByPrice
}

// labelsAgree reports whether the feasible sets' alternatives want the same values of labels that the pool leaves open.
func (co *chosenOffering) labelsAgree() bool {
	var settled cluster.Labels
	for _, m := range co.matches {
		for _, label := range m.openLabels {
			if value, ok := settled.Get(label.Key); ok && value != label.Value {
				return false
			}
		}
		settled = settled.Merge(m.openLabels)
	}
	return true
}

// verifyChoice lets those who have found no room move into a new node, as kube-scheduler will.
func (w *WhatIf) verifyChoice(co *chosenOffering) (bins []Bin, ok bool) {
	w.supplyBefore = w.market.saveSupply()
	ob := &openBin{Bin: co.toBin(), market: co.market, offering: co.offering}
	ob.offerings = co.offerings
	var podSets []*podSet
	for _, b := range w.withoutRoom {
		podSets = append(podSets, b.podSet)
		ob.contents = append(ob.contents, binContent{b.podSet, slices.Clone(b.pods), nil})
	}
	ob.market.limits.charge(ob.Capacity, 1)
	if len(w.counts.rules) > 0 {
		w.steps += copyCost(w.counts, podSets, 1)
		trial := w.counts.copyFor(&w.scratchCounts, podSets)
		h := ob.asHost("new")
		pos := trial.addNode(&h)
		trial.addPossibleDomains(ob, &h, pos)
		trial.addDaemonsToBin(ob, pos)
		if !trial.allFit(pos, ob.contents) {
			return nil, false
		}
	}
	w.newBins = append(w.newBins[:0], ob)
	return []Bin{ob.finish()}, true
}

// allFit reports whether all the loads' pods get in, in whatever order.
func (tc *topologyCounts) allFit(pos *position, loads []binContent) bool {
	in := make([]int, len(loads))
	for again := true; again; {
		again = false
		for j := range loads {
			again = tc.placeContent(pos, &loads[j], &in[j]) || again
		}
	}
	for j := range loads {
		if in[j] < len(loads[j].pods) {
			return false
		}
	}
	return true
}
