package schedule

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// smallAndBigMarket sells what smallAndBig does.
func smallAndBigMarket() *market {
	pool := &cluster.Pool{Name: "default", Catalog: smallAndBig()}
	return newMarket((&cluster.Snapshot{Names: &resource.Names{}}).Seal(), pool)
}

// missOf says why the market has nothing for a pod with the terms.
func missOf(m *market, requests resource.Vector, terms ...require.Set) PoolMiss {
	return m.miss(nil, &kind{class: &cluster.PodClass{Terms: terms, Requests: requests}})
}

// What a pool has of a label is looked up where it is said, and once for all classes.
func TestChoicesAreSharedAndOnlyWhereTheyAreSaid(t *testing.T) {
	m := smallAndBigMarket()
	size := func(value string) require.Set { return require.Set{}.With("size", require.Only(value)) }
	large := missOf(m, resource.Vector{resource.CPU: 64_000}, size("big"))
	if large.ByRequirement != 1 || large.Key != "size" || large.Wanted != "" || large.Has != nil {
		t.Errorf("a pod that is too large for the size it asks for: %+v", large)
	}
	huge, tiny := missOf(m, resource.Vector{}, size("huge")), missOf(m, resource.Vector{}, size("tiny"))
	if want := []string{"big", "small"}; !slices.Equal(huge.Has, want) || !slices.Equal(tiny.Has, want) {
		t.Fatalf("the pool has %v, found %v and %v", want, huge.Has, tiny.Has)
	}
	if &huge.Has[0] != &tiny.Has[0] {
		t.Error("each class has a list of its own of what the pool has")
	}
}

// The label that was meant is looked for only if there is nothing better to say, and once for all classes.
func TestMeantIsLookedForOnce(t *testing.T) {
	m := smallAndBigMarket()
	m.fixed = m.fixed.With("team", "blue")
	ask := func(key string) PoolMiss {
		return missOf(m, resource.Vector{}, require.Set{}.With(key, require.Only("red")))
	}
	if miss := ask("team"); !slices.Equal(miss.Has, []string{"blue"}) || m.hints.keys != nil {
		t.Errorf("what the pool has of the label is said: %+v; labels looked at: %v", miss, m.hints.keys)
	}
	if miss := ask("sizes"); miss.Meant != "size" {
		t.Errorf("expected that size was meant: %+v", miss)
	}
	if again := testing.AllocsPerRun(10, func() { m.meant("sizes") }); again != 0 {
		t.Errorf("the same label takes %v allocations again", again)
	}
}
