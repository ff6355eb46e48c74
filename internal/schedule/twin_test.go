package schedule_test

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What the packing may cost above the optimum on the seeds below, as measured and rounded up. If a change makes it
// worse the test fails; if it makes it better, lower the bounds.
const (
	worstGap   = 0.56
	averageGap = 0.008
)

// The twin tries every way to put up to six pods on nodes of up to four types. Our price is never below its price,
// since that would mean a node beyond its size, and not far above.
func TestPriceAgainstExhaustiveTwin(t *testing.T) {
	sum, worst, worstSeed, optimal, counted := 0.0, 0.0, int64(0), 0, 0
	for seed := range int64(600) {
		s := smallMarket(rand.New(rand.NewSource(seed)))
		got := schedule.Place(s.SchedulerView(), schedule.Settings{})
		var placed []*cluster.Pod
		for i := range got.Bins {
			placed = append(placed, got.Bins[i].Pods...)
		}
		for _, u := range got.Unplaced {
			if price := cheapestFor(s, []*cluster.Pod{u.Pod}); !math.IsInf(price, 1) {
				t.Fatalf("seed %d: %s is refused, the twin places it for %.2f", seed, u.Pod.Name, price)
			}
		}
		if len(placed) == 0 {
			continue
		}
		best := cheapestPartition(s, placed, nil)
		gap := got.Price/best - 1
		if gap < -1e-9 {
			t.Fatalf("seed %d: we pay %.2f, the optimum is %.2f", seed, got.Price, best)
		}
		counted++
		sum += gap
		if gap < 1e-9 {
			optimal++
		}
		if gap > worst {
			worst, worstSeed = gap, seed
		}
	}
	average := sum / float64(counted)
	t.Logf("%d markets: %d optimal, on average %.2f%% above the optimum, at worst %.1f%% (seed %d)", counted, optimal,
		100*average, 100*worst, worstSeed)
	if counted < 500 {
		t.Errorf("only %d markets had something to place", counted)
	}
	if worst > worstGap || average > averageGap {
		t.Errorf("worse than it was: worst %.3f (bound %.3f), average %.4f (bound %.4f)", worst, worstGap, average,
			averageGap)
	}
}

// smallMarket has up to four types of any price, and up to six pods, some of which insist on an architecture.
func smallMarket(r *rand.Rand) *cluster.Snapshot {
	var types []cluster.Type
	var offerings []cluster.Offering
	for i := range 1 + r.Intn(4) {
		kind := cluster.Type{Name: fmt.Sprint("type", i)}
		kind.Capacity[resource.CPU] = int64(1+r.Intn(8)) * 1000
		kind.Capacity[resource.Memory] = int64(1+r.Intn(8)) << 30
		kind.Capacity[resource.Pods] = int64(1 + r.Intn(8))
		kind.Allocatable = kind.Capacity
		types = append(types, kind)
		size := float64(kind.Capacity[resource.CPU])/1000 + float64(kind.Capacity[resource.Memory]>>30)/4
		offerings = append(offerings, cluster.Offering{
			Type: i, Zone: "a", CapacityType: "spot", Available: true,
			Price: math.Round(size*(0.5+r.Float64())*100) / 100,
			Labels: cluster.LabelsOf(map[string]string{cluster.InstanceTypeLabel: kind.Name, cluster.ZoneLabel: "a",
				cluster.CapacityTypeLabel: "spot", "arch": []string{"amd64", "arm64"}[r.Intn(2)]}),
		})
	}
	classes := make([]*cluster.PodClass, 1+r.Intn(4))
	for i := range classes {
		c := &cluster.PodClass{Key: fmt.Sprint("class", i), Terms: []require.Set{nil}}
		c.Requests[resource.CPU], c.Requests[resource.Memory] = int64(1+r.Intn(8))*500, int64(1+r.Intn(8))<<29
		c.Requests[resource.Pods] = 1
		if r.Intn(4) == 0 {
			c.Terms = []require.Set{require.Set{}.With("arch", require.Only("amd64"))}
		}
		classes[i] = c
	}
	s := &cluster.Snapshot{Names: &resource.Names{}, Pools: []*cluster.Pool{{
		Name: "pool", NodeClass: cluster.NodeClassState{Ready: true}, Catalog: cluster.NewCatalog(types, offerings)}}}
	for i := range 1 + r.Intn(6) {
		name := fmt.Sprint("pod", i)
		s.Pods = append(s.Pods, &cluster.Pod{UID: name, Name: name, Class: classes[r.Intn(len(classes))],
			Unschedulable: true})
	}
	return s.Seal()
}

// cheapestPartition gives each pod in turn to one of the nodes so far or to a new one.
func cheapestPartition(s *cluster.Snapshot, pods []*cluster.Pod, nodes [][]*cluster.Pod) float64 {
	if len(pods) == 0 {
		sum := 0.0
		for _, node := range nodes {
			sum += cheapestFor(s, node)
		}
		return sum
	}
	best := cheapestPartition(s, pods[1:], append(nodes, []*cluster.Pod{pods[0]}))
	for i := range nodes {
		old := nodes[i]
		nodes[i] = append(old[:len(old):len(old)], pods[0])
		best = min(best, cheapestPartition(s, pods[1:], nodes))
		nodes[i] = old
	}
	return best
}

// cheapestFor is the price of the cheapest offering that holds all the pods.
func cheapestFor(s *cluster.Snapshot, pods []*cluster.Pod) float64 {
	best, catalog := math.Inf(1), s.Pools[0].Catalog
	for i := range catalog.Offerings {
		o := &catalog.Offerings[i]
		var load resource.Vector
		suits := true
		for _, p := range pods {
			load = load.Add(p.Class.Requests)
			suits = suits && cluster.MayRunOn(p.Class, o.Labels, nil)
		}
		if suits && load.Fits(catalog.Types[o.Type].Allocatable) {
			best = min(best, o.Price)
		}
	}
	return best
}
