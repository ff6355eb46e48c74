package schedule

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// DescribeEstimated says how many of the instance types that the pool may have lack a price that somebody has told;
// nothing if all have one.
func DescribeEstimated(p *cluster.Pool) []string {
	left := p.Catalog.Estimated()
	if !left.Any() {
		return nil
	}
	index := p.Catalog.Index()
	for _, e := range poolRequirements(p) {
		if index.Knows(e.Key) {
			left = left.And(index.Match(e.Key, e.Values))
		}
	}
	count, last := 0, -1
	for i := range left.All {
		if t := p.Catalog.Offerings[i].Type; t != last {
			count, last = count+1, t
		}
	}
	switch count {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("the price of %s is estimated from those of other instance types",
			p.Catalog.Types[last].Name)}
	}
	return []string{
		fmt.Sprintf("the prices of %d of its instance types, such as %s, are estimated from those of others", count,
			p.Catalog.Types[last].Name),
	}
}

// poolRequirements are the requirements and labels of a pool together.
func poolRequirements(p *cluster.Pool) require.Set {
	wants := p.Template.Requirements
	for _, label := range p.Template.Labels {
		wants = wants.With(label.Key, require.Only(label.Value))
	}
	return wants
}
