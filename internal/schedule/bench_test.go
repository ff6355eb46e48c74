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

// The catalog of a large cloud region: 400 types, three zones, spot and on-demand.
func largeCatalog() *cluster.Catalog {
	var types []cluster.Type
	var offerings []cluster.Offering
	r := rand.New(rand.NewSource(1))
	sizes := []int64{1, 2, 4, 8, 16, 32, 48, 64, 96, 192}
	for family := range 40 {
		perCore := int64(2 << (family % 3)) // Gi for each core: 2, 4 or 8
		rate := 0.03 + 0.004*float64(perCore) + 0.02*r.Float64()
		for size, cores := range sizes {
			kind := cluster.Type{Name: fmt.Sprintf("f%02d.s%d", family, size)}
			kind.Capacity[resource.CPU], kind.Capacity[resource.Memory] = cores*1000, cores*perCore<<30
			kind.Capacity[resource.Pods] = min(8+cores*15, 250)
			kind.Allocatable = kind.Capacity
			kind.Allocatable[resource.CPU] -= 80
			kind.Allocatable[resource.Memory] -= kind.Capacity[resource.Memory] / 12
			types = append(types, kind)
			for _, zone := range []string{"a", "b", "c"} {
				for _, terms := range []string{"on-demand", "spot"} {
					price := rate * float64(cores)
					if terms == "spot" {
						price *= 0.3 + 0.2*r.Float64()
					}
					offerings = append(offerings, cluster.Offering{
						Type: len(types) - 1, Zone: zone, CapacityType: terms, Price: price, Available: true,
						Labels: cluster.LabelsOf(map[string]string{
							cluster.InstanceTypeLabel: kind.Name, cluster.ZoneLabel: zone,
							cluster.CapacityTypeLabel: terms,
							"kubernetes.io/arch":      []string{"amd64", "arm64"}[family%2],
							"kubernetes.io/os":        "linux",
							"family":                  fmt.Sprint("f", family)}),
					})
				}
			}
		}
	}
	return cluster.NewCatalog(types, offerings)
}

// manyPods are n pods of 20 classes; the k-th most frequent class has about 1/k as many pods as the first. Some classes
// insist on a zone, on on-demand nodes or on an architecture.
func manyPods(n int) []*cluster.Pod {
	r := rand.New(rand.NewSource(2))
	classes := make([]*cluster.PodClass, 20)
	weights, total := make([]float64, len(classes)), 0.0
	for k := range classes {
		c := &cluster.PodClass{Key: fmt.Sprintf("class%02d", k), Terms: []require.Set{nil}}
		c.Requests[resource.CPU] = int64(100 * math.Ceil(math.Exp(r.NormFloat64()+1.5)))
		c.Requests[resource.Memory] = int64(1+r.Intn(32)) << 28
		c.Requests[resource.Pods] = 1
		switch k % 6 {
		case 1:
			c.Terms[0] = c.Terms[0].With(cluster.ZoneLabel, require.Only([]string{"a", "b", "c"}[r.Intn(3)]))
		case 3:
			c.Terms[0] = c.Terms[0].With(cluster.CapacityTypeLabel, require.Only("on-demand"))
		case 5:
			c.Terms[0] = c.Terms[0].With("kubernetes.io/arch", require.Only("amd64"))
		}
		classes[k], weights[k] = c, 1/float64(k+1)
		total += weights[k]
	}
	pods := make([]*cluster.Pod, n)
	for i := range pods {
		at, k := r.Float64()*total, 0
		for ; k < len(classes)-1 && at > weights[k]; k++ {
			at -= weights[k]
		}
		name := fmt.Sprintf("pod-%06d", i)
		pods[i] = &cluster.Pod{UID: name, Name: name, Class: classes[k], Unschedulable: true}
	}
	return pods
}

// BenchmarkPlace places pods on an empty cluster; nothing is kept from one round to the next but the catalog's index.
func BenchmarkPlace(b *testing.B) {
	catalog := largeCatalog()
	for _, n := range []int{500, 5000, 20000} {
		b.Run(fmt.Sprint(n, "-pods"), func(b *testing.B) {
			s := (&cluster.Snapshot{Names: &resource.Names{}, Pods: manyPods(n), Pools: []*cluster.Pool{{
				Name: "pool", NodeClass: cluster.NodeClassState{Ready: true}, Catalog: catalog}}}).Seal()
			var got schedule.Placement
			b.ReportAllocs()
			for b.Loop() {
				got = schedule.Place(s.SchedulerView(), schedule.Settings{})
			}
			if len(got.Unplaced) > 0 {
				b.Fatalf("%d pods found no place", len(got.Unplaced))
			}
			b.ReportMetric(float64(len(got.Bins)), "nodes")
			b.ReportMetric(got.Price, "$/h")
			b.ReportMetric(lowerBound(catalog, s.Pods), "$/h-bound")
		})
	}
}

