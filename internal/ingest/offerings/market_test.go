package offerings

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

func startTime() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

// cpusOf measures nothing but CPUs.
func cpusOf(t *cloudprovider.InstanceType) (capacity, allocatable resource.Vector) {
	promised := t.Allocatable()
	capacity[resource.CPU], allocatable[resource.CPU] = t.Capacity.Cpu().MilliValue(), promised.Cpu().MilliValue()
	return capacity, allocatable
}

func oneType(name string) []*cloudprovider.InstanceType {
	return []*cloudprovider.InstanceType{{Name: name, Capacity: corev1.ResourceList{"cpu": apiresource.MustParse("4")},
		Offerings: []cloudprovider.Offering{{Price: 1, Available: true, Labels: map[string]string{
			cluster.ZoneLabel: "z", cluster.CapacityTypeLabel: "spot"}}}}}
}

func sold(t *testing.T, m *Market, pool string, class cluster.ClassRef) *cluster.Catalog {
	t.Helper()
	c, problem := m.Now(pool, class, startTime(), func(func(*cluster.Claim) bool) {},
		func(func(command.CreateClaim) bool) {})
	if problem != "" {
		t.Fatal(problem)
	}
	return c
}

func TestOldCatalogsAreForgotten(t *testing.T) {
	m := NewMarket(cpusOf)
	m.Request("p", 0)
	m.Request("q", 0)
	for _, name := range []string{"one", "two", "three"} {
		types := oneType(name)
		m.Set("p", 0, types, nil, startTime())
		m.Set("q", 0, types, nil, startTime())
		sold(t, &m, "p", cluster.ClassRef{})
		sold(t, &m, "q", cluster.ClassRef{Name: "another"})
	}
	kept := make(map[*cluster.Catalog]bool)
	for _, c := range m.numbered {
		kept[c] = true
	}
	if len(kept) != 1 {
		t.Errorf("%d catalogs are kept for one list", len(kept))
	}
	m.Drop("p")
	m.Drop("q")
	m.Due(startTime(), func(string) bool { return true })
	if len(m.numbered) != 0 {
		t.Error("the catalog of deleted pools is kept")
	}
}

// A pool's catalog is fetched when it is asked for, again after a while, and sooner after an error.
func TestWhenCatalogsAreDue(t *testing.T) {
	m := NewMarket(cpusOf)
	ready := func(string) bool { return true }
	due := func(after time.Duration) bool {
		names, _ := m.Due(startTime().Add(after), ready)
		return slices.Equal(names, []string{"p"})
	}
	if !m.Request("p", 1) || m.Request("p", 1) || !due(0) || due(0) {
		t.Error("a generation is asked for once, and fetched by one at a time")
	}
	if got := m.Set("p", 1, oneType("m"), nil, startTime()); got != (Answer{News: true, NewTypes: true}) {
		t.Errorf("the first answer: %+v", got)
	}
	if m.Done("p"); due(catalogRefresh-1) || !due(catalogRefresh) {
		t.Error("the list is not refreshed in time")
	}
	if got := m.Set("p", 1, nil, errors.New("boom"), startTime()); got != (Answer{News: true}) {
		t.Errorf("an error: %+v", got)
	}
	if m.Done("p"); due(CatalogRetry-1) || !due(CatalogRetry) {
		t.Error("an error is not followed by another try in time")
	}
	m.Request("p", 2)
	if got := m.Set("p", 1, oneType("m"), nil, startTime()); !got.Again {
		t.Error("the pool has changed meanwhile")
	}
}

// What a real node has counts for its NodeClass and for no other, until the class changes.
func TestRealNodesTeach(t *testing.T) {
	m := NewMarket(cpusOf)
	m.Request("p", 0)
	m.Set("p", 0, oneType("m"), nil, startTime())
	class, other := cluster.ClassRef{Name: "c"}, cluster.ClassRef{Name: "d"}
	cpus := func(of cluster.ClassRef) int64 { return sold(t, &m, "p", of).Types[0].Allocatable[resource.CPU] }
	if cpus(class) != 4000 {
		t.Fatalf("%d are promised", cpus(class))
	}
	seen := NodeSeen{Class: class, Type: "m", Created: startTime(), Most: corev1.ResourceList{
		"cpu": apiresource.MustParse("3")}}
	if !m.Observe(seen) || m.Observe(seen) || cpus(class) != 3000 || cpus(other) != 4000 {
		t.Errorf("after a node with 3: %d, another class has %d", cpus(class), cpus(other))
	}
	seen.Most = corev1.ResourceList{"cpu": apiresource.MustParse("3500m")}
	if changed, known := m.Reobserve(class, "m", slices.Values([]NodeSeen{seen})); !known || cpus(class) != 3500 {
		t.Errorf("the node has grown: %d, changed %t", cpus(class), changed)
	}
	m.ForgetClass(class, startTime().Add(time.Second))
	if m.Observe(seen) || cpus(class) != 4000 {
		t.Errorf("an old node teaches about a class that has changed: %d", cpus(class))
	}
}

func TestFailedRefreshIsKnownWhileTheOldCatalogIsSold(t *testing.T) {
	m := NewMarket(cpusOf)
	m.Request("p", 0)
	m.Set("p", 0, oneType("m"), nil, startTime())
	m.Set("p", 0, nil, errors.New("no permission"), startTime())
	if sold(t, &m, "p", cluster.ClassRef{}) == nil {
		t.Error("the old catalog was dropped")
	}
	if got := m.pools["p"].errorNow(startTime()); got != "no permission" {
		t.Errorf("the trouble is %q", got)
	}
	m.Set("p", 0, oneType("m"), nil, startTime())
	if got := m.pools["p"].errorNow(startTime()); got != "" {
		t.Errorf("the trouble is over, yet it says %q", got)
	}
}
