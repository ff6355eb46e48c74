package offer

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// share lets the types of a list have what is the same in those of another, which are sold to another class: most of it
// is, and some classes differ in nothing. What a list holds is handed out and never changes.
func share(list, other []*cloudprovider.InstanceType) {
	byName := make(map[string]*cloudprovider.InstanceType, len(other))
	for _, t := range other {
		byName[t.Name] = t
	}
	for i, t := range list {
		if like := byName[t.Name]; like != nil && like != t {
			list[i] = shared(t, like)
		}
	}
}

// shared is the type with what is the same in the other, or the other if all of it is.
func shared(t, like *cloudprovider.InstanceType) *cloudprovider.InstanceType {
	out, same := *t, true
	take := func(equal bool, use func()) {
		if equal {
			use()
		} else {
			same = false
		}
	}
	take(maps.EqualFunc(t.Labels, like.Labels, slices.Equal), func() { out.Labels = like.Labels })
	take(sameAmounts(t.Capacity, like.Capacity), func() { out.Capacity = like.Capacity })
	take(sameAmounts(t.Overhead, like.Overhead), func() { out.Overhead = like.Overhead })
	take(maps.Equal(t.VolumeLimits, like.VolumeLimits), func() { out.VolumeLimits = like.VolumeLimits })
	take(slices.EqualFunc(t.Offerings, like.Offerings, sameOffering), func() { out.Offerings = like.Offerings })
	if same {
		return like
	}
	return &out
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, apiresource.Quantity.Equal)
}

func sameOffering(a, b cloudprovider.Offering) bool {
	return a.Price == b.Price && a.PriceEstimated == b.PriceEstimated && a.Available == b.Available &&
		a.ReservationID == b.ReservationID &&
		a.ReservationCapacity == b.ReservationCapacity && maps.Equal(a.Labels, b.Labels)
}

// mostCompared is with how many other classes a new list is compared.
const mostCompared = 2

// similar are some lists of other classes. The lock is held.
func (c *Catalog) similar(class string) []*ClassCatalog {
	var out []*ClassCatalog
	for _, name := range slices.Sorted(maps.Keys(c.byClass)) {
		if name != class && len(out) < mostCompared {
			out = append(out, c.byClass[name])
		}
	}
	return out
}

// labels are those of an offering at a place, with the class: all types of a class have it, and so those of different
// classes can share theirs. Each is kept once: there are a handful, and thousands of offerings have them.
func (t *purchaseTerms) labels(zone, id, capacityType string) map[string]string {
	key := [3]string{zone, id, capacityType}
	if t.sharedLabels == nil {
		t.sharedLabels = make(map[[3]string]map[string]string)
	}
	if t.sharedLabels[key] == nil {
		t.sharedLabels[key] = placeLabels(zone, id, capacityType)
		t.sharedLabels[key][awsv1.NodeClassLabelKey] = t.class
	}
	return t.sharedLabels[key]
}
