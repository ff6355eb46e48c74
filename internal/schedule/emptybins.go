package schedule

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/resource"
)

// EmptyBins makes n nodes of a pool for nobody in particular: whatever the pool's template allows, the cheapest first.
// Fewer come back if no more can be had, and then why says what is missing.
func EmptyBins(s *cluster.Snapshot, p *cluster.Pool, settings Settings, n int) (bins []Bin, why reason.Text) {
	pm := newPoolMarket(s, p)
	stocks := make(map[string]int)
	for i := range p.Catalog.Offerings {
		if o := &p.Catalog.Offerings[i]; o.Reservation != "" {
			stocks[o.Reservation] = o.ReservationLeft
		}
	}
	known := make(map[int]Bin) // by offering: many are alike
	for range n {
		pm.refreshBuyable(stocks)
		row := pm.cheapest()
		if row < 0 {
			return bins, pm.nothingReason()
		}
		b, made := known[row]
		if !made {
			chosen := newChosenOffering(pm, row, nil, resource.Vector{})
			b = chosen.toBin()
			if key := pm.shortOfValues(chosen.offerings); key != "" && !settings.RelaxMinValues {
				return bins, reason.Of(reason.MinValuesUnsold, key)
			}
			known[row] = b
		}
		pm.limits.charge(b.Capacity, 1)
		if id := p.Catalog.Offerings[row].Reservation; id != "" {
			stocks[id]--
		}
		bins = append(bins, b)
	}
	return bins, reason.Text{}
}

// cheapest is the offering that costs least of those that can be bought, or −1.
func (pm *poolMarket) cheapest() int {
	best := -1
	for i := range pm.buyable.All {
		if best < 0 || pm.pool.Catalog.Offerings[i].Price < pm.pool.Catalog.Offerings[best].Price {
			best = i
		}
	}
	return best
}

// nothingReason says why nothing can be bought.
func (pm *poolMarket) nothingReason() reason.Text {
	switch {
	case !pm.offered.Any():
		return NoTypesReason(pm.pool)
	case !pm.offered.And(pm.pool.Catalog.Available()).Any():
		return reason.Of(reason.NothingAvailable)
	case !pm.forSale.Any():
		return reason.Of(reason.DaemonsFillAll)
	case pm.limits.limits.HasNodes && pm.limits.nodes >= pm.limits.limits.Nodes:
		return reason.Of(reason.LimitOnNodesReached, pm.limits.limits.Nodes)
	}
	return reason.Of(reason.LimitsUsedUp)
}
