package schedule

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Blank makes n nodes of a pool for nobody in particular: whatever the pool's template allows, the cheapest first. Fewer
// come back if no more can be had, and then why says what is missing.
func Blank(s *cluster.Snapshot, p *cluster.Pool, settings Settings, n int) (bins []Bin, why string) {
	m := newMarket(s, p)
	stocks := make(map[string]int)
	for i := range p.Catalog.Offerings {
		if o := &p.Catalog.Offerings[i]; o.Reservation != "" {
			stocks[o.Reservation] = o.Left
		}
	}
	known := make(map[int]Bin) // by offering: many are alike
	for range n {
		m.stockUp(stocks)
		row := m.cheapest()
		if row < 0 {
			return bins, m.lacking()
		}
		b, made := known[row]
		if !made {
			purchase := newPurchase(m, row, nil, resource.Vector{})
			b = purchase.bin()
			if key := m.shortOfValues(purchase.rows); key != "" && !settings.RelaxMinValues {
				return bins, fmt.Sprintf("minValues of %s can't be met by what is for sale", key)
			}
			known[row] = b
		}
		m.left.charge(b.Capacity, 1)
		if id := p.Catalog.Offerings[row].Reservation; id != "" {
			stocks[id]--
		}
		bins = append(bins, b)
	}
	return bins, ""
}

// cheapest is the offering that costs least of those that can be bought, or −1.
func (m *market) cheapest() int {
	best := -1
	for i := range m.buyable.All {
		if best < 0 || m.pool.Catalog.Offerings[i].Price < m.pool.Catalog.Offerings[best].Price {
			best = i
		}
	}
	return best
}

// lacking says why nothing can be bought.
func (m *market) lacking() string {
	switch {
	case !m.offered.Any():
		return NothingFor(m.pool)
	case !m.offered.And(m.pool.Catalog.Available()).Any():
		return "nothing that the pool's requirements allow is available now"
	case !m.forSale.Any():
		return "no instance type that the pool's requirements allow holds its daemonsets"
	case m.left.limits.HasNodes && m.left.nodes >= m.left.limits.Nodes:
		return fmt.Sprintf("spec.limits.nodes is %d", m.left.limits.Nodes)
	}
	return "the pool's limits or reservations are used up"
}
