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
	if len(s.Left) != len(p.Stacks) {
		return fmt.Errorf("%d entries for %d stacks", len(s.Left), len(p.Stacks))
	}
	placed := make([]int, len(p.Stacks))
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
			placed[part.Stack] += part.Count * b.Times
		}
		price += p.Offers[b.Offer].Price * float64(b.Times)
	}
	for i := range p.Stacks {
		if s.Left[i] < 0 || placed[i]+s.Left[i] != p.Stacks[i].Count {
			return fmt.Errorf("stack %d: %d placed and %d left of %d", i, placed[i], s.Left[i], p.Stacks[i].Count)
		}
	}
	if math.Abs(price-s.Price) > 1e-9*(1+price) {
		return fmt.Errorf("the price is %g, not %g", price, s.Price)
	}
	return checkLedger(p, s)
}

func checkNode(p *pack.Problem, b *pack.Bin) error {
	o := &p.Offers[b.Offer]
	var load resource.Vector
	var pods []int // the stack of each pod
	last := -1
	for _, part := range b.Parts {
		if part.Count < 1 || part.Stack <= last {
			return fmt.Errorf("parts are not in order")
		}
		last = part.Stack
		st := &p.Stacks[part.Stack]
		if !p.Sites[st.Site].Has(b.Offer) {
			return fmt.Errorf("stack %d is not for offer %d", part.Stack, b.Offer)
		}
		for range part.Count {
			load = load.Add(st.Need)
			pods = append(pods, part.Stack)
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
			for _, id := range p.Stacks[a].Shuns {
				if slices.Contains(p.Stacks[c].Shunned, id) {
					return fmt.Errorf("stack %d shuns %d, stack %d is there", a, id, c)
				}
			}
		}
		for _, limit := range p.Stacks[a].Caps {
			n := int32(0)
			for _, c := range pods {
				if slices.Contains(p.Stacks[c].Counts, limit.ID) {
					n++
				}
			}
			if n > limit.Most {
				return fmt.Errorf("%d pods count for %d, stack %d allows %d", n, limit.ID, a, limit.Most)
			}
		}
	}
	if p.Suits != nil && !p.Suits(b.Offer, b.Parts) {
		return fmt.Errorf("it does not suit")
	}
	return nil
}

func checkLedger(p *pack.Problem, s *pack.Solution) error {
	for i := range p.Shelves {
		nodes, sum := int64(0), resource.Vector{}
		for _, b := range s.Bins {
			if p.Offers[b.Offer].Shelf == i {
				nodes += int64(b.Times)
				sum = sum.Add(p.Offers[b.Offer].Charge.Times(int64(b.Times)))
			}
		}
		if shelf := &p.Shelves[i]; nodes > 0 {
			if shelf.Nodes >= 0 && nodes > shelf.Nodes {
				return fmt.Errorf("shelf %d: %d nodes of %d", i, nodes, shelf.Nodes)
			}
			for dim, bound := range shelf.Bound {
				if bound && sum[dim] > shelf.Left[dim] {
					return fmt.Errorf("shelf %d: %d of %d in dimension %d", i, sum[dim], shelf.Left[dim], dim)
				}
			}
		}
	}
	for i, stock := range p.Stocks {
		nodes := 0
		for _, b := range s.Bins {
			if p.Offers[b.Offer].Stock == i {
				nodes += b.Times
			}
		}
		if nodes > max(stock, 0) {
			return fmt.Errorf("stock %d: %d nodes of %d", i, nodes, stock)
		}
	}
	return nil
}
