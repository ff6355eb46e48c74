package disrupttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Known is what else a plan knows.
type Known struct {
	Budgets   *disrupt.BudgetTracker
	Placement *schedule.Placement
	Commands  []command.Command
	Proposal  *disrupt.Proposal
	Repair    disrupt.RepairSettings
	Static    bool
}

// Fleet is a pool of nodes that have been quiet for long. The cloud sells small (2 CPUs, $1), medium (4, $2) and large
// (8, $4).
type Fleet struct {
	S    *cluster.Snapshot
	Set  disrupt.Settings
	O    Known
	Pool *cluster.Pool
	Now  time.Time
	// labels are those of all pods.
	labels cluster.Labels
	// Steps is how many a search may take; 0 for as many as usual.
	Steps int
}

// NewFleet has three large nodes: n1 carries a pod of 2 CPUs, n2 and n3 one of 4 CPUs each.
func NewFleet() *Fleet {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	var types []cluster.Type
	var offers []cluster.Offering
	for i, name := range []string{"small", "medium", "large"} {
		room := resource.Vector{resource.CPU: 2000 << i, resource.Memory: 64 << 30, resource.Pods: 110}
		types = append(types, cluster.Type{Name: name, Capacity: room, Allocatable: room})
		offers = append(offers, Offering(i, name, "a", disrupt.OnDemand, float64(int(1)<<i)))
	}
	f := &Fleet{Now: now, Set: disrupt.Settings{Nomination: time.Minute},
		labels: cluster.LabelsOf(map[string]string{"app": "web"})}
	f.Pool = &cluster.Pool{Name: "default", UID: "pool", Policy: cluster.WhenEmptyOrUnderutilized,
		Catalog:   cluster.NewCatalog(types, offers),
		NodeClass: cluster.NodeClassState{Ready: true}, Budgets: []cluster.Budget{{Nodes: 100, Percent: true,
			Active: true}}}
	f.S = &cluster.Snapshot{Now: now, Names: &resource.Names{}, Pools: []*cluster.Pool{f.Pool},
		InFlight: map[string]bool{}, Retry: map[string]cluster.Retry{},
		Owners: map[string]cluster.Owner{"web": {UID: "web", Known: true}}}
	for i, cpu := range []int{2, 4, 4} {
		f.Node(fmt.Sprint("n", i+1), "large")
		f.Run(fmt.Sprint("p", i+1), fmt.Sprint("n", i+1), cpu)
	}
	return f
}

// Node adds a node of one of the types.
func (f *Fleet) Node(name, kind string) *cluster.Claim {
	t := &f.Pool.Catalog.Types[slices.IndexFunc(f.Pool.Catalog.Types, func(t cluster.Type) bool {
		return t.Name == kind
	})]
	price, _ := f.Pool.Catalog.Price(kind, "a", disrupt.OnDemand)
	c := &cluster.Claim{Name: name, UID: "uid-" + name, Pool: f.Pool.Name, ProviderID: "cloud://" + name,
		NodeName: name, Created: f.Now.Add(-3 * time.Hour),
		Labels: LabelsFor(kind, "a", disrupt.OnDemand), Price: price, LastPodEvent: f.Now.Add(-time.Hour),
		Allocatable: t.Allocatable, Capacity: t.Capacity}
	for _, done := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
		c.Conditions = append(c.Conditions, cluster.Condition{Type: done, Status: cluster.True,
			Since: f.Now.Add(-2 * time.Hour)})
	}
	f.S.Claims = append(f.S.Claims, c)
	f.S.Nodes = append(f.S.Nodes, &cluster.Node{Name: name, UID: "node-" + name, ProviderID: c.ProviderID, Ready: true,
		Ours: true, Allocatable: t.Allocatable,
		Capacity: t.Capacity, Labels: c.Labels.With(cluster.HostnameLabel, name).With(cluster.PoolLabel, f.Pool.Name).
				With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")})
	return c
}

// Run adds a pod of the deployment web. Without a node it looks for a place.
func (f *Fleet) Run(name, node string, cpu int) *cluster.Pod {
	p := &cluster.Pod{UID: name, Namespace: "shop", Name: name, Owner: "web", Node: node, Ready: node != "",
		Phase: "Running", EvictionCost: 1,
		Labels: f.labels, Class: &cluster.PodClass{Key: fmt.Sprint("web", cpu), Terms: []require.Set{nil},
			Requests: resource.Vector{resource.CPU: int64(cpu) * 1000, resource.Pods: 1}}}
	if node == "" {
		p.Phase, p.Unschedulable, p.SchedulerSeen = "Pending", true, true
	}
	f.S.Pods = append(f.S.Pods, p)
	return p
}

// Claim finds a claim by name.
func (f *Fleet) Claim(name string) *cluster.Claim {
	return f.S.Claims[slices.IndexFunc(f.S.Claims, func(c *cluster.Claim) bool { return c.Name == name })]
}

// Host finds a node by name.
func (f *Fleet) Host(name string) *cluster.Node {
	return f.S.Nodes[slices.IndexFunc(f.S.Nodes, func(n *cluster.Node) bool { return n.Name == name })]
}

// Pod finds a pod by name.
func (f *Fleet) Pod(name string) *cluster.Pod {
	return f.S.Pods[slices.IndexFunc(f.S.Pods, func(p *cluster.Pod) bool { return p.Name == name })]
}

// Say writes a condition on a claim.
func (f *Fleet) Say(claim, kind, reason string, since time.Time) {
	c := f.Claim(claim)
	c.Conditions = append(c.Conditions, cluster.Condition{Type: kind, Status: cluster.True, Reason: reason,
		Since: since})
}

// Found is a search's proposal to take a node away whose pods go where it says.
func (f *Fleet) Found(node, to string) *disrupt.Move {
	c := f.Claim(node)
	m := disrupt.Move{ID: disrupt.MoveID(command.Underutilized, []string{disrupt.ClaimIdentity(c)}),
		Reason: command.Underutilized,
		Claims: []string{node}, Before: c.Price}
	for _, p := range f.S.Pods {
		if p.Node == node {
			m.Evicted++
			m.Assigned = append(m.Assigned, schedule.Assignment{Pod: p, Host: to})
		}
	}
	if f.O.Proposal == nil {
		f.O.Proposal = &disrupt.Proposal{}
	}
	f.O.Proposal.Moves = append(f.O.Proposal.Moves, m)
	return &f.O.Proposal.Moves[len(f.O.Proposal.Moves)-1]
}

// Fenced has nodes go in a move that began a minute ago.
func (f *Fleet) Fenced(reason command.Reason, nodes ...string) string {
	var ids []string
	for _, name := range nodes {
		ids = append(ids, disrupt.ClaimIdentity(f.Claim(name)))
	}
	id := disrupt.MoveID(reason, ids)
	for _, name := range nodes {
		f.Claim(name).Move = id
		f.Say(name, cluster.DisruptionReason, string(reason), f.Now.Add(-time.Minute))
		f.Host(name).Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	}
	return id
}

// Drifted says of nodes that they have drifted.
func (f *Fleet) Drifted(names ...string) {
	for _, name := range names {
		f.Claim(name).DriftedFrom = "AMIDrift"
		f.Say(name, cluster.Drifted, "AMIDrift", f.Now.Add(-time.Hour))
	}
}

// Replaced adds a node that was made for a move.
func (f *Fleet) Replaced(move, name, kind string) *cluster.Claim {
	c := f.Node(name, kind)
	c.Replaces, c.Created, c.LastPodEvent = move, f.Now.Add(-50*time.Second), time.Time{}
	return c
}

// NotUp has a node not be up yet.
func NotUp(c *cluster.Claim) { c.Conditions = c.Conditions[:2] }

// StaticFleet has the fleet's pool ask for so many nodes. It has three.
func StaticFleet(replicas int64) *Fleet {
	f := NewFleet()
	f.Pool.Static, f.Pool.Replicas = true, replicas
	return f
}

// Static1 makes the pool a static one.
func (f *Fleet) Static1() { f.Pool.Static, f.Pool.Replicas, f.O.Static = true, 3, true }

// Single leaves one node at a time to the pool's budget.
func (f *Fleet) Single() { f.Pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true} }

