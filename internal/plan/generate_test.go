package plan_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

const gi = 1 << 30

// drawWorld makes a small cluster in which every rule can bind: few sizes, few zones, few labels.
func drawWorld(t *rapid.T) *world {
	w := newWorld()
	for i := range rapid.IntRange(1, 5).Draw(t, "types") {
		w.drawType(t, i)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		w.drawPool(t, i)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "daemons") {
		sh := drawShape(t, 500)
		if rapid.IntRange(0, 3).Draw(t, "daemon port") == 0 {
			sh.ports = []cluster.Port{drawPort(t)}
		}
		w.daemons[fmt.Sprint("ds", i)] = &cluster.Daemon{UID: fmt.Sprint("ds", i), Namespace: "default",
			Name: fmt.Sprint("ds", i), Class: w.class(fmt.Sprint("ds", i), sh)}
	}
	w.old = w.drawOld(t)
	for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
		w.drawNode(t, i)
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "classes") {
		sh := drawShape(t, 4000)
		w.drawTies(t, &sh)
		w.tie(&sh, fmt.Sprint("app", i))
		class := w.class(fmt.Sprint("class", i), sh)
		owner := fmt.Sprint("rs", i)
		n := rapid.IntRange(1, 6).Draw(t, "pods")
		for j := range n {
			p := w.addPod(cluster.Pod{Name: fmt.Sprintf("pod%d-%d", i, j), Class: class, Owner: owner,
				Namespace: sh.ties.namespace, Labels: sh.ties.labels})
			sh.ties.mount(p)
		}
		w.owners[owner] = cluster.Owner{UID: owner, Kind: "ReplicaSet", Known: true, Desired: n}
	}
	return w
}

func (w *world) drawType(t *rapid.T, i int) {
	name := fmt.Sprint("type", i)
	kind := cluster.Type{Name: name}
	kind.Capacity[resource.CPU] = int64(rapid.SampledFrom([]int{1000, 2000, 3000, 4000, 8000}).Draw(t, "cpu"))
	kind.Capacity[resource.Memory] = int64(rapid.SampledFrom([]int{2, 4, 8, 16}).Draw(t, "memory")) * gi
	kind.Capacity[resource.Pods] = int64(rapid.SampledFrom([]int{3, 10, 110}).Draw(t, "slots"))
	kind.Allocatable = kind.Capacity
	kind.Allocatable[resource.CPU] -= 100
	// none for no limit
	kind.Allocatable[w.attachDim()] = int64(rapid.SampledFrom([]int{0, 2, 5}).Draw(t, "attachments"))
	w.types = append(w.types, kind)
	labels := cluster.LabelsOf(map[string]string{
		cluster.InstanceTypeLabel: name, "arch": rapid.SampledFrom([]string{"amd64", "arm64"}).Draw(t, "arch"),
		"generation": rapid.SampledFrom([]string{"4", "5", "6"}).Draw(t, "generation")})
	for _, zone := range []string{"a", "b"} {
		for _, terms := range []string{"on-demand", "spot"} {
			if rapid.IntRange(0, 9).Draw(t, "sold") < 3 {
				continue
			}
			w.offerings = append(w.offerings, cluster.Offering{
				Type: i, Zone: zone, CapacityType: terms, Available: rapid.IntRange(0, 9).Draw(t, "available") > 0,
				Price:  float64(rapid.IntRange(1, 40).Draw(t, "price")) / 100,
				Labels: labels.With(cluster.ZoneLabel, zone).With(cluster.CapacityTypeLabel, terms),
			})
		}
	}
}

func (w *world) drawPool(t *rapid.T, i int) {
	p := &cluster.Pool{Budgets: steady(),
		Name: fmt.Sprint("pool", i), UID: fmt.Sprint("uid-pool", i),
		Weight: int32(rapid.IntRange(0, 1).Draw(t, "weight")),
		Policy: cluster.WhenEmpty, ConsolidateAfter: cluster.NillableDuration{Never: true},
		NodeClass: cluster.NodeClassState{Ready: true},
	}
	if rapid.Bool().Draw(t, "limited cpu") {
		p.Limits.Set[resource.CPU], p.Limits.Amount[resource.CPU] = true,
			int64(rapid.IntRange(0, 20).Draw(t, "limit"))*1000
	}
	if rapid.IntRange(0, 3).Draw(t, "limited nodes") == 0 {
		p.Limits.HasNodes, p.Limits.Nodes = true, int64(rapid.IntRange(0, 5).Draw(t, "nodes"))
	}
	if rapid.IntRange(0, 2).Draw(t, "tainted") == 0 {
		p.Template.Taints = []cluster.Taint{{Key: "dedicated", Value: "x", Effect: cluster.NoSchedule}}
	}
	if rapid.IntRange(0, 2).Draw(t, "teams") == 0 {
		p.Template.Requirements = p.Template.Requirements.With("team", require.Only("blue", "red"))
	}
	if rapid.IntRange(0, 2).Draw(t, "zoned") == 0 {
		p.Template.Requirements = p.Template.Requirements.With(cluster.ZoneLabel, require.Only("a"))
	}
	if rapid.IntRange(0, 3).Draw(t, "choosy") == 0 {
		p.Template.Requirements = p.Template.Requirements.WithMin(cluster.InstanceTypeLabel,
			rapid.IntRange(2, 3).Draw(t, "min values"))
	}
	if rapid.IntRange(0, 3).Draw(t, "labelled") == 0 {
		key, value := rapid.SampledFrom([]string{cluster.CapacityTypeLabel + "=spot", "tier=gold"}).Draw(t, "label"), ""
		for j := range key {
			if key[j] == '=' {
				key, value = key[:j], key[j+1:]
				break
			}
		}
		p.Template.Labels = p.Template.Labels.With(key, value)
	}
	if rapid.IntRange(0, 3).Draw(t, "unusable") == 0 {
		p.NodeClass.Ready = false
	}
	w.pools[p.Name] = p
}

