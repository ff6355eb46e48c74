package offerings

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// number numbers a provider's list, or the list with what was learned of it. Offerings and their index are made
// once for a stock; only how much of everything the types have is worked out anew.
func (m *Market) number(list *typeList, in []*cloudprovider.InstanceType) *cluster.Catalog {
	types := make([]cluster.Type, len(in))
	for i, t := range in {
		capacity, allocatable := m.measure(t)
		types[i] = cluster.Type{Name: t.Name, Capacity: capacity, Allocatable: allocatable}
	}
	if list.catalog == nil {
		alike := m.similar(list)
		list.catalog = cluster.NewCatalog(types, offeringsOf(in, alike[:min(len(alike), mostCompared)]), alike...)
		list.lastCatalog = nil
		return list.catalog
	}
	return list.catalog.WithAmounts(types)
}

// latest is the catalog that was made of the stock, or of the one before it if there is none yet.
func (l *typeList) latest() *cluster.Catalog {
	if l == nil {
		return nil
	}
	if l.catalog != nil {
		return l.catalog
	}
	return l.lastCatalog
}

// similar are the catalogs that a stock's may have much in common with, first the one that it takes the place
// of.
func (m *Market) similar(list *typeList) []*cluster.Catalog {
	var out []*cluster.Catalog
	if list.lastCatalog != nil {
		out = append(out, list.lastCatalog)
	}
	for _, c := range m.inOrder() {
		if c.list != nil && c.list.catalog != nil && !slices.Contains(out, c.list.catalog) {
			out = append(out, c.list.catalog)
		}
	}
	return out
}

// mostCompared is with how many catalogs the labels of a new one are compared.
const mostCompared = 3

// offeringsOf lists every node that can be bought. There are many, with many labels, and few that differ: offerings
// share lists of labels with one another and with catalogs that are alike: the one before, or those of other classes.
func offeringsOf(in []*cloudprovider.InstanceType, alike []*cluster.Catalog) []cluster.Offering {
	var offerings []cluster.Offering
	own := make(offeringLabels)
	for i, t := range in {
		open, common := splitLabels(t)
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
					Price: o.Price, Estimated: o.PriceEstimated, Available: o.Available, Reservation: o.ReservationID,
					ReservationLeft: max(0, o.ReservationCapacity),
				})
			}
		}
	}
	return offerings
}

// splitLabels tells the labels that all offerings of a type have in common from those that it leaves open or some
// offering sets.
func splitLabels(t *cloudprovider.InstanceType) (open map[string][]string, common cluster.Labels) {
	open = make(map[string][]string)
	shared := map[string]string{cluster.InstanceTypeLabel: t.Name}
	for key, values := range t.Labels {
		set := slices.ContainsFunc(t.Offerings, func(o cloudprovider.Offering) bool {
			_, has := o.Labels[key]
			return has
		})
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

// offeringLabels keeps lists of offerings' own labels, each once, by what is in them.
type offeringLabels map[string]cluster.Labels

// of are the labels of an offering of the variant. The type's name is common to all.
func (have offeringLabels) of(variant cluster.Labels, offering map[string]string) cluster.Labels {
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
