package observe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// town is a cluster of nodes that all run the same number of pods.
func town(now time.Time, nodes, podsEach int) *cluster.Snapshot {
	s := &cluster.Snapshot{Now: now, Names: &resource.Names{}, Owners: map[string]cluster.Owner{"o": {UID: "o",
		Kind: "ReplicaSet", Name: "web-5d4f"}},
		Pools: []*cluster.Pool{{Name: "default", UID: "p", Budgets: []cluster.Budget{{Nodes: 10, Percent: true,
			Active: true}}}}}
	class := &cluster.PodClass{Key: "k", Requests: resource.Vector{resource.CPU: 100, resource.Memory: 1 << 27,
		resource.Pods: 1}, Terms: []require.Set{nil}}
	limits := &resource.Vector{resource.CPU: 200, resource.Memory: 1 << 28}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		labels := cluster.LabelsOf(map[string]string{cluster.PoolLabel: "default",
			cluster.ZoneLabel: fmt.Sprint("zone-", i%3), cluster.CapacityTypeLabel: "spot",
			cluster.InstanceTypeLabel: fmt.Sprint("type-", i%20), "kubernetes.io/arch": "amd64",
			"kubernetes.io/os":       "linux",
			cluster.InitializedLabel: "true", "karpenter.kwok.sh/kwoknodeclass": "default"})
		full := resource.Vector{resource.CPU: 4000, resource.Memory: 16 << 30, resource.Storage: 100 << 30,
			resource.Pods: 110}
		s.Nodes = append(s.Nodes, &cluster.Node{Name: name, UID: "n" + name, ProviderID: "cloud://" + name,
			Created: now.Add(-time.Hour), Ready: true,
			Labels: labels, Capacity: full, Allocatable: full})
		claim := &cluster.Claim{Name: name, UID: "c" + name, Pool: "default", ProviderID: "cloud://" + name,
			Labels: labels, Price: 0.5, Capacity: full}
		for _, kind := range []string{cluster.Launched, cluster.Registered, cluster.Initialized, cluster.Ready,
			cluster.ConsistentState} {
			claim.Conditions = append(claim.Conditions, cluster.Condition{Type: kind, Status: cluster.True,
				Reason: kind, Since: now.Add(-time.Hour)})
		}
		s.Claims = append(s.Claims, claim)
		for j := range podsEach {
			s.Pods = append(s.Pods, &cluster.Pod{UID: fmt.Sprintf("%05d-%03d", i, j), Namespace: "shop",
				Name: fmt.Sprintf("web-5d4f-%05d-%03d", i, j), Class: class,
				Owner: "o", Node: name, Ready: true, Phase: "Running", Limits: limits, Created: now.Add(-time.Hour),
				Started: now.Add(-time.Hour)})
		}
	}
	return s.Seal()
}

func townObserver(now *time.Time, options Options) (*Observer, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	options.NodeClasses = []schema.GroupVersionKind{{Group: "karpenter.kwok.sh", Version: "v1alpha1",
		Kind: "KWOKNodeClass"}}
	return New(logr.Discard(), silent{}, registry, func() time.Time { return *now }, options), registry
}

// count is the number of series.
func count(t *testing.T, registry *prometheus.Registry, prefix string) int {
	t.Helper()
	return strings.Count(gathered(t, registry, prefix), "\n")
}

func TestWhatIsGoneLeavesNoSeries(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, registry := townObserver(&now, Options{ClusterState: true})
	o.Planned(town(now, 1, 1), &plan.Plan{}, 0)
	o.Planned(town(now, 0, 0), &plan.Plan{}, 0)
	before := count(t, registry, "")
	for round := range 2 {
		o.Planned(town(now, 1000, 2), &plan.Plan{}, 0)
		if full := count(t, registry, ""); full < before+20000 {
			t.Fatalf("round %d: %d series for 1,000 nodes and 2,000 pods, %d without any", round, full, before)
		}
		o.Planned(town(now, 0, 0), &plan.Plan{}, 0)
		// Three zones and twenty types may have left counters behind, but nothing that grows with objects.
		if after := count(t, registry, ""); after > before+40 {
			t.Fatalf("round %d: %d series when all are gone, %d before they came", round, after, before)
		}
	}
}

