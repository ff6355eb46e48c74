package search_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// noon is when all of this happens; everything has been quiet for long.
func noon() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) }

// town is a cluster of which pods come and go.
type town struct {
	catalog *cluster.Catalog
	pools   []*cluster.Pool
	daemons []*cluster.Daemon
	claims  map[string]*cluster.Claim
	nodes   map[string]*cluster.Node
	pods    map[string]*cluster.Pod
	guards  []*cluster.PDB
	born    int // nodes so far
	// deployed counts the deployments.
	deployed int
	// dear says that the cloud hands out the dearest of what a claim may become; took is how long the longest search
	// took. swept is what the nodes cost that went because they were empty, in the last round.
	dear  bool
	swept float64
	took  time.Duration
	alloc uint64
}

func newTown(catalog *cluster.Catalog, pools ...*cluster.Pool) *town {
	return &town{catalog: catalog, pools: pools, claims: make(map[string]*cluster.Claim),
		nodes: make(map[string]*cluster.Node),
		pods:  make(map[string]*cluster.Pod)}
}

// snapshot shows the town as it is.
func (w *town) snapshot() *cluster.Snapshot {
	s := &cluster.Snapshot{Now: noon(), Names: &resource.Names{}, Pools: w.pools, Daemons: w.daemons, PDBs: w.guards}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		s.Claims = append(s.Claims, w.claims[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		s.Nodes = append(s.Nodes, w.nodes[name])
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		s.Pods = append(s.Pods, w.pods[uid])
	}
	return s.Seal()
}

// afresh shows the town's pods without a place, and no nodes.
func (w *town) afresh() *cluster.Snapshot {
	s := &cluster.Snapshot{Now: noon(), Names: &resource.Names{}, Pools: w.pools, Daemons: w.daemons}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		if !w.pods[uid].Daemon {
			p := *w.pods[uid]
			p.Node, p.Unschedulable = "", true
			s.Pods = append(s.Pods, &p)
		}
	}
	return s.Seal()
}

// settle carries a placement out.
func (w *town) settle(bins []market.Bin, assigned []schedule.Assignment) {
	for i := range bins {
		name := w.launch(&bins[i])
		for _, p := range bins[i].Pods {
			w.put(p, name)
		}
	}
	for _, a := range assigned {
		w.put(a.Pod, a.Host)
	}
}

func (w *town) put(p *cluster.Pod, node string) {
	q := *p
	q.Node, q.Unschedulable, q.Ready = node, false, true
	w.pods[q.UID] = &q
}

// launch makes the cheapest node that the bin may become, or the dearest.
func (w *town) launch(b *market.Bin) string {
	index, rows := w.catalog.Index(), w.catalog.Available()
	for _, e := range b.Requirements {
		if index.Knows(e.Key) {
			rows = rows.And(index.Match(e.Key, e.Values))
		}
	}
	best := -1
	for i := range rows.All {
		if best < 0 || w.catalog.Offerings[i].Price < w.catalog.Offerings[best].Price != w.dear {
			best = i
		}
	}
	if best < 0 {
		panic("a new node can't be bought: " + b.Requirements.String())
	}
	return w.build(b.Pool, &w.catalog.Offerings[best], b.Labels)
}

// build adds an initialized node.
func (w *town) build(p *cluster.Pool, o *cluster.Offering, more cluster.Labels) string {
	w.born++
	name, kind := fmt.Sprintf("node-%06d", w.born), &w.catalog.Types[o.Type]
	labels := o.Labels.Merge(p.Template.Labels).Merge(more).With(cluster.PoolLabel, p.Name).With(cluster.HostnameLabel,
		name).
		With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")
	long := noon().Add(-2 * time.Hour)
	w.claims[name] = &cluster.Claim{Name: name, UID: "uid-" + name, Pool: p.Name, Created: long, ProviderID: "town://" +
		name, NodeName: name,
		Labels: labels, Taints: p.Template.Taints, Capacity: kind.Capacity, Allocatable: kind.Allocatable,
		Price:        o.Price,
		LastPodEvent: noon().Add(-time.Hour), Conditions: []cluster.Condition{
			{Type: cluster.Launched, Status: cluster.True, Since: long}, {Type: cluster.Registered,
				Status: cluster.True, Since: long},
			{Type: cluster.Initialized, Status: cluster.True, Since: long}}}
	w.nodes[name] = &cluster.Node{Name: name, UID: "node-" + name, ProviderID: "town://" + name, Labels: labels,
		Taints: p.Template.Taints,
		Ready:  true, Ours: true, Capacity: kind.Capacity, Allocatable: kind.Allocatable}
	for _, d := range w.daemons {
		if cluster.MayRunOn(d.Class, labels, p.Template.Taints) {
			id := d.Name + "-" + name
			w.pods[id] = &cluster.Pod{UID: id, Name: id, Namespace: d.Namespace, Class: d.Class, Labels: d.Labels,
				Owner: d.UID, Node: name, Daemon: true}
		}
	}
	return name
}