// drawShape makes what a pod asks for.
func drawShape(t *rapid.T, mostCPU int) shape {
	var sh shape
	sh.requests[resource.CPU] = int64(rapid.IntRange(0, mostCPU/100).Draw(t, "milli")) * 100
	sh.requests[resource.Memory] = int64(rapid.IntRange(0, 6).Draw(t, "half gi")) * gi / 2
	for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "terms") {
		var term require.Set
		for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "demands") {
			key, values := drawDemand(t)
			term = term.With(key, values)
		}
		sh.terms = append(sh.terms, term)
	}
	if rapid.Bool().Draw(t, "tolerant") {
		sh.tolerations = []cluster.Toleration{{Key: "dedicated", Exists: true}}
	}
	sh.priority = int32(rapid.SampledFrom([]int{0, 0, 100}).Draw(t, "priority"))
	return sh
}

func drawDemand(t *rapid.T) (string, require.Values) {
	options := map[string][]string{
		cluster.ZoneLabel: {"a", "b"}, cluster.CapacityTypeLabel: {"spot", "on-demand"}, "arch": {"amd64", "arm64"},
		"team": {"blue", "red", "green"}, "tier": {"gold", "iron"}, "generation": {"4", "5", "6"},
		cluster.InstanceTypeLabel: {"type0", "type1", "type2"},
	}
	key := rapid.SampledFrom([]string{cluster.ZoneLabel, cluster.CapacityTypeLabel, "arch", "team", "tier",
		"generation",
		cluster.InstanceTypeLabel}).Draw(t, "key")
	op := rapid.SampledFrom([]require.Operator{require.In, require.In, require.NotIn, require.Exists,
		require.DoesNotExist, require.Gt}).Draw(t, "op")
	var list []string
	switch op {
	case require.In, require.NotIn:
		list = []string{rapid.SampledFrom(options[key]).Draw(t, "value")}
	case require.Gt:
		key, list = "generation", []string{rapid.SampledFrom([]string{"4", "5"}).Draw(t, "bound")}
	}
	values, _ := require.Make(op, list)
	return key, values
}

// drawNode puts in an initialized node with a few pods that fit it.
func (w *world) drawNode(t *rapid.T, i int) {
	if len(w.offerings) == 0 {
		return
	}
	catalog := w.catalog()
	o := &catalog.Offerings[rapid.IntRange(0, len(catalog.Offerings)-1).Draw(t, "offering")]
	pool := w.pools[fmt.Sprint("pool", rapid.IntRange(0, len(w.pools)-1).Draw(t, "pool of node"))]
	kind, name := catalog.Types[o.Type], fmt.Sprint("node", i)
	labels := o.Labels.Merge(pool.Template.Labels).With(cluster.PoolLabel, pool.Name).With(cluster.HostnameLabel, name)
	for _, e := range pool.Template.Requirements {
		if value, ok := e.Values.Pick(); ok && !catalog.Index().Knows(e.Key) {
			labels = labels.With(e.Key, value)
		}
	}
	c := &cluster.Claim{Name: name, UID: "uid-" + name, Pool: pool.Name, Created: w.now, Finalized: true,
		ProviderID: "model://" + name,
		NodeName:   name, Labels: labels, Taints: pool.Template.Taints, Capacity: kind.Capacity,
		Allocatable:  kind.Allocatable,
		Requirements: require.Set{}.With(cluster.InstanceTypeLabel, require.Only(kind.Name))}
	w.claims[name], w.alias[name] = c, name
	for _, condition := range []string{cluster.Launched, cluster.Registered, cluster.Initialized,
		cluster.ConsistentState} {
		w.setCondition(c, condition, cluster.True, "", "")
	}
	w.nodes[name] = &cluster.Node{Name: name, UID: "node-" + name, ProviderID: c.ProviderID, Finalized: true,
		Ours:  true,
		Ready: rapid.IntRange(0, 9).Draw(t, "ready") > 0, Capacity: kind.Capacity, Allocatable: kind.Allocatable,
		Taints: pool.Template.Taints,
		Labels: labels.With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")}
	w.runDaemons()
	free := kind.Allocatable
	for _, p := range w.pods {
		if p.Node == name {
			free = free.Sub(p.Class.Requests)
		}
	}
	for j := range rapid.IntRange(0, 3).Draw(t, "pods there") {
		sh := rapid.SampledFrom(w.old).Draw(t, "old")
		class := w.class("old", sh)
		if class.Requests.Count(free, 1) == 1 {
			free = free.Sub(class.Requests)
			w.addPod(cluster.Pod{Name: fmt.Sprintf("on-%s-%d", name, j), Class: class, Owner: "rs-old", Node: name,
				Labels: sh.ties.labels})
		}
	}
	w.now = w.now.Add(time.Minute)
}

// steady keeps nodes that don't meet what their pools ask for now from being replaced: most tests are about something
// else.
func steady() []cluster.Budget {
	return []cluster.Budget{{Active: true, Reasons: []string{string(command.Drifted)}}}
}
