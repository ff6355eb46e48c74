package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// candidate is an offering that might become a node.
type candidate struct {
	m        *market
	offering int
	price    float64
	room     resource.Vector
	lands    []int // for each group: which of its wants the offering meets, or −1
}

// filling is what goes into a candidate.
type filling struct {
	counts []int // by group
	open   require.Set
	value  float64
}

// pack buys nodes in the tier for as many pods as it can. It is a greedy cover by price: it takes again and again the
// offering that costs the least for the work it would carry away, where a pod's work is worth what the cheapest
// offering asks for the pod's share of it. Nothing in it depends on the clock or on the order of a map.
func pack(tier []*market, groups []*group, out *Placement) {
	candidates := candidatesOf(tier, groups)
	worth := worthOf(candidates, groups)
	for {
		best, fill := cheapest(candidates, groups, worth)
		if best == nil {
			return
		}
		bin, ok := newBin(best, groups, &fill)
		if !ok {
			// Not even one pod of the group that is left can be kept interchangeable enough here; others still can.
			best.lands[fill.first()] = -1
			continue
		}
		for range repeats(best, groups, &fill, bin.Capacity) {
			b := bin
			b.Pods = nil
			for i, n := range fill.counts {
				b.Pods = append(b.Pods, groups[i].take(n)...)
			}
			out.Bins = append(out.Bins, b)
			best.m.left.charge(bin.Capacity, 1)
		}
	}
}

// repeats is how many bins with the same content can be made at once.
func repeats(c *candidate, groups []*group, fill *filling, capacity resource.Vector) int {
	times := -1
	for i, n := range fill.counts {
		if n > 0 {
			if k := len(groups[i].pods) / n; times < 0 || k < times {
				times = k
			}
		}
	}
	times, _ = c.m.left.allows(capacity, times)
	return times
}

// candidatesOf lists the offerings that can host some pod. Of offerings that no pod can tell apart only the cheapest
// is kept.
func candidatesOf(tier []*market, groups []*group) []*candidate {
	var out []*candidate
	for _, m := range tier {
		wanted := require.NewBits(len(m.room))
		wants := make([][]want, len(groups))
		for i, g := range groups {
			if len(g.pods) == 0 {
				continue
			}
			wants[i] = m.wantsOf(g.class)
			for _, w := range wants[i] {
				wanted = wanted.Or(w.bits)
			}
		}
		out = append(out, m.distinct(wanted.And(m.forSale), wants)...)
	}
	return out
}

// distinct makes a candidate of each offering in bits, leaving out those that are no cheaper than another of the same
// type with the same room that the same wants accept.
func (m *market) distinct(bits require.Bits, wants [][]want) []*candidate {
	var out []*candidate
	first, kind := 0, -1
	for i := range bits.All {
		o := &m.pool.Catalog.Offerings[i]
		c := &candidate{m: m, offering: i, price: o.Price, room: m.room[i], lands: landsOf(wants, i)}
		if o.Type != kind {
			first, kind = len(out), o.Type
		}
		if twin := twinOf(out[first:], c); twin == nil {
			out = append(out, c)
		} else if c.price < twin.price {
			*twin = *c
		}
	}
	return out
}

func twinOf(among []*candidate, c *candidate) *candidate {
	for _, other := range among {
		if other.room != c.room {
			continue
		}
		same := true
		for i := range c.lands {
			if other.lands[i] != c.lands[i] {
				same = false
				break
			}
		}
		if same {
			return other
		}
	}
	return nil
}

func landsOf(wants [][]want, offering int) []int {
	lands := make([]int, len(wants))
	for i, ws := range wants {
		lands[i] = -1
		for j := range ws {
			if ws[j].bits.Has(offering) {
				lands[i] = j
				break
			}
		}
	}
	return lands
}

// worthOf is, for each group, the least that any candidate asks for one pod's share of it. No packing can pay less for
// the pod, so a candidate whose price equals the worth of its content is beyond improvement.
func worthOf(candidates []*candidate, groups []*group) []float64 {
	worth := make([]float64, len(groups))
	for i, g := range groups {
		least := -1.0
		for _, c := range candidates {
			if c.lands[i] < 0 || !g.class.Requests.Fits(c.room) {
				continue
			}
			if share := c.price * dominantShare(g.class.Requests, c.room); least < 0 || share < least {
				least = share
			}
		}
		worth[i] = max(least, 1e-12)
	}
	return worth
}

func dominantShare(need, room resource.Vector) float64 {
	share := 0.0
	for dim := range need {
		if need[dim] > 0 {
			share = max(share, float64(need[dim])/float64(room[dim]))
		}
	}
	return share
}

// cheapest finds the candidate with the lowest price for the worth of what it can hold; among equals the one that
// holds more, then the first.
func cheapest(candidates []*candidate, groups []*group, worth []float64) (*candidate, filling) {
	var best *candidate
	var bestFill filling
	bestScore := 0.0
	for _, c := range candidates {
		capacity := c.m.pool.Catalog.Types[c.m.pool.Catalog.Offerings[c.offering].Type].Capacity
		if n, _ := c.m.left.allows(capacity, 1); n == 0 {
			continue
		}
		fill := c.fill(groups, worth)
		if fill.value == 0 {
			continue
		}
		score := c.price / fill.value
		if best == nil || score < bestScore || score == bestScore && fill.value > bestFill.value {
			best, bestFill, bestScore = c, fill, score
		}
	}
	return best, bestFill
}

// fill puts in as many pods as fit, group by group.
func (c *candidate) fill(groups []*group, worth []float64) filling {
	f := filling{counts: make([]int, len(groups)), open: c.m.open}
	free := c.room
	for i, g := range groups {
		if c.lands[i] < 0 || len(g.pods) == 0 || !g.class.Requests.Fits(free) {
			continue
		}
		open := f.open.And(c.m.wantsOf(g.class)[c.lands[i]].open)
		if _, ok := open.Conflict(); !ok {
			continue
		}
		n := g.class.Requests.Count(free, len(g.pods))
		f.open, f.counts[i] = open, n
		f.value += float64(n) * worth[i]
		free = free.Sub(g.class.Requests.Times(int64(n)))
	}
	return f
}

// content is what the filling asks of a node: the sum of its pods' requests.
func (f *filling) content(groups []*group) resource.Vector {
	var sum resource.Vector
	for i, n := range f.counts {
		if n > 0 {
			sum = sum.Add(groups[i].class.Requests.Times(int64(n)))
		}
	}
	return sum
}

// first is the first group that has something in.
func (f *filling) first() int {
	return slices.IndexFunc(f.counts, func(n int) bool { return n > 0 })
}

// halve leaves about half of the pods in; it is false if nothing would be left to give up.
func (f *filling) halve() bool {
	total, kept, first := 0, 0, f.first()
	for _, n := range f.counts {
		total += n
	}
	if total <= 1 {
		return false
	}
	for i, n := range f.counts {
		f.counts[i] = n / 2
		kept += n / 2
	}
	if kept == 0 {
		f.counts[first] = 1
	}
	return true
}

// seats are what the claim will remember of its content.
func (f *filling) seats(groups []*group) []cluster.Seat {
	var out []cluster.Seat
	for i, n := range f.counts {
		if n > 0 {
			out = append(out, cluster.Seat{Class: groups[i].class.Key, Count: n})
		}
	}
	return out
}