func TestWithoutClusterStateThereAreOnlySums(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, registry := townObserver(&now, Options{})
	o.Planned(town(now, 1, 1), &plan.Plan{}, 0)
	few := count(t, registry, "")
	o.Planned(town(now, 100, 10), &plan.Plan{}, 0)
	if many := count(t, registry, ""); many != few {
		t.Errorf("%d series for one node, %d for a hundred:\n%s", few, many, gathered(t, registry, ""))
	}
	for _, want := range []string{"karpenter_nodepools_cost_total{nodepool=default} 50\n",
		"karpenter_cluster_state_node_count{} 100\n"} {
		if got := gathered(t, registry, "karpenter_"); !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestScrapeIsWhatTheLibraryWouldSay compares our own way of making series with the pedantic one.
func TestScrapeIsWhatTheLibraryWouldSay(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	registry := prometheus.NewPedanticRegistry()
	o := New(logr.Discard(), silent{}, registry, func() time.Time { return now }, Options{ClusterState: true})
	s := town(now, 3, 2)
	s.Claims[0].Deleting, s.Nodes[0].Deleting = now.Add(-time.Minute), now.Add(-time.Minute)
	s.Pods = append(s.Pods, &cluster.Pod{UID: "z", Namespace: "shop", Name: "new", Class: s.Pods[0].Class,
		Created: now.Add(-time.Minute), Unschedulable: true, UnschedulableSince: now.Add(-time.Minute)})
	o.Planned(s.Seal(), &plan.Plan{}, 0)
	if _, err := registry.Gather(); err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet,
		"/metrics", nil))
	want := `karpenter_pods_state{arch="amd64",capacity_type="spot",instance_type="type-1",managed="true",name="web-5d4f-00001-000",namespace="shop",node="node-00001",nodepool="default",` +
		`owner="/apis/apps/v1/namespaces/shop/replicasets/web-5d4f",phase="Running",ready="true",scheduled="true",zone="zone-1"} 1`
	if !slices.Contains(strings.Split(rec.Body.String(), "\n"), want) {
		t.Errorf("no line %s", want)
	}
}

// TestScrapesDoNotDisturbTheLoop is for the race detector: the loop, its acts and scrapes go on at the same time.
func TestScrapesDoNotDisturbTheLoop(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, registry := townObserver(&now, Options{ClusterState: true})
	worlds := []*cluster.Snapshot{town(now, 5, 3), town(now, 7, 2)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			o.Planning()
			o.Searched(worlds[i%2], idleSearch(worlds[i%2], func(int) disrupt.BlockedNode {
				return disrupt.BlockedNode{Reason: disrupt.NothingCheaper}
			}), 0)
			o.Planned(worlds[i%2], &plan.Plan{Provisioned: i%3 == 0}, 0)
		}
	})
	wg.Go(func() {
		for i := range 100 {
			o.Done(worlds[i%2], command.Outcome{Command: command.Release{Claim: "node-00001", Node: "node-00001"}}, 0)
		}
	})
	for range 20 {
		if _, err := registry.Gather(); err != nil {
			t.Error(err)
		}
		o.Disruption().ServeHTTP(&sink{}, httptest.NewRequest(http.MethodGet, DisruptionPath, nil))
	}
	wg.Wait()
}

// BenchmarkScrape1000Nodes20000Pods is a whole answer to a scrape of a large cluster, and what it holds at its height.
func BenchmarkScrape1000Nodes20000Pods(b *testing.B) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, registry := townObserver(&now, Options{ClusterState: true})
	o.Planned(town(now, 1000, 20), &plan.Plan{}, 0)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	size := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := float64(after.HeapAlloc) - float64(before.HeapAlloc)
	runtime.KeepAlive(families)
	b.ReportAllocs()
	for b.Loop() {
		rec := &sink{}
		handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		size = rec.n
	}
	b.ReportMetric(held/1e6, "MB-held")
	b.ReportMetric(float64(size)/1e6, "MB-sent")
}

// sink counts what is sent.
type sink struct {
	header http.Header
	n      int
}

func (s *sink) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}
func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkIdlePlan1000Nodes20000Pods is what the observer adds to a plan on a large cluster in which nothing has
// changed.
func BenchmarkIdlePlan1000Nodes20000Pods(b *testing.B) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, _ := townObserver(&now, Options{ClusterState: true})
	s := town(now, 1000, 20)
	o.Planned(s, &plan.Plan{}, 0)
	for b.Loop() {
		o.Planned(s, &plan.Plan{}, 0)
	}
}
