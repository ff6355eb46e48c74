package schedule

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// EmptyBins makes n nodes of a pool for nobody in particular: whatever the pool's template allows, the cheapest first.
// Fewer come back if no more can be had, and then why says what is missing.
func EmptyBins(s *cluster.Snapshot, p *cluster.Pool, settings Settings, n int) (bins []Bin, reason string) {
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
				return bins, fmt.Sprintf("minValues of %s can't be met by what is for sale", key)
			}
			known[row] = b
		}
		pm.limits.charge(b.Capacity, 1)
		if id := p.Catalog.Offerings[row].Reservation; id != "" {
			stocks[id]--
		}
		bins = append(bins, b)
	}
	return bins, ""
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
func (pm *poolMarket) nothingReason() string {
	switch {
	case !pm.offered.Any():
		return NoTypesReason(pm.pool)
	case !pm.offered.And(pm.pool.Catalog.Available()).Any():
		return "nothing that the pool's requirements allow is available now"
	case !pm.forSale.Any():
		return "no instance type that the pool's requirements allow holds its daemonsets"
	case pm.limits.limits.HasNodes && pm.limits.nodes >= pm.limits.limits.Nodes:
		return fmt.Sprintf("spec.limits.nodes is %d", pm.limits.limits.Nodes)
	}
	return "the pool's limits or reservations are used up"
}
