package plan_test

import (
	"flag"
	"fmt"
	"math/rand"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/replay"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

var (
	tangled     = flag.Int("tangled", 3000, "how many clusters of pods with affinity to each other to draw")
	tangledFrom = flag.Int64("tangled-from", 1, "the seed of the first of them")
)

// Whatever affinity pods have to each other, no plan panics, each pod is in one place at most, and no invariant of the
// placement is violated. More clusters: go test ./internal/plan -run Tangled -tangled=100000
func TestTangledClusters(t *testing.T) {
	crowd := 0
	for i := range int64(*tangled) {
		seed := *tangledFrom + i
		if text := tangle(seed, &crowd); text != "" {
			t.Fatalf("seed %d: %s", seed, text)
		}
	}
	if crowd < *tangled {
		t.Errorf("%d pods got places in %d clusters: there is hardly anything to get wrong", crowd, *tangled)
	}
	t.Logf("%d clusters from seed %d, %d pods got a place", *tangled, *tangledFrom, crowd)
}

// tangle plans for one cluster a few times and says what is wrong with it; nothing if all is well.
func tangle(seed int64, placed *int) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	r := rand.New(rand.NewSource(seed))
	w := drawTangled(r)
	policy := defaultPolicy()
	policy.Schedule.IgnorePreferences = r.Intn(4) == 0
	var before *plan.Plan
	for range 1 + r.Intn(3) {
		s := w.snapshot(nil)
		p := plan.Make(s, policy, before, nil)
		if seed%10 == 0 && before == nil {
			if text := replayed(&replay.Case{Step: replay.Make, Snapshot: s, Policy: policy}, &p); text != "" {
				return text
			}
		}
		if text := inOnePlace(&p.Placement); text != "" {
			return text
		}
		*placed += len(p.Placement.Assigned)
		for _, bin := range p.Placement.Bins {
			*placed += len(bin.Pods)
		}
		if found := plan.Search(s, policy); len(found.Faults) > 0 {
			return "the search violates an invariant: " + render.Fault(found.Faults[0])
		}
		w.act(p, -1)
		w.now = w.now.Add(time.Second)
		plan.Check(p, w.snapshot(nil))
		before = &p
	}
	return ""
}

// inOnePlace says which pod a placement has in two places, or which invariant it has found violated itself.
func inOnePlace(p *schedule.Placement) string {
	if len(p.Faults) > 0 {
		return "the placement violates an invariant: " + render.Fault(p.Faults[0])
	}
	seen := make(map[string]string)
	see := func(pod *cluster.Pod, where string) string {
		if at, twice := seen[pod.UID]; twice {
			return fmt.Sprintf("%s is %s and %s", pod.Name, at, where)
		}
		seen[pod.UID] = where
		return ""
	}
	for _, a := range p.Assigned {
		if text := see(a.Pod, "assigned to "+a.Host); text != "" {
			return text
		}
	}
	for i, bin := range p.Bins {
		for _, pod := range bin.Pods {
			if text := see(pod, fmt.Sprint("on new node ", i)); text != "" {
				return text
			}
		}
	}
	for _, u := range p.Unplaced {
		if text := see(u.Pod, "without a place"); text != "" {
			return text
		}
	}
	return ""
}

// drawTangled makes a small cluster whose pods are tied to each other in many ways, some of them to pods that run on
// full nodes.
func drawTangled(r *rand.Rand) *world {
	w := newWorld()
	for i := range 1 + r.Intn(3) {
		kind := cluster.Type{Name: fmt.Sprint("type", i)}
		kind.Capacity = resource.Vector{resource.CPU: int64(1+r.Intn(8)) * 1000,
			resource.Memory: int64(1+r.Intn(8)) * gi, resource.Pods: int64(2 + r.Intn(9))}
		kind.Allocatable = kind.Capacity
		w.types = append(w.types, kind)
		for _, zone := range []string{"a", "b", "c"}[:1+r.Intn(3)] {
			w.offerings = append(w.offerings, cluster.Offering{Type: i, Zone: zone, CapacityType: "on-demand",
				Available: r.Intn(12) > 0,
				Price:     float64(1+r.Intn(40)) / 100, Labels: cluster.LabelsOf(map[string]string{
					cluster.InstanceTypeLabel: kind.Name, cluster.ZoneLabel: zone,
					cluster.CapacityTypeLabel: "on-demand"})})
		}
	}
	for i := range 1 + r.Intn(2) {
		p := &cluster.Pool{Name: fmt.Sprint("pool", i), UID: fmt.Sprint("uid-pool", i), Weight: int32(r.Intn(2)),
			Policy:    cluster.WhenEmptyOrUnderutilized,
			Budgets:   []cluster.Budget{{Nodes: 100, Percent: true, Active: true}},
			NodeClass: cluster.NodeClassState{Ready: true}}
		if r.Intn(6) == 0 {
			p.Limits.HasNodes, p.Limits.Nodes = true, int64(r.Intn(4))
		}
		w.pools[p.Name] = p
	}
	w.namespaces["default"] = cluster.Labels{}.With("team", "red")
	w.namespaces["other"] = cluster.Labels{}.With("team", "blue")
	for i := range r.Intn(4) {
		w.tangledNode(r, i)
	}
	for i := range 1 + r.Intn(6) {
		sh := tangledShape(r)
		w.tie(&sh, fmt.Sprint("app", i))
		class, owner, n := w.class(fmt.Sprint("class", i), sh), fmt.Sprint("rs", i), 1+r.Intn(3)
		for j := range n {
			p := w.addPod(cluster.Pod{Name: fmt.Sprintf("pod%d-%d", i, j), Class: class, Owner: owner,
				Namespace: sh.ties.namespace, Labels: sh.ties.labels})
			sh.ties.mount(p)
		}
		w.owners[owner] = cluster.Owner{UID: owner, Kind: "ReplicaSet", Known: true, Desired: n}
	}
	return w
}

