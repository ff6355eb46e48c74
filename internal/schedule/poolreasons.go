package schedule

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// NoTypesReason is why the pool's own requirements leave no instance type to buy, with the requirement that leaves the
// fewest by itself; it is empty if some are left.
func NoTypesReason(p *cluster.Pool) reason.Text {
	index := p.Catalog.Index()
	wants := poolRequirements(p)
	left, worst, fewest := require.AllBits(index.Len()), require.Entry{}, -1
	for _, e := range wants {
		if !index.Knows(e.Key) {
			continue
		}
		match := index.Match(e.Key, e.Values)
		left = left.And(match)
		if n := match.Count(); fewest < 0 || n < fewest {
			worst, fewest = e, n
		}
	}
	for _, e := range wants {
		if left.Any() && e.MinValues > 0 && index.Knows(e.Key) && index.Spread(e.Key, left) < e.MinValues {
			return reason.Of(reason.MinValuesUnmet, e.MinValues, e.Key,
				index.Spread(e.Key, left))
		}
	}
	switch {
	case left.Any():
		return reason.Text{}
	case fewest == 0 && worst.Values.IsEmpty():
		return reason.Of(reason.LabelContradiction, worst.Key)
	case fewest == 0:
		return reason.Of(reason.NoTypeHas, worst.Key, worst.Values.String())
	case fewest < 0:
		return reason.Of(reason.NothingSold)
	}
	if a, b, ok := excludingPair(index, wants); ok {
		return reason.Of(reason.NoTypeHasBoth, a.Key, a.Values.String(), b.Key, b.Values.String())
	}
	return reason.Of(reason.FewestLeft, worst.Key, worst.Values.String())
}

// LimitsReason is which limit keeps the pool from making any node, also if it has none yet; it is empty if the limits
// leave an instance type. A limit of 0 is how people switch a pool off.
func LimitsReason(p *cluster.Pool, names *resource.Names) reason.Text {
	switch {
	case p.Limits.Broken != "":
		return reason.Of(reason.LimitUncounted, p.Limits.Broken)
	case p.Limits.HasNodes && p.Limits.Nodes <= 0:
		return reason.Of(reason.LimitOnNodes, p.Limits.Nodes)
	}
	for dim, set := range p.Limits.Set {
		needed := dim == resource.CPU || dim == resource.Memory || dim == resource.Pods
		if set && needed && p.Limits.Amount[dim] <= 0 {
			return reason.Of(reason.LimitForbids, names.Name(dim), resource.Format(dim, p.Limits.Amount[dim]))
		}
	}
	if p.Catalog == nil || !p.Limits.Any() {
		return reason.Text{}
	}
	least, some := leastUnder(p)
	if !some {
		return reason.Text{}
	}
	for dim, set := range p.Limits.Set {
		if set && least[dim] > p.Limits.Amount[dim] {
			return reason.Of(reason.LimitBelowSmallest, names.Name(dim),
				resource.Format(dim, p.Limits.Amount[dim]), resource.Format(dim, least[dim]))
		}
	}
	return reason.Of(reason.LimitsTogether)
}

// leastUnder is the least of each resource that the pool's instance types have. over is true if there are some, and
// each exceeds a limit.
func leastUnder(p *cluster.Pool) (least resource.Vector, over bool) {
	index, rows := p.Catalog.Index(), require.AllBits(p.Catalog.Index().Len())
	for _, e := range poolRequirements(p) {
		if index.Knows(e.Key) {
			rows = rows.And(index.Match(e.Key, e.Values))
		}
	}
	empty, last := market.Headroom{Limits: &p.Limits}, -1
	for i := range rows.All {
		t := p.Catalog.Offerings[i].Type
		if t == last {
			continue
		}
		capacity := p.Catalog.Types[t].Capacity
		if n, _ := empty.Allows(capacity, 1); n > 0 {
			return resource.Vector{}, false
		}
		if last < 0 {
			least = capacity
		}
		least, last, over = least.Min(capacity), t, true
	}
	return least, over
}

// excludingPair finds the first two requirements that no offering meets both of.
func excludingPair(index *require.Index, wants require.Set) (a, b require.Entry, ok bool) {
	for i, a := range wants {
		for _, b := range wants[i+1:] {
			if index.Knows(a.Key) && index.Knows(b.Key) && !index.Match(a.Key, a.Values).And(index.Match(b.Key,
				b.Values)).Any() {
				return a, b, true
			}
		}
	}
	return a, b, false
}
