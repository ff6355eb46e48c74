package schedule

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// NothingFor says why the pool's own requirements leave no instance type to buy, naming the requirement that leaves the
// fewest by itself; it is empty if some are left.
func NothingFor(p *cluster.Pool) string {
	index := p.Catalog.Index()
	wants := wantsOf(p)
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
			return fmt.Sprintf("minValues %d of %s can't be met: the requirements leave %d values", e.MinValues, e.Key, index.Spread(e.Key, left))
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
	if a, b, ok := exclusive(index, wants); ok {
		return fmt.Sprintf("no instance type has both %s %s and %s %s", a.Key, a.Values, b.Key, b.Values)
	}
	return fmt.Sprintf("the requirements together leave no instance type; %s %s leaves the fewest by itself", worst.Key, worst.Values)
}

// exclusive finds the first two requirements that no offering meets both of.
func exclusive(index *require.Index, wants require.Set) (a, b require.Entry, ok bool) {
	for i, a := range wants {
		for _, b := range wants[i+1:] {
			if index.Knows(a.Key) && index.Knows(b.Key) && !index.Match(a.Key, a.Values).And(index.Match(b.Key, b.Values)).Any() {
				return a, b, true
			}
		}
	}
	return a, b, false
}