// raze takes a node away, with what belongs to it.
func (w *town) raze(name string) {
	for _, d := range w.daemons {
		delete(w.pods, d.Name+"-"+name)
	}
	delete(w.nodes, name)
	delete(w.claims, name)
}

// sweep takes nodes away that carry nothing, and says what they cost.
func (w *town) sweep() (price float64) {
	used := make(map[string]bool)
	for _, p := range w.pods {
		if !p.Daemon {
			used[p.Node] = true
		}
	}
	for name := range w.nodes {
		if !used[name] {
			price += w.claims[name].Price
			w.raze(name)
		}
	}
	return price
}

// cost is what the town pays per hour.
func (w *town) cost() float64 {
	var list []float64
	for _, c := range w.claims {
		list = append(list, c.Price)
	}
	slices.Sort(list) // so that rounding is the same each time
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum
}

// region is the catalog of a cloud region: families in three proportions of memory, three zones, spot and on-demand.
func region(r *rand.Rand, families int, sizes []int64) *cluster.Catalog {
	var types []cluster.Type
	var offerings []cluster.Offering
	for family := range families {
		perCore := int64(2 << (family % 3)) // Gi for each core: 2, 4 or 8
		rate := 0.03 + 0.004*float64(perCore) + 0.01*r.Float64()
		discount := 0.3 + 0.2*r.Float64()
		for size, cores := range sizes {
			kind := cluster.Type{Name: fmt.Sprintf("f%02d.s%d", family, size)}
			kind.Capacity = resource.Vector{resource.CPU: cores * 1000, resource.Memory: cores * perCore << 30,
				resource.Pods: min(8+cores*15, 250)}
			kind.Allocatable = kind.Capacity
			kind.Allocatable[resource.CPU] -= 80
			kind.Allocatable[resource.Memory] -= kind.Capacity[resource.Memory] / 12
			types = append(types, kind)
			for _, zone := range []string{"a", "b", "c"} {
				for _, terms := range []string{"on-demand", "spot"} {
					price := rate * float64(cores)
					if terms == "spot" {
						price *= discount * (0.9 + 0.2*r.Float64())
					}
					offerings = append(offerings, cluster.Offering{
						Type: len(types) - 1, Zone: zone, CapacityType: terms, Price: math.Round(price*1e4) / 1e4,
						Available: true,
						Labels: cluster.LabelsOf(map[string]string{
							cluster.InstanceTypeLabel: kind.Name, cluster.ZoneLabel: zone,
							cluster.CapacityTypeLabel: terms,
							"kubernetes.io/arch":      []string{"amd64", "arm64"}[family%2],
							"kubernetes.io/os":        "linux"}),
					})
				}
			}
		}
	}
	return cluster.NewCatalog(types, offerings)
}

// threePools are one for everybody, one on demand only, and one for a team that keeps others out.
func threePools(catalog *cluster.Catalog) []*cluster.Pool {
	all := []cluster.Budget{{Nodes: 100, Percent: true, Active: true}}
	make := func(name string) *cluster.Pool {
		return &cluster.Pool{Name: name, UID: "pool-" + name, NodeClass: cluster.NodeClassState{Ready: true},
			Catalog: catalog,
			Policy:  cluster.WhenEmptyOrUnderutilized, Budgets: all}
	}
	general, steady, team := make("general"), make("steady"), make("team")
	steady.Template.Requirements = steady.Template.Requirements.With(cluster.CapacityTypeLabel,
		require.Only("on-demand"))
	team.Template.Labels = cluster.LabelsOf(map[string]string{"team": "blue"})
	team.Template.Taints = []cluster.Taint{{Key: "team", Value: "blue", Effect: cluster.NoSchedule}}
	return []*cluster.Pool{general, steady, team}
}

