package pack

import "slices"

// ledger is what may still be bought.
type ledger struct {
	p       *Problem
	shelves []Shelf
	stocks  []int
}

func newLedger(p *Problem) ledger {
	return ledger{p: p, shelves: slices.Clone(p.Shelves), stocks: slices.Clone(p.Stocks)}
}

func (l *ledger) clone() ledger {
	return ledger{p: l.p, shelves: slices.Clone(l.shelves), stocks: slices.Clone(l.stocks)}
}

// allows says how many nodes of the offer, at most limit, may be bought.
func (l *ledger) allows(offer, limit int) int {
	o := &l.p.Offers[offer]
	n := int64(limit)
	if o.Stock >= 0 && o.Stock < len(l.stocks) {
		n = min(n, int64(l.stocks[o.Stock]))
	}
	if o.Shelf >= 0 && o.Shelf < len(l.shelves) {
		s := &l.shelves[o.Shelf]
		if s.Nodes >= 0 {
			n = min(n, s.Nodes)
		}
		for dim, bound := range s.Bound {
			switch {
			case !bound:
			case s.Left[dim] < o.Charge[dim]:
				return 0
			case o.Charge[dim] > 0:
				n = min(n, s.Left[dim]/o.Charge[dim])
			}
		}
	}
	return int(max(n, 0))
}

// buy takes nodes of the offer off what is left; a negative number gives them back.
func (l *ledger) buy(offer, nodes int) {
	o := &l.p.Offers[offer]
	if o.Stock >= 0 && o.Stock < len(l.stocks) {
		l.stocks[o.Stock] -= nodes
	}
	if o.Shelf >= 0 && o.Shelf < len(l.shelves) {
		s := &l.shelves[o.Shelf]
		if s.Nodes >= 0 {
			s.Nodes -= int64(nodes)
		}
		for dim, bound := range s.Bound {
			if bound {
				s.Left[dim] -= o.Charge[dim] * int64(nodes)
			}
		}
	}
}
