package pack_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/resource"
)

// check re-verifies an answer against every rule of the problem, in the plainest way.
func check(p *pack.Problem, s *pack.Solution) error {
	if len(s.Unplaced) != len(p.Items) {
		return fmt.Errorf("%d entries for %d stacks", len(s.Unplaced), len(p.Items))
	}
	placed := make([]int, len(p.Items))
	price := 0.0
	for i := range s.Bins {
		b := &s.Bins[i]
		if b.Times < 1 || len(b.Parts) == 0 {
			return fmt.Errorf("bin %d is empty: %+v", i, *b)
		}
		if err := checkNode(p, b); err != nil {
			return fmt.Errorf("bin %d (%+v): %w", i, *b, err)
		}
		for _, part := range b.Parts {
			placed[part.Item] += part.Count * b.Times
		}
		price += p.BinTypes[b.BinType].Price * float64(b.Times)
	}
	for i := range p.Items {
		if s.Unplaced[i] < 0 || placed[i]+s.Unplaced[i] != p.Items[i].Count {
			return fmt.Errorf("stack %d: %d placed and %d left of %d", i, placed[i], s.Unplaced[i], p.Items[i].Count)
		}
	}
	if math.Abs(price-s.Price) > 1e-9*(1+price) {
		return fmt.Errorf("the price is %g, not %g", price, s.Price)
	}
	return checkLedger(p, s)
}

func checkNode(p *pack.Problem, b *pack.Bin) error {
	o := &p.BinTypes[b.BinType]
	var load resource.Vector
	var pods []int // the item of each pod
	last := -1
	for _, part := range b.Parts {
		if part.Count < 1 || part.Item <= last {
			return fmt.Errorf("parts are not in order")
		}
		last = part.Item
		st := &p.Items[part.Item]
		if !p.FeasibleSets[st.Feasible].Has(b.BinType) {
			return fmt.Errorf("stack %d is not for offer %d", part.Item, b.BinType)
		}
		for range part.Count {
			load = load.Add(st.Need)
			pods = append(pods, part.Item)
		}
	}
	if !load.Fits(o.Room) {
		return fmt.Errorf("load %v is beyond room %v", load, o.Room)
	}
	for i, a := range pods {
		for j, c := range pods {
			if i == j {
				continue
			}
			for _, id := range p.Items[a].Excludes {
				if slices.Contains(p.Items[c].ExcludedAs, id) {
					return fmt.Errorf("stack %d shuns %d, stack %d is there", a, id, c)
				}
			}
		}
		for _, limit := range p.Items[a].Caps {
			n := int32(0)
			for _, c := range pods {
				if slices.Contains(p.Items[c].Counts, limit.ID) {
					n++
				}
			}
			if n > limit.Most {
				return fmt.Errorf("%d pods count for %d, stack %d allows %d", n, limit.ID, a, limit.Most)
			}
		}
	}
	if p.Suits != nil && !p.Suits(b.BinType, b.Parts) {
		return fmt.Errorf("it does not suit")
	}
	return nil
}

func checkLedger(p *pack.Problem, s *pack.Solution) error {
	for i := range p.Limits {
		nodes, sum := int64(0), resource.Vector{}
		for _, b := range s.Bins {
			if p.BinTypes[b.BinType].Limit == i {
				nodes += int64(b.Times)
				sum = sum.Add(p.BinTypes[b.BinType].Charge.Times(int64(b.Times)))
			}
		}
		if limit := &p.Limits[i]; nodes > 0 {
			if limit.Nodes >= 0 && nodes > limit.Nodes {
				return fmt.Errorf("shelf %d: %d nodes of %d", i, nodes, limit.Nodes)
			}
			for dim, bound := range limit.Limited {
				if bound && sum[dim] > limit.Left[dim] {
					return fmt.Errorf("shelf %d: %d of %d in dimension %d", i, sum[dim], limit.Left[dim], dim)
				}
			}
		}
	}
	for i, reservation := range p.Reservations {
		nodes := 0
		for _, b := range s.Bins {
			if p.BinTypes[b.BinType].Reservation == i {
				nodes += b.Times
			}
		}
		if nodes > max(reservation, 0) {
			return fmt.Errorf("stock %d: %d nodes of %d", i, nodes, reservation)
		}
	}
	return nil
}
