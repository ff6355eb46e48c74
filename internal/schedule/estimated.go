package schedule

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
)

// EstimatedPrices says how many of the instance types that the pool may have lack a price that somebody has told;
// nothing if all have one.
func EstimatedPrices(p *cluster.Pool) reason.Text {
	left := p.Catalog.Estimated()
	if !left.Any() {
		return reason.Text{}
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
		return reason.Text{}
	case 1:
		return reason.Of(reason.PriceEstimated, p.Catalog.Types[last].Name)
	}
	return reason.Of(reason.PricesEstimated, count, p.Catalog.Types[last].Name)
}

// poolRequirements are the requirements and labels of a pool together.
func poolRequirements(p *cluster.Pool) require.Set {
	wants := p.Template.Requirements
	for _, label := range p.Template.Labels {
		wants = wants.With(label.Key, require.Only(label.Value))
	}
	return wants
}