// lowerBound is a price that no placement can undercut. Whatever is on a node, its shares of the node's CPU add up to
// at most one, so do its shares of memory, and so does any mixture of the two: the cheapest share of each pod, added
// up, is a bound for each mixture, and the best of the bounds counts.
func lowerBound(catalog *cluster.Catalog, pods []*cluster.Pod) float64 {
	count := make(map[*cluster.PodClass]float64)
	for _, p := range pods {
		count[p.Class]++
	}
	best := 0.0
	for mixture := 0.0; mixture <= 1; mixture += 0.05 {
		sum := 0.0
		for class, n := range count {
			least := math.Inf(1)
			for i := range catalog.Offerings {
				o := &catalog.Offerings[i]
				room := catalog.Types[o.Type].Allocatable
				if class.Requests.Fits(room) && cluster.MayRunOn(class, o.Labels, nil) {
					cpu := float64(class.Requests[resource.CPU]) / float64(room[resource.CPU])
					memory := float64(class.Requests[resource.Memory]) / float64(room[resource.Memory])
					least = min(least, o.Price*(mixture*cpu+(1-mixture)*memory))
				}
			}
			sum += n * least
		}
		best = max(best, sum)
	}
	return best
}

// diversePods are a fifth each of plain pods, pods spread over zones, spread over hosts, together in a zone, and alone
// on a host. Each belongs to one of seven groups of its fifth, and its rule is about its own group.
func diversePods(n int) []*cluster.Pod {
	r := rand.New(rand.NewSource(3))
	cpus := []int64{100, 250, 500, 1000, 1500}
	memories := []int64{100, 256, 512, 1024, 2048, 4096}
	rules := make(map[string]*cluster.Rule)
	labels := make(map[string]cluster.Labels)
	classes := make(map[string]*cluster.PodClass)
	pods := make([]*cluster.Pod, n)
	for i := range pods {
		fifth, group := i%5, r.Intn(7)
		cpu, memory := cpus[r.Intn(len(cpus))], memories[r.Intn(len(memories))]
		member := fmt.Sprintf("%d-%d", fifth, group)
		if labels[member] == nil {
			labels[member] = cluster.LabelsOf(map[string]string{"group": member})
			rules[member] = diverseRule(fifth, member)
		}
		key := fmt.Sprintf("%s-%d-%d", member, cpu, memory)
		c := classes[key]
		if c == nil {
			c = &cluster.PodClass{Key: key, Terms: []require.Set{nil},
				Requests: resource.Vector{resource.CPU: cpu, resource.Memory: memory << 20, resource.Pods: 1}}
			if rules[member] != nil {
				c.Rules = []*cluster.Rule{rules[member]}
			}
			classes[key] = c
		}
		name := fmt.Sprintf("pod-%06d", i)
		pods[i] = &cluster.Pod{UID: name, Name: name, Namespace: "default", Class: c, Labels: labels[member],
			Unschedulable: true}
	}
	return pods
}

func diverseRule(fifth int, member string) *cluster.Rule {
	r := &cluster.Rule{Key: member, TopologyKey: cluster.ZoneLabel, MaxSkew: 1, Selectors: []cluster.Selector{{
		Namespaces: []string{"default"}, Labels: require.Set{}.With("group", require.Only(member))}}}
	switch fifth {
	case 0:
		return nil
	case 2:
		r.TopologyKey = cluster.HostnameLabel
	case 3:
		r.Kind = cluster.Affinity
	case 4:
		r.Kind, r.TopologyKey = cluster.AntiAffinity, cluster.HostnameLabel
	}
	return r
}

// BenchmarkDiverse places pods with rules between them on an empty cluster.
func BenchmarkDiverse(b *testing.B) {
	catalog := largeCatalog()
	for _, n := range []int{100, 1000, 5000, 20000} {
		b.Run(fmt.Sprint(n, "-pods"), func(b *testing.B) {
			s := (&cluster.Snapshot{Names: &resource.Names{}, Pods: diversePods(n), Pools: []*cluster.Pool{{
				Name: "pool", NodeClass: cluster.NodeClassState{Ready: true}, Catalog: catalog}}}).Seal()
			var got schedule.Placement
			b.ReportAllocs()
			for b.Loop() {
				got = schedule.Place(s.SchedulerView(), schedule.Settings{})
			}
			if len(got.Unplaced) > 0 {
				b.Fatalf("%d pods found no place: %+v", len(got.Unplaced), got.Unplaced[0].Pools)
			}
			b.ReportMetric(float64(len(got.Bins)), "nodes")
			b.ReportMetric(got.Price, "$/h")
			b.ReportMetric(got.Bound, "$/h-bound")
		})
	}
}
