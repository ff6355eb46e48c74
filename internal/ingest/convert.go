package ingest

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// convert numbers a provider's list, or the list with what was learned of it. Offerings and their index are made once for a
// stock; only how much of everything the types have is worked out anew. The lock is held.
func (b *Book) convert(stock *measured, in []*cloudprovider.InstanceType) *cluster.Catalog {
	types := make([]cluster.Type, len(in))
	for i, t := range in {
		types[i] = cluster.Type{
			Name: t.Name, Capacity: b.measure(t.Capacity), Allocatable: b.attachable(b.measure(t.Allocatable()), t.VolumeLimits),
		}
	}
	if stock.sold == nil {
		alike := b.alike(stock)
		stock.sold = cluster.NewCatalog(types, offeringsOf(in, alike[:min(len(alike), mostCompared)]), alike...)
		stock.before = nil
		return stock.sold
	}
	return stock.sold.Measured(types)
}

// latest is the catalog that was made of the stock, or of the one before it if there is none yet.
func (m *measured) latest() *cluster.Catalog {
	if m == nil {
		return nil
	}
	if m.sold != nil {
		return m.sold
	}
	return m.before
}

// alike are the catalogs that a stock's may have much in common with, first the one that it takes the place of.
func (b *Book) alike(stock *measured) []*cluster.Catalog {
	var out []*cluster.Catalog
	if stock.before != nil {
		out = append(out, stock.before)
	}
	for _, e := range inOrder(b.shelf) {
		if e.stock != nil && e.stock.sold != nil && !slices.Contains(out, e.stock.sold) {
			out = append(out, e.stock.sold)
		}
	}
	return out
}

// mostCompared is with how many catalogs the labels of a new one are compared.
const mostCompared = 3

// offeringsOf lists every node that can be bought. There are many, with many labels, and few that differ: offerings share
// lists of labels with one another and with catalogs that are alike: the one before, or those of other classes.
func offeringsOf(in []*cloudprovider.InstanceType, alike []*cluster.Catalog) []cluster.Offering {
	var offerings []cluster.Offering
	own := make(ownLabels)
	for i, t := range in {
		open, common := split(t)
		for _, other := range alike {
			if have := other.CommonLabels(t.Name); slices.Equal(have, common) {
				common = have
				break
			}
		}
		for _, variant := range variants(open) {
			for _, o := range t.Offerings {
				offerings = append(offerings, cluster.Offering{
					Type: i, Labels: own.of(variant, o.Labels), Common: common,
					Zone: o.Labels[cluster.ZoneLabel], CapacityType: o.Labels[cluster.CapacityTypeLabel],
					Price: o.Price, Estimated: o.PriceEstimated, Available: o.Available, Reservation: o.ReservationID, Left: max(0, o.ReservationCapacity),
				})
			}
		}
	}
	return offerings
}

// split tells the labels that all offerings of a type have in common from those that it leaves open or some offering sets.
func split(t *cloudprovider.InstanceType) (open map[string][]string, common cluster.Labels) {
	open = make(map[string][]string)
	shared := map[string]string{cluster.InstanceTypeLabel: t.Name}
	for key, values := range t.Labels {
		set := slices.ContainsFunc(t.Offerings, func(o cloudprovider.Offering) bool { _, has := o.Labels[key]; return has })
		switch {
		case key == cluster.InstanceTypeLabel || len(values) == 0:
		case set || len(values) > 1:
			open[key] = values
		default:
			shared[key] = values[0]
		}
	}
	return open, cluster.LabelsOf(shared)
}

// ownLabels keeps lists of offerings' own labels, each once, by what is in them.
type ownLabels map[string]cluster.Labels

// of are the labels of an offering of the variant. The type's name is common to all.
func (have ownLabels) of(variant cluster.Labels, offering map[string]string) cluster.Labels {
	all := variant.Map()
	maps.Copy(all, offering)
	delete(all, cluster.InstanceTypeLabel)
	labels := cluster.LabelsOf(all)
	var text strings.Builder
	for _, l := range labels {
		text.WriteString(l.Key)
		text.WriteByte(0)
		text.WriteString(l.Value)
		text.WriteByte(0)
	}
	if same, known := have[text.String()]; known {
		return same
	}
	have[text.String()] = labels
	return labels
}

// variants decides every label that a type leaves open, in every way.
func variants(labels map[string][]string) []cluster.Labels {
	out := []cluster.Labels{nil}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		var next []cluster.Labels
		for _, value := range labels[key] {
			for _, l := range out {
				next = append(next, l.With(key, value))
			}
		}
		if len(labels[key]) > 0 {
			out = next
		}
	}
	return out
}
