package saving

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// BalanceSheet is what linked moves take away and what it has cost so far.
type BalanceSheet struct {
	// Removed are those that go; RemovedPrice is what they cost, and AddedPrice what has been made in their place.
	Removed                  []disrupt.Candidate
	RemovedPrice, AddedPrice float64
}

// SheetOf is what it is worth if the nodes go and nothing is bought.
func SheetOf(removed []disrupt.Candidate) BalanceSheet {
	b := BalanceSheet{Removed: removed}
	for i := range removed {
		b.RemovedPrice += removed[i].Price
	}
	return b
}

// Pay adds what replacements cost; it is false if nobody knows.
func (b *BalanceSheet) Pay(s *cluster.Snapshot, replacements []*cluster.Claim) bool {
	for _, c := range replacements {
		price, known := ReplacementPrice(s, c)
		if !known {
			return false
		}
		b.AddedPrice += price
	}
	return true
}

// rounding is by how much two ways to add the same prices up may differ.
const rounding = 1e-9

// Saving is what is saved per hour.
func (b *BalanceSheet) Saving() float64 { return b.RemovedPrice - b.AddedPrice }

// Shortfall says why it does not pay, if more has to be bought at the price.
func (b *BalanceSheet) Shortfall(set disrupt.Settings, more float64) disrupt.BlockReason {
	switch saved := b.Saving() - more; {
	case saved < Least-rounding:
		return disrupt.NothingCheaper
	case saved < Needed(set, b.Removed)-rounding:
		return disrupt.SavesTooLittle
	}
	return ""
}

// ReplacementPrice is what a replacement costs or, while that is open, what it will cost at least; known is false if
// nobody sells what it is.
func ReplacementPrice(s *cluster.Snapshot, c *cluster.Claim) (price float64, known bool) {
	p := s.Pool(c.Pool)
	if c.Price > 0 || p == nil || p.Catalog == nil {
		return c.Price, c.Price > 0
	}
	n := s.NodeOf(c.Name)
	kind, terms := disrupt.LabelOf(c, n, cluster.InstanceTypeLabel), disrupt.LabelOf(c, n, cluster.CapacityTypeLabel)
	if kind != "" && terms != "" { // a node may say what it is before its claim does, but not on what terms
		return p.Catalog.Price(kind, disrupt.LabelOf(c, n, cluster.ZoneLabel), terms)
	}
	for i := range p.Catalog.Offerings {
		o := &p.Catalog.Offerings[i]
		if _, ok := c.Requirements.FirstMiss(func(key string) (string, bool) {
			if value, known := o.Label(key); known {
				return value, true
			}
			return c.Labels.Get(key)
		}); ok && o.Available && (!known || o.Price < price) {
			price, known = o.Price, true
		}
	}
	return price, known
}
