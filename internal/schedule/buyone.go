package schedule

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// NoSwapReason is why no single new node takes the place of another.
type NoSwapReason string

const (
	TooDear   NoSwapReason = "TooDear"   // the cheapest with room for all costs too much
	FewValues NoSwapReason = "FewValues" // it leaves fewer values than the pool's minValues ask for
	NotAlone  NoSwapReason = "NotAlone"  // the pods may not all be together there
)

// chooseOne finds one new node, below the price, that holds all the contents under the pins; reason says what keeps it
// from that. It is quicker than buy and asks less: pods may not need one another more than they did where they were, so
// it is for pods of one node.
//
// price is what the cheapest node would cost that has room for them, +Inf if there is none.
func (b *buyer) chooseOne(contents []binContent, pins require.Set, below float64) (c *chosenOffering, price float64,
	reason NoSwapReason) {
	var sets []*feasibleSet
	var sum resource.Vector
	for _, ld := range contents {
		sum = sum.Add(ld.podSet.Class.Requests.Times(int64(len(ld.pods))))
		if s := b.market.feasibleSet([]*cluster.PodClass{ld.podSet.Class}, pins); !slices.Contains(sets, s) {
			sets = append(sets, s)
		}
	}
	slices.SortFunc(sets, func(x, y *feasibleSet) int { return x.number - y.number })
	pm, row, price := b.market.cheapestFor(sets, &sum)
	if pm == nil || price >= below {
		return nil, price, TooDear
	}
	c = newChosenOffering(pm, row, sets, sum)
	switch {
	case len(c.matches) < len(sets) || !c.labelsAgree():
		return nil, price, NotAlone
	case pm.firstMinValuesKey() != "" && pm.shortOfValues(c.interchangeable().offerings) != "":
		return nil, price, FewValues
	}
	return c, price, ""
}

// takeOne makes a new node of what was chosen for the contents. The counts are told nothing of it.
func (b *buyer) takeOne(c *chosenOffering, contents []binContent) *openBin {
	out := &openBin{Bin: c.toBin(), market: c.market, offering: c.offering, contents: contents}
	out.offerings = c.offerings
	out.market.limits.charge(out.Capacity, 1)
	return out
}

// allFit reports whether all the node's pods get in, in whatever order, as kube-scheduler lets them.
func (b *buyer) allFit(bin *openBin) bool {
	v := b.openNodes([]*openBin{bin})
	v.letIn(func(*topology.PodSet) bool { return true })
	for j := range bin.contents {
		if v.in[0][j] < len(bin.contents[j].pods) {
			return false
		}
	}
	return true
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
