package disrupt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// fleet is a pool of nodes that have been quiet for long. The cloud sells small (2 CPUs, $1), medium (4, $2) and large
// (8, $4).
type fleet struct {
	s    *cluster.Snapshot
	set  Settings
	o    ExecuteInput
	pool *cluster.Pool
	now  time.Time
	// labels are those of all pods.
	labels cluster.Labels
	// steps is how many a search may take; 0 for as many as usual.
	steps int
}

// newFleet has three large nodes: n1 carries a pod of 2 CPUs, n2 and n3 one of 4 CPUs each.
func newFleet() *fleet {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	var types []cluster.Type
	var offers []cluster.Offering
	for i, name := range []string{"small", "medium", "large"} {
		room := resource.Vector{resource.CPU: 2000 << i, resource.Memory: 64 << 30, resource.Pods: 110}
		types = append(types, cluster.Type{Name: name, Capacity: room, Allocatable: room})
		offers = append(offers, offering(i, name, "a", onDemand, float64(int(1)<<i)))
	}
	f := &fleet{now: now, set: Settings{Nomination: time.Minute},
		labels: cluster.LabelsOf(map[string]string{"app": "web"})}
	f.pool = &cluster.Pool{Name: "default", UID: "pool", Policy: cluster.WhenEmptyOrUnderutilized,
		Catalog:   cluster.NewCatalog(types, offers),
		NodeClass: cluster.NodeClassState{Ready: true}, Budgets: []cluster.Budget{{Nodes: 100, Percent: true,
			Active: true}}}
	f.s = &cluster.Snapshot{Now: now, Names: &resource.Names{}, Pools: []*cluster.Pool{f.pool},
		InFlight: map[string]bool{}, Retry: map[string]cluster.Retry{},
		Owners: map[string]cluster.Owner{"web": {UID: "web", Known: true}}}
	for i, cpu := range []int{2, 4, 4} {
		f.node(fmt.Sprint("n", i+1), "large")
		f.run(fmt.Sprint("p", i+1), fmt.Sprint("n", i+1), cpu)
	}
	return f
}

