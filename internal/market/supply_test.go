package market

import (
	"math/rand/v2"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// The twin takes nodes one after the other until a limit is reached.
func TestHeadroomAgainstCounting(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		limits := cluster.Limits{HasNodes: r.IntN(2) == 0, Nodes: int64(r.IntN(6))}
		for _, dim := range []int{resource.CPU, resource.Memory} {
			limits.Set[dim], limits.Amount[dim] = r.IntN(2) == 0, int64(r.IntN(20))
		}
		pool := &cluster.Pool{Name: "pool", Limits: limits}
		s := (&cluster.Snapshot{Names: &resource.Names{}, Pools: []*cluster.Pool{pool}}).Seal()
		capacity := resource.Vector{resource.CPU: int64(1 + r.IntN(5)), resource.Memory: int64(r.IntN(5))}
		l, want := HeadroomOf(s, pool), 0
		for want < 10 && (!limits.HasNodes || int64(want) < limits.Nodes) &&
			(!limits.Set[resource.CPU] || int64(want+1)*capacity[resource.CPU] <= limits.Amount[resource.CPU]) &&
			(!limits.Set[resource.Memory] || capacity[resource.Memory] == 0 ||
				int64(want+1)*capacity[resource.Memory] <= limits.Amount[resource.Memory]) {
			want++
		}
		if got, _ := l.Allows(capacity, 10); got != want {
			t.Fatalf("seed %d: %+v allow %d nodes of %v, want %d", seed, limits, got, capacity, want)
		}
		for n := range want {
			if !l.Fits(capacity) || !l.Take(capacity) {
				t.Fatalf("seed %d: node %d of %d does not fit", seed, n+1, want)
			}
		}
		if want < 10 && (l.Fits(capacity) || l.Take(capacity)) {
			t.Fatalf("seed %d: one more than %d nodes fits into %+v", seed, want, limits)
		}
	}
}

// What was bought is taken back, and what can be bought is what it was.
func TestSupplyIsRestored(t *testing.T) {
	catalog := cluster.NewCatalog([]cluster.Type{{Name: "small",
		Capacity:    resource.Vector{resource.CPU: 1000, resource.Pods: 10},
		Allocatable: resource.Vector{resource.CPU: 1000, resource.Pods: 10}}},
		[]cluster.Offering{{Zone: "a", CapacityType: "on-demand", Price: 1, Available: true}})
	pool := &cluster.Pool{Name: "pool", NodeClass: cluster.NodeClassState{Ready: true}, Catalog: catalog,
		Limits: cluster.Limits{HasNodes: true, Nodes: 1}}
	mk := New((&cluster.Snapshot{Names: &resource.Names{}, Pools: []*cluster.Pool{pool}}).Seal(), false)
	class := &cluster.PodClass{Key: "pod", Terms: []require.Set{nil}, Requests: resource.Vector{resource.CPU: 500}}
	fits := func() bool { return mk.FeasibleSet([]*cluster.PodClass{class}, nil).Fits(&class.Requests) }
	before := mk.SaveSupply()
	if !fits() {
		t.Fatal("nothing is for sale")
	}
	mk.Pools[0].Headroom.Charge(mk.Pools[0].Spec.Catalog.Types[0].Capacity, 1)
	if mk.Refresh(); fits() {
		t.Error("the pool sells more nodes than its limit allows")
	}
	if before.Restore(mk); !fits() {
		t.Error("what was taken back is not for sale")
	}
}
