package schedule

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// NoTypesReason says why the pool's own requirements leave no instance type to buy, naming the requirement that leaves
// the fewest by itself; it is empty if some are left.
func NoTypesReason(p *cluster.Pool) string {
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
			return fmt.Sprintf("minValues %d of %s can't be met: the requirements leave %d values", e.MinValues, e.Key,
				index.Spread(e.Key, left))
		}
	}
	switch {
	case left.Any():
		return ""
	case fewest == 0 && worst.Values.IsEmpty():
		return fmt.Sprintf("what the requirements and labels ask of %s contradicts itself: no value is left", worst.Key)
	case fewest == 0:
		return fmt.Sprintf("no instance type has %s %s", worst.Key, worst.Values)
	case fewest < 0:
		return "the cloud sells no instance type"
	}
	if a, b, ok := excludingPair(index, wants); ok {
		return fmt.Sprintf("no instance type has both %s %s and %s %s", a.Key, a.Values, b.Key, b.Values)
	}
	return fmt.Sprintf("the requirements together leave no instance type; %s %s leaves the fewest by itself", worst.Key,
		worst.Values)
}

// LimitsReason says which limit keeps the pool from making any node, also if it has none yet; it is empty if the limits
// leave an instance type. A limit of 0 is how people switch a pool off.
func LimitsReason(p *cluster.Pool, names *resource.Names) string {
	const fix = "; raise the limit or remove it to let the pool make nodes"
	switch {
	case p.Limits.Broken != "":
		return fmt.Sprintf("spec.limits.%s can't be counted, because too many kinds of resources are in use; "+
			"remove it to let the pool make nodes", p.Limits.Broken)
	case p.Limits.HasNodes && p.Limits.Nodes <= 0:
		return fmt.Sprintf("spec.limits.nodes is %d%s", p.Limits.Nodes, fix)
	}
	for dim, set := range p.Limits.Set {
		needed := dim == resource.CPU || dim == resource.Memory || dim == resource.Pods
		if set && needed && p.Limits.Amount[dim] <= 0 {
			return fmt.Sprintf("spec.limits.%s is %s, and every node has some%s",
				names.Name(dim), resource.Format(dim, p.Limits.Amount[dim]), fix)
		}
	}
	if p.Catalog == nil || !p.Limits.Any() {
		return ""
	}
	least, some := leastUnder(p)
	if !some {
		return ""
	}
	for dim, set := range p.Limits.Set {
		if set && least[dim] > p.Limits.Amount[dim] {
			return fmt.Sprintf("spec.limits.%s is %s, and each instance type that the requirements leave has %s or "+
				"more%s",
				names.Name(dim), resource.Format(dim, p.Limits.Amount[dim]), resource.Format(dim, least[dim]), fix)
		}
	}
	return "spec.limits together leave no instance type: each has more of something than its limit; " +
		"raise or remove one of them"
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
	empty, last := limitsLeft{limits: &p.Limits}, -1
	for i := range rows.All {
		t := p.Catalog.Offerings[i].Type
		if t == last {
			continue
		}
		capacity := p.Catalog.Types[t].Capacity
		if n, _ := empty.allows(capacity, 1); n > 0 {
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