// Guard adds a disruption budget for the deployment's pods.
func (f *Fleet) Guard(allowed, wanted, expected int) {
	f.S.PDBs = append(f.S.PDBs, &cluster.PDB{Namespace: "shop", Name: "g", Allowed: allowed, Healthy: wanted + allowed,
		DesiredHealthy: wanted, Expected: expected,
		Selector: cluster.Selector{Namespaces: []string{"shop"}}})
}

// Warned says that the cloud takes a node away in so long; 0 for advice without a deadline.
func (f *Fleet) Warned(name string, left time.Duration) *cluster.Claim {
	c := f.Claim(name)
	c.Interruption = cluster.Interruption{Kind: "spot"}
	if left > 0 {
		c.Interruption.Deadline = f.Now.Add(left)
	}
	return c
}

// Sicken has nodes be not ready for so long, where ten minutes are tolerated.
func (f *Fleet) Sicken(ago time.Duration, names ...string) {
	f.O.Repair = disrupt.RepairSettings{Enabled: true, MaxUnhealthy: 100,
		Policies: []disrupt.RepairPolicy{{Type: "Ready", Status: "False", Toleration: 10 * time.Minute}}}
	for _, name := range names {
		n := f.Host(name)
		n.Ready, n.Conditions = false, []cluster.NodeCondition{{Type: "Ready", Status: "False", Since: f.Now.Add(-ago)}}
	}
}

// Begins says how long ago the move of n1 began.
func (f *Fleet) Begins(ago time.Duration) {
	conditions := f.Claim("n1").Conditions
	conditions[len(conditions)-1].Since = f.Now.Add(-ago)
}

// ShyFleet has two drifted nodes, n1 in rack a and n2 in rack b, each with a pod that shares its rack with no other
// such pod. There is room on n3, and on n4, which is not up yet; so n1 is ready to go, and n2 is not.
func ShyFleet(rackOfRoom string) *Fleet {
	f := NewFleet()
	f.S.Pods = nil
	class := &cluster.PodClass{Key: "shy", Terms: []require.Set{nil}, Requests: f.Run("x", "n1", 2).Class.Requests,
		Rules: []*cluster.Rule{{Key: "shy", Kind: cluster.AntiAffinity,
			TopologyKey: "rack", Selectors: []cluster.Selector{{Namespaces: []string{"shop"},
				Labels: require.Set{}.With("app", require.Only("web"))}}}}}
	f.S.Pods = nil
	f.Run("p1", "n1", 2).Class = class
	f.Run("p2", "n2", 2).Class = class
	NotUp(f.Node("n4", "large"))
	for name, rack := range map[string]string{"n1": "a", "n2": "b", "n3": rackOfRoom, "n4": "a"} {
		f.Host(name).Labels = f.Host(name).Labels.With("rack", rack)
	}
	f.Drifted("n1", "n2")
	f.Fenced(command.Drifted, "n1")
	f.Begins(90 * time.Second)
	f.Fenced(command.Drifted, "n2")
	return f
}
