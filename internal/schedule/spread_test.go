package schedule_test

import (
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Spreads over two keys at once leave nobody behind, and the counts hold in both.
func TestSpreadOverTwoKeys(t *testing.T) {
	selector := []cluster.Selector{{Namespaces: []string{"default"}, Labels: require.Set{}.With("app",
		require.Only("web"))}}
	for _, other := range []string{cluster.CapacityTypeLabel, "family"} {
		for _, n := range []int{7, 100, 1000} {
			class := &cluster.PodClass{Key: "web", Terms: []require.Set{nil},
				Requests: resource.Vector{resource.CPU: 500, resource.Memory: 1 << 30, resource.Pods: 1}}
			for _, key := range []string{other, cluster.ZoneLabel} {
				class.Rules = append(class.Rules, &cluster.Rule{Key: "spread " + key, Kind: cluster.Spread,
					TopologyKey: key, MaxSkew: 1, Selectors: selector})
			}
			s := &cluster.Snapshot{Names: &resource.Names{}, Pools: []*cluster.Pool{{
				Name: "pool", NodeClass: cluster.NodeClassState{Ready: true}, Catalog: largeCatalog()}}}
			labels := cluster.LabelsOf(map[string]string{"app": "web"})
			for i := range n {
				name := fmt.Sprintf("pod-%04d", i)
				s.Pods = append(s.Pods, &cluster.Pod{UID: name, Name: name, Namespace: "default", Class: class,
					Labels: labels, Unschedulable: true})
			}
			got := schedule.Place(s.Seal().SchedulerView(), schedule.Settings{})
			if len(got.Unplaced) > 0 {
				t.Errorf("%d pods over %s and zone: %d are left, the first: %+v", n, other, len(got.Unplaced),
					got.Unplaced[0].Pools)
			}
			for _, key := range []string{other, cluster.ZoneLabel} {
				counts := make(map[string]int)
				for i := range got.Bins {
					asked, _ := got.Bins[i].Requirements.Get(key)
					values, _ := asked.Listed()
					if len(values) != 1 {
						t.Fatalf("a node's %s is left open: %v", key, values)
					}
					counts[values[0]] += len(got.Bins[i].Pods)
				}
				most, least := 0, n
				for _, count := range counts {
					most, least = max(most, count), min(least, count)
				}
				if most-least > 1 {
					t.Errorf("%d pods over %s: %v", n, key, counts)
				}
			}
		}
	}
}