// node adds a node of one of the types.
func (f *fleet) node(name, kind string) *cluster.Claim {
	t := &f.pool.Catalog.Types[slices.IndexFunc(f.pool.Catalog.Types, func(t cluster.Type) bool {
		return t.Name == kind
	})]
	price, _ := f.pool.Catalog.Price(kind, "a", onDemand)
	c := &cluster.Claim{Name: name, UID: "uid-" + name, Pool: f.pool.Name, ProviderID: "cloud://" + name,
		NodeName: name, Created: f.now.Add(-3 * time.Hour),
		Labels: labelsFor(kind, "a", onDemand), Price: price, LastPodEvent: f.now.Add(-time.Hour),
		Allocatable: t.Allocatable, Capacity: t.Capacity}
	for _, done := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
		c.Conditions = append(c.Conditions, cluster.Condition{Type: done, Status: cluster.True,
			Since: f.now.Add(-2 * time.Hour)})
	}
	f.s.Claims = append(f.s.Claims, c)
	f.s.Nodes = append(f.s.Nodes, &cluster.Node{Name: name, UID: "node-" + name, ProviderID: c.ProviderID, Ready: true,
		Ours: true, Allocatable: t.Allocatable,
		Capacity: t.Capacity, Labels: c.Labels.With(cluster.HostnameLabel, name).With(cluster.PoolLabel, f.pool.Name).
				With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")})
	return c
}

// run adds a pod of the deployment web. Without a node it looks for a place.
func (f *fleet) run(name, node string, cpu int) *cluster.Pod {
	p := &cluster.Pod{UID: name, Namespace: "shop", Name: name, Owner: "web", Node: node, Ready: node != "",
		Phase: "Running", EvictionCost: 1,
		Labels: f.labels, Class: &cluster.PodClass{Key: fmt.Sprint("web", cpu), Terms: []require.Set{nil},
			Requests: resource.Vector{resource.CPU: int64(cpu) * 1000, resource.Pods: 1}}}
	if node == "" {
		p.Phase, p.Unschedulable, p.SchedulerSeen = "Pending", true, true
	}
	f.s.Pods = append(f.s.Pods, p)
	return p
}

func (f *fleet) claim(name string) *cluster.Claim {
	return f.s.Claims[slices.IndexFunc(f.s.Claims, func(c *cluster.Claim) bool { return c.Name == name })]
}

func (f *fleet) host(name string) *cluster.Node {
	return f.s.Nodes[slices.IndexFunc(f.s.Nodes, func(n *cluster.Node) bool { return n.Name == name })]
}

func (f *fleet) pod(name string) *cluster.Pod {
	return f.s.Pods[slices.IndexFunc(f.s.Pods, func(p *cluster.Pod) bool { return p.Name == name })]
}

// say writes a condition on a claim.
func (f *fleet) say(claim, kind, reason string, since time.Time) {
	c := f.claim(claim)
	c.Conditions = append(c.Conditions, cluster.Condition{Type: kind, Status: cluster.True, Reason: reason,
		Since: since})
}

// found is a search's proposal to take a node away whose pods go where it says.
func (f *fleet) found(node, to string) *Move {
	c := f.claim(node)
	m := Move{ID: MoveID(command.Underutilized, []string{ClaimIdentity(c)}), Reason: command.Underutilized,
		Claims: []string{node}, Before: c.Price}
	for _, p := range f.s.Pods {
		if p.Node == node {
			m.Evicted++
			m.Assigned = append(m.Assigned, schedule.Assignment{Pod: p, Host: to})
		}
	}
	if f.o.Proposal == nil {
		f.o.Proposal = &Proposal{}
	}
	f.o.Proposal.Moves = append(f.o.Proposal.Moves, m)
	return &f.o.Proposal.Moves[len(f.o.Proposal.Moves)-1]
}

// fenced has nodes go in a move that began a minute ago.
func (f *fleet) fenced(reason command.Reason, nodes ...string) string {
	var ids []string
	for _, name := range nodes {
		ids = append(ids, ClaimIdentity(f.claim(name)))
	}
	id := MoveID(reason, ids)
	for _, name := range nodes {
		f.claim(name).Move = id
		f.say(name, cluster.DisruptionReason, string(reason), f.now.Add(-time.Minute))
		f.host(name).Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	}
	return id
}

// drifted says of nodes that they have drifted.
func (f *fleet) drifted(names ...string) {
	for _, name := range names {
		f.claim(name).DriftedFrom = "AMIDrift"
		f.say(name, cluster.Drifted, "AMIDrift", f.now.Add(-time.Hour))
	}
}

// replaced adds a node that was made for a move.
func (f *fleet) replaced(move, name, kind string) *cluster.Claim {
	c := f.node(name, kind)
	c.Replaces, c.Created, c.LastPodEvent = move, f.now.Add(-50*time.Second), time.Time{}
	return c
}

// notUp has a node not be up yet.
func notUp(c *cluster.Claim) { c.Conditions = c.Conditions[:2] }

// carry takes the fleet's moves a step further and tells in short what becomes of them.
func (f *fleet) carry() string {
	r, _ := Execute(f.s.Seal(), f.set, f.o)
	return outcome(&r)
}

// outcome tells a result in short.
func outcome(r *Result) string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, c := range r.Commands {
		switch c := c.(type) {
		case command.Unfence:
			rest := ""
			if c.Rests > 0 {
				rest = ", rests"
			}
			say("%s: %s%s", c.Key(), c.BlockReason, rest)
		default:
			say("%s", c.Key())
		}
	}
	for i := range r.Begun {
		say("begin %s $%g", strings.Join(r.Begun[i].Claims, "+"), r.Begun[i].Before-r.Begun[i].After)
	}
	for i := range r.Replacements {
		say("want $%g", r.Replacements[i].Bin.Price)
	}
	for i := range r.DryRuns {
		say("would %s", strings.Join(r.DryRuns[i].Claims, "+"))
	}
	for i := range r.GivenUp {
		say("give up %s: %s", strings.Join(r.GivenUp[i].Claims, "+"), r.GivenUp[i].BlockReason)
	}
	for i := range r.NotBegun {
		say("pass %s: %s", strings.Join(r.NotBegun[i].Claims, "+"), r.NotBegun[i].BlockReason)
	}
	if r.PlanSoon {
		say("eager")
	}
	return strings.Join(out, "; ")
}
