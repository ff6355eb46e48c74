package schedule

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// smallAndBig sells a type with 2 CPUs and 8 GiB, and one with 4 CPUs and 4 GiB.
func smallAndBig() *cluster.Catalog {
	var types []cluster.Type
	var offerings []cluster.Offering
	for i, size := range []string{"small", "big"} {
		cpu := int64(2000 * (i + 1))
		types = append(types, cluster.Type{Name: size, Capacity: resource.Vector{
			resource.CPU: cpu, resource.Memory: (8 << 30) / int64(i+1), resource.Pods: 110,
		}})
		labels := cluster.LabelsOf(map[string]string{"size": size})
		offerings = append(offerings, cluster.Offering{Type: i, Available: true, Labels: labels})
	}
	return cluster.NewCatalog(types, offerings)
}

// smallAndBigMarket sells what smallAndBig does.
func smallAndBigMarket() *poolExplainer {
	pool := &cluster.Pool{Name: "default", Catalog: smallAndBig()}
	return &poolExplainer{Pool: market.NewPool((&cluster.Snapshot{Names: &resource.Names{}}).Seal(), pool)}
}

// missOf says why the market has nothing for a pod with the terms.
func missOf(pm *poolExplainer, requests resource.Vector, terms ...require.Set) PoolMiss {
	return pm.explainMiss(&topology.PodSet{Class: &cluster.PodClass{Terms: terms, Requests: requests}})
}

// What a pool has of a label is looked up where it is said, and once for all classes.
func TestChoicesAreSharedAndOnlyWhereTheyAreSaid(t *testing.T) {
	pm := smallAndBigMarket()
	size := func(value string) require.Set { return require.Set{}.With("size", require.Only(value)) }
	large := missOf(pm, resource.Vector{resource.CPU: 64_000}, size("big"))
	if large.ByRequirement != 1 || large.Key != "size" || !large.Wanted.IsEmpty() || large.Has != nil {
		t.Errorf("a pod that is too large for the size it asks for: %+v", large)
	}
	huge, tiny := missOf(pm, resource.Vector{}, size("huge")), missOf(pm, resource.Vector{}, size("tiny"))
	if want := []string{"big", "small"}; !slices.Equal(huge.Has, want) || !slices.Equal(tiny.Has, want) {
		t.Fatalf("the pool has %v, found %v and %v", want, huge.Has, tiny.Has)
	}
	if &huge.Has[0] != &tiny.Has[0] {
		t.Error("each class has a list of its own of what the pool has")
	}
}

// The label that was meant is looked for only if there is nothing better to say, and once for all classes.
func TestMeantIsLookedForOnce(t *testing.T) {
	pm := smallAndBigMarket()
	pm.FixedLabels = pm.FixedLabels.With("team", "blue")
	ask := func(key string) PoolMiss {
		return missOf(pm, resource.Vector{}, require.Set{}.With(key, require.Only("red")))
	}
	if miss := ask("team"); !slices.Equal(miss.Has, []string{"blue"}) || pm.hints.keys != nil {
		t.Errorf("what the pool has of the label is said: %+v; labels looked at: %v", miss, pm.hints.keys)
	}
	if miss := ask("sizes"); miss.Similar != "size" {
		t.Errorf("expected that size was meant: %+v", miss)
	}
	if again := testing.AllocsPerRun(10, func() { pm.similarLabel("sizes") }); again != 0 {
		t.Errorf("the same label takes %v allocations again", again)
	}
}
