package pack

import "slices"

// remainingSupply is what may still be bought.
type remainingSupply struct {
	p            *Problem
	limits       []Limit
	reservations []int
}

func newRemainingSupply(p *Problem) remainingSupply {
	return remainingSupply{p: p, limits: slices.Clone(p.Limits), reservations: slices.Clone(p.Reservations)}
}

func (rs *remainingSupply) clone() remainingSupply {
	return remainingSupply{p: rs.p, limits: slices.Clone(rs.limits), reservations: slices.Clone(rs.reservations)}
}

// allows says how many nodes of the bin type, at most limit, may be bought.
func (rs *remainingSupply) allows(binType, limit int) int {
	o := &rs.p.BinTypes[binType]
	n := int64(limit)
	if o.Reservation >= 0 && o.Reservation < len(rs.reservations) {
		n = min(n, int64(rs.reservations[o.Reservation]))
	}
	if o.Limit >= 0 && o.Limit < len(rs.limits) {
		s := &rs.limits[o.Limit]
		if s.Nodes >= 0 {
			n = min(n, s.Nodes)
		}
		for dim, bound := range s.Limited {
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

// buy takes nodes of the bin type off what is left; a negative number gives them back.
func (rs *remainingSupply) buy(binType, nodes int) {
	o := &rs.p.BinTypes[binType]
	if o.Reservation >= 0 && o.Reservation < len(rs.reservations) {
		rs.reservations[o.Reservation] -= nodes
	}
	if o.Limit >= 0 && o.Limit < len(rs.limits) {
		s := &rs.limits[o.Limit]
		if s.Nodes >= 0 {
			s.Nodes -= int64(nodes)
		}
		for dim, bound := range s.Limited {
			if bound {
				s.Left[dim] -= o.Charge[dim] * int64(nodes)
			}
		}
	}
}