// tangledNode puts in a node with pods that, most of the time, leave no room on it. Some nodes are on their way out.
func (w *world) tangledNode(r *rand.Rand, i int) {
	catalog := w.catalog()
	o := &catalog.Offerings[r.Intn(len(catalog.Offerings))]
	pool := w.pools[fmt.Sprint("pool", r.Intn(len(w.pools)))]
	kind, name := catalog.Types[o.Type], fmt.Sprint("node", i)
	labels := o.Labels.With(cluster.PoolLabel, pool.Name).With(cluster.HostnameLabel, name)
	c := &cluster.Claim{Name: name, UID: "uid-" + name, Pool: pool.Name, Created: w.now, Finalized: true,
		ProviderID: "model://" + name, NodeName: name,
		Labels: labels, Capacity: kind.Capacity, Allocatable: kind.Allocatable,
		Requirements: require.Set{}.With(cluster.InstanceTypeLabel, require.Only(kind.Name))}
	w.claims[name], w.alias[name] = c, name
	for _, condition := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
		w.setCondition(c, condition, cluster.True, "", "")
	}
	w.nodes[name] = &cluster.Node{Name: name, UID: "node-" + name, ProviderID: c.ProviderID, Finalized: true,
		Ours: true, Ready: true,
		Capacity: kind.Capacity, Allocatable: kind.Allocatable, Labels: labels.With(cluster.RegisteredLabel,
			"true").With(cluster.InitializedLabel, "true")}
	full := r.Intn(3) > 0
	for j := range 1 + r.Intn(2) {
		sh := tangledShape(r)
		sh.requests = resource.Vector{resource.CPU: 100, resource.Memory: gi / 8}
		if full && j == 0 {
			sh.requests[resource.CPU] = kind.Allocatable[resource.CPU] - 100
		}
		w.tie(&sh, fmt.Sprint("old", i, j))
		owner := fmt.Sprint("rs-old", i, j)
		w.owners[owner] = cluster.Owner{UID: owner, Kind: "ReplicaSet", Known: true, Desired: 1}
		w.addPod(cluster.Pod{Name: fmt.Sprintf("on-%s-%d", name, j), Class: w.class(fmt.Sprint("old", i, j), sh),
			Owner: owner, Node: name,
			Namespace: sh.ties.namespace, Labels: sh.ties.labels})
	}
	if r.Intn(6) == 0 {
		c.Deleting = w.now
	}
}

// tangledShape is a pod with up to three rules about others, in which everything that selects is likely to select
// something.
func tangledShape(r *rand.Rand) shape {
	var sh shape
	sh.requests = resource.Vector{resource.CPU: int64(1+r.Intn(20)) * 100, resource.Memory: int64(r.Intn(4)) * gi / 2}
	sh.terms = []require.Set{nil}
	sh.priority = int32(r.Intn(3)) * 100
	sh.ties.namespace = []string{"default", "default", "other"}[r.Intn(3)]
	sh.ties.labels = cluster.Labels{}.With("app", apps[r.Intn(len(apps))])
	for range []int{0, 1, 1, 1, 2, 3}[r.Intn(6)] {
		sh.ties.rules = append(sh.ties.rules, tangledRule(r))
	}
	if r.Intn(8) == 0 {
		sh.ports = []cluster.Port{{IP: "0.0.0.0", Protocol: "TCP", Number: 80}}
	}
	if r.Intn(10) == 0 {
		sh.terms = []require.Set{require.Set{}.With(cluster.ZoneLabel, require.Only([]string{"a", "b"}[r.Intn(2)]))}
	}
	return sh
}

func tangledRule(r *rand.Rand) ruleWord {
	word := ruleWord{rule: cluster.Rule{
		Kind: []cluster.RuleKind{cluster.Affinity, cluster.Affinity, cluster.Affinity, cluster.AntiAffinity,
			cluster.Spread}[r.Intn(5)],
		TopologyKey: []string{cluster.HostnameLabel, cluster.HostnameLabel, cluster.HostnameLabel,
			cluster.ZoneLabel}[r.Intn(4)]}}
	if word.rule.Kind == cluster.Spread {
		word.rule.MaxSkew = 1 + r.Intn(2)
	}
	var s cluster.Selector
	switch r.Intn(5) {
	case 0: // its own kind
	case 1: // everybody
		s.Labels = require.Set{}
	case 2:
		s.MatchesNone = true
		s.Labels = require.Set{}
	default:
		s.Labels = require.Set{}.With("app", require.Only(apps[r.Intn(len(apps))]))
	}
	if word.rule.Kind != cluster.Spread {
		switch r.Intn(6) {
		case 0:
			s.HasNamespaceLabels = true // of every namespace
		case 1:
			s.NamespaceLabels, s.HasNamespaceLabels = require.Set{}.With("team", require.Only("blue")), true
		case 2:
			s.Namespaces = []string{"default", "other"}
		}
	}
	word.rule.Selectors = []cluster.Selector{s}
	if r.Intn(5) == 0 {
		word.weight = int32(1 + r.Intn(100))
	}
	return word
}
