package schedule

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/resource"
)

// EmptyBins makes n nodes of a pool for nobody in particular: whatever the pool's template allows, the cheapest first.
// Fewer come back if no more can be had, and then why says what is missing.
func EmptyBins(s *cluster.Snapshot, p *cluster.Pool, settings Settings, n int) (bins []market.Bin, why reason.Text) {
	pm := market.NewPool(s, p)
	stocks := make(map[string]int)
	for i := range p.Catalog.Offerings {
		if o := &p.Catalog.Offerings[i]; o.Reservation != "" {
			stocks[o.Reservation] = o.ReservationLeft
		}
	}
	known := make(map[int]market.Bin) // by offering: many are alike
	for range n {
		pm.RefreshBuyable(stocks)
		row := cheapest(pm)
		if row < 0 {
			return bins, nothingReason(pm)
		}
		b, made := known[row]
		if !made {
			chosen := market.NewChoice(pm, row, nil, resource.Vector{})
			b = chosen.ToBin()
			if key := pm.ShortOfValues(chosen.Offerings); key != "" && !settings.RelaxMinValues {
				return bins, reason.Of(reason.MinValuesUnsold, key)
			}
			known[row] = b
		}
		pm.Headroom.Charge(b.Capacity, 1)
		if id := p.Catalog.Offerings[row].Reservation; id != "" {
			stocks[id]--
		}
		bins = append(bins, b)
	}
	return bins, reason.Text{}
}

// cheapest is the offering that costs least of those that can be bought, or −1.
func cheapest(pm *market.Pool) int {
	best := -1
	for i := range pm.Buyable.All {
		if best < 0 || pm.Spec.Catalog.Offerings[i].Price < pm.Spec.Catalog.Offerings[best].Price {
			best = i
		}
	}
	return best
}

// nothingReason says why nothing can be bought.
func nothingReason(pm *market.Pool) reason.Text {
	switch {
	case !pm.Offered.Any():
		return NoTypesReason(pm.Spec)
	case !pm.Offered.And(pm.Spec.Catalog.Available()).Any():
		return reason.Of(reason.NothingAvailable)
	case !pm.ForSale.Any():
		return reason.Of(reason.DaemonsFillAll)
	case pm.Headroom.Limits.HasNodes && pm.Headroom.Nodes >= pm.Headroom.Limits.Nodes:
		return reason.Of(reason.LimitOnNodesReached, pm.Headroom.Limits.Nodes)
	}
	return reason.Of(reason.LimitsUsedUp)
}