// workload is a deployment: pods that are alike.
func workload(r *rand.Rand, n int) (*cluster.PodClass, cluster.Labels) {
	name := fmt.Sprintf("app-%05d", n)
	c := &cluster.PodClass{Key: name, Terms: []require.Set{nil}}
	milli := int64(50 * math.Ceil(math.Exp(0.8*r.NormFloat64()+1.7)))
	c.Requests = resource.Vector{resource.CPU: min(milli, 4000), resource.Memory: int64(1+r.IntN(24)) * milli << 18,
		resource.Pods: 1}
	rule := &cluster.Rule{Key: name, TopologyKey: cluster.ZoneLabel, MaxSkew: 1, Selectors: []cluster.Selector{{
		Namespaces: []string{"default"}, Labels: require.Set{}.With("app", require.Only(name))}}}
	switch r.IntN(20) {
	case 0, 1:
		c.Terms[0] = c.Terms[0].With(cluster.ZoneLabel, require.Only([]string{"a", "b", "c"}[r.IntN(3)]))
	case 2, 3:
		c.Terms[0] = c.Terms[0].With(cluster.CapacityTypeLabel, require.Only("on-demand"))
	case 4, 5:
		c.Terms[0] = c.Terms[0].With("kubernetes.io/arch", require.Only("amd64"))
	case 6, 7:
		c.Terms[0] = c.Terms[0].With("team", require.Only("blue"))
		c.Tolerations = []cluster.Toleration{{Key: "team", Exists: true}}
	case 8, 9:
		c.Rules = []*cluster.Rule{rule}
	case 10:
		rule.TopologyKey = cluster.HostnameLabel
		c.Rules = []*cluster.Rule{rule}
	case 11:
		rule.TopologyKey, rule.Kind = cluster.HostnameLabel, cluster.AntiAffinity
		c.Rules = []*cluster.Rule{rule}
	case 12:
		rule.Kind = cluster.Affinity
		c.Rules = []*cluster.Rule{rule}
	}
	return c, cluster.LabelsOf(map[string]string{"app": name})
}

// populate draws deployments of uneven size until there are so many pods, and gives them new nodes.
func (w *town) populate(r *rand.Rand, pods int) {
	s := &cluster.Snapshot{Now: noon(), Names: &resource.Names{}, Pools: w.pools, Daemons: w.daemons}
	for ; len(s.Pods) < pods; w.deployed++ {
		class, labels := workload(r, w.deployed)
		for i := range min(int(2+math.Exp(1.2*r.NormFloat64()+2.5)), pods-len(s.Pods)) {
			id := fmt.Sprintf("%s-%04d", labels[0].Value, i)
			s.Pods = append(s.Pods, &cluster.Pod{UID: id, Name: id, Namespace: "default", Class: class, Labels: labels,
				Owner:         "rs-" + labels[0].Value,
				Unschedulable: true, EvictionCost: 1})
		}
	}
	slices.SortFunc(s.Pods, func(a, b *cluster.Pod) int { return strings.Compare(a.UID, b.UID) })
	placement := schedule.Place(s.Seal().SchedulerView(), schedule.Settings{})
	w.settle(placement.Bins, placement.Assigned)
}

// shrink lets each deployment keep a part of its pods, which ones is left to chance.
func (w *town) shrink(r *rand.Rand, least, most float64) {
	part := make(map[string]float64)
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[uid]
		if p.Daemon {
			continue
		}
		if _, known := part[p.Owner]; !known {
			part[p.Owner] = least + (most-least)*r.Float64()
		}
		if r.Float64() > part[p.Owner] {
			delete(w.pods, uid)
		}
	}
}

// round makes one search and carries out what it found.
func (w *town) round(set disrupt.Settings, look func(*step)) (disrupt.Proposal, int) {
	s := w.snapshot()
	var begin, end runtime.MemStats
	runtime.ReadMemStats(&begin)
	start := time.Now()
	p := search.Find(s, set)
	w.took = max(w.took, time.Since(start))
	runtime.ReadMemStats(&end)
	w.alloc = max(w.alloc, end.TotalAlloc-begin.TotalAlloc)
	moved := 0
	for i := range p.Moves {
		m := &p.Moves[i]
		w.settle(m.Bins, m.Assigned)
		moved += m.Evicted
		for _, name := range m.Claims {
			w.raze(name)
		}
	}
	for uid, p := range w.pods { // who is moved by nobody is gone with the node
		if w.nodes[p.Node] == nil {
			delete(w.pods, uid)
		}
	}
	if look != nil {
		look(&step{set: set, proposal: &p, before: s, after: w.snapshot()})
	}
	w.swept = w.sweep()
	return p, moved
}
