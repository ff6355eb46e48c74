package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// scene is a pool with one node n, which the pod p runs on, a node of nobody with room, and the pod w, which waits. All
// has been quiet for long.
type scene struct {
	s     *cluster.Snapshot
	pool  *cluster.Pool
	claim *cluster.Claim
	node  *cluster.Node
	p, w  *cluster.Pod
}

func newScene() *scene {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	room := resource.Vector{resource.CPU: 4000, resource.Memory: 8 << 30, resource.Pods: 110}
	class := &cluster.PodClass{Key: "web", Terms: []require.Set{nil}, Requests: resource.Vector{resource.CPU: 1000,
		resource.Pods: 1}}
	x := &scene{
		pool: &cluster.Pool{Name: "default", UID: "pool", Generation: 3, Policy: cluster.WhenEmptyOrUnderutilized,
			Hash: "2", HashVersion: "v3",
			NodeClass: cluster.NodeClassState{Ready: true}, Budgets: []cluster.Budget{{Nodes: 100, Percent: true,
				Active: true}},
			Catalog: cluster.NewCatalog([]cluster.Type{{Name: "large", Capacity: room, Allocatable: room}},
				[]cluster.Offering{{Zone: "a", CapacityType: "on-demand", Price: 1, Available: true,
					Labels: cluster.LabelsOf(map[string]string{cluster.InstanceTypeLabel: "large",
						cluster.ZoneLabel:         "a",
						cluster.CapacityTypeLabel: "on-demand"})}})},
		claim: &cluster.Claim{Name: "c", UID: "u", Pool: "default", ProviderID: "cloud://c", NodeName: "n",
			Created: now.Add(-3 * time.Hour), Allocatable: room,
			LastPodEvent: now.Add(-time.Hour),
			Labels: cluster.LabelsOf(map[string]string{cluster.InstanceTypeLabel: "large", cluster.ZoneLabel: "a",
				cluster.CapacityTypeLabel: "on-demand"})},
		node: &cluster.Node{Name: "n", UID: "nu", ProviderID: "cloud://c", Ready: true, Ours: true, Allocatable: room},
		p: &cluster.Pod{UID: "p", Namespace: "shop", Name: "p", Class: class, Owner: "web", Node: "n", Ready: true,
			Phase: "Running"},
		w: &cluster.Pod{UID: "w", Namespace: "shop", Name: "w", Class: class, Owner: "web", Unschedulable: true,
			SchedulerSeen: true, Phase: "Pending"},
	}
	for _, kind := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
		x.claim.Conditions = append(x.claim.Conditions, cluster.Condition{Type: kind, Status: cluster.True,
			Since: now.Add(-2 * time.Hour)})
	}
	x.s = &cluster.Snapshot{Now: now, Names: &resource.Names{}, Pools: []*cluster.Pool{x.pool},
		Claims: []*cluster.Claim{x.claim}, Nodes: []*cluster.Node{x.node, {Name: "other", Ready: true,
			Allocatable: room}},
		Pods: []*cluster.Pod{x.p, x.w}, InFlight: map[string]bool{}, Retry: map[string]cluster.Retry{},
		Owners: map[string]cluster.Owner{"web": {UID: "web", Known: true}}}
	return x
}

// fenced has the node go in a move.
func (x *scene) fenced(reason command.Reason) {
	x.claim.Move = disrupt.MoveID(reason, []string{disrupt.ClaimIdentity(x.claim)})
	x.claim.Conditions = append(x.claim.Conditions, cluster.Condition{Type: cluster.DisruptionReason,
		Status: cluster.True, Reason: string(reason), Since: x.s.Now.Add(-time.Minute)})
	x.node.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
}

// ending has the node of a claim that is being deleted drained for a minute.
func (x *scene) ending() {
	x.claim.Deleting, x.claim.Finalized = x.s.Now.Add(-time.Minute), true
	x.node.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
}

func (x *scene) empty() { x.s.Pods = x.s.Pods[1:] }

func (x *scene) interrupt(deadline time.Duration) {
	x.claim.Interruption = cluster.Interruption{Kind: "spot"}
	if deadline > 0 {
		x.claim.Interruption.Deadline = x.s.Now.Add(deadline)
	}
}

// hasUnused has the nodes that were made for the owner of the pod w be of no use to it, so that the next may be made in
// a while.
func (x *scene) hasUnused(next time.Duration) {
	x.s.WorkloadTries = map[string]*cluster.WorkloadTries{"web": {Owner: "web", FailedTries: 2,
		NextTry: x.s.Now.Add(next),
		Failures: []cluster.UnusedNode{{Cause: cluster.Cause{Kind: cluster.CauseScheduler},
			Classes: []*cluster.PodClass{x.w.Class}}}}}
}

// Which commands of a plan are still carried out, by what has happened since the plan was made.
func TestWhatStillHolds(t *testing.T) {
	create := func(x *scene) command.Command {
		return command.CreateClaim{Name: "new", Pool: "default", PoolUID: "pool", Generation: 3,
			Pods: []*cluster.Pod{x.w}}
	}
	launch := func(x *scene) command.Command { return command.LaunchInstance{Claim: "c", UID: "u"} }
	register := func(x *scene) command.Command { return command.Register{Claim: "c", Node: "n"} }
	initialize := func(x *scene) command.Command { return command.Initialize{Claim: "c", Node: "n"} }
	open := func(x *scene) command.Command { return command.Open{Claim: "c", Node: "n"} }
	adopt := func(x *scene) command.Command { return command.Adopt{Claim: "c"} }
	fence := func(reason command.Reason, move string) func(*scene) command.Command {
		return func(x *scene) command.Command {
			return command.Fence{Claim: "c", UID: "u", Node: "n", Reason: reason, Move: move}
		}
	}
	end := func(reason command.Reason, party string) func(*scene) command.Command {
		return func(x *scene) command.Command {
			return command.DeleteClaim{Claim: "c", UID: "u", Node: "n", Reason: reason, Departure: party}
		}
	}
	unfence := func(x *scene) command.Command { return command.Unfence{Claim: "c", UID: "u", Node: "n"} }
	evict := func(x *scene) command.Command { return command.Evict{UID: "p", Node: "n"} }
	nominate := func(x *scene) command.Command { return command.Nominate{UID: "w", Node: "n"} }
	bind := func(x *scene) command.Command { return command.Bind{UID: "w", Node: "n"} }
	orphan := func(x *scene) command.Command { return command.Terminate{ProviderID: "cloud://x"} }
	leftover := func(x *scene) command.Command {
		return command.DeleteNode{Node: "n", UID: "nu", ProviderID: "cloud://x"}
	}
	instance := func(x *scene) command.Command {
		return command.Terminate{Claim: "c", UID: "u", Node: "n", ProviderID: "cloud://c"}
	}
	stampPool := func(x *scene) command.Command {
		return command.WritePoolHash{Pool: "default", UID: "pool", Hash: "2", Version: "v3"}
	}
	stampClaim := func(x *scene) command.Command {
		return command.WriteClaimHash{Claim: "c", UID: "u", Hash: "2", Version: "v3"}
	}

	same := func(x *scene) {}
	gone := func(x *scene) { x.s.Claims = nil }
	leaving := func(x *scene) { x.claim.Deleting = x.s.Now }
	namesake := func(x *scene) { x.claim.UID = "other" }
	noNode := func(x *scene) { x.s.Nodes, x.s.Pods = x.s.Nodes[1:], x.s.Pods[1:] }
	u, d, i := command.Underutilized, command.Drifted, command.Interrupted
	cases := []struct {
		name    string
		command func(x *scene) command.Command
		change  func(x *scene)
		want    bool
	}{
		{"create", create, same, true},
		{"create: it is being done", create, func(x *scene) { x.s.InFlight["create/new"] = true }, false},
		{"create: the claim is there", create, func(x *scene) { x.claim.Name = "new" }, false},
		{"create: the pool is gone", create, func(x *scene) { x.s.Pools = nil }, false},
		{"create: the pool is another", create, func(x *scene) { x.pool.UID = "other" }, false},
		{"create: the pool has changed", create, func(x *scene) { x.pool.Generation = 4 }, false},
		{"create: the pool can't be used", create, func(x *scene) { x.pool.NodeClass.Ready = false }, false},
		{"create: the pod is gone", create, func(x *scene) { x.s.Pods = x.s.Pods[:1] }, false},
		{"create: the pod has a node", create, func(x *scene) {
			x.s.Pods[1] = &cluster.Pod{UID: "w", Node: "n", Class: x.w.Class, Finished: true}
		}, false},
		{"create: the limit is used up", create, func(x *scene) {
			x.pool.Limits = cluster.Limits{HasNodes: true, Nodes: 1}
		}, false},
		{"create: the limit leaves one", create, func(x *scene) {
			x.pool.Limits = cluster.Limits{HasNodes: true, Nodes: 2}
		}, true},
		{"create for a static pool", func(x *scene) command.Command {
			return command.CreateClaim{Name: "new", Pool: "default", PoolUID: "pool", Generation: 3}
		}, func(x *scene) { x.pool.Static, x.pool.NodeClass.Ready = true, false }, true},
		{"create for a static pool and a pod", create, func(x *scene) {
			x.pool.Static, x.pool.NodeClass.Ready = true, false
		}, false},
		{"create: kube-scheduler has yet to look at the pod", create, func(x *scene) {
			x.w.Unschedulable, x.w.SchedulerSeen = false, false
		}, true},
		{"create: the pod's nodes are unused", create, func(x *scene) { x.hasUnused(time.Minute) }, false},
		{"create: the pod's nodes are unused, and it is time for another try", create, func(x *scene) {
			x.hasUnused(0)
		}, true},
		{"create for nobody", func(x *scene) command.Command {
			return command.CreateClaim{Name: "new", Pool: "default", PoolUID: "pool", Generation: 3}
		}, same, false},

		{"launch", launch, func(x *scene) { x.claim.Conditions = nil }, true},
		{"launch: it is launched", launch, same, false},
		{"launch: the claim is gone", launch, gone, false},
		{"launch: the claim goes", launch, func(x *scene) { x.claim.Conditions = nil; leaving(x) }, false},
		{"launch: the claim is another", launch, func(x *scene) { x.claim.Conditions = nil; namesake(x) }, false},

		{"register", register, same, true}, {"register: the claim goes", register, leaving, false},
		{"register: no node", register, noNode, false},
		{"initialize", initialize, same, true}, {"initialize: the claim goes", initialize, leaving, false},
		{"initialize: no node", initialize, noNode, false},
		{"open", open, func(x *scene) {
			x.node.KeptFor = "m"
		}, true}, {"open: it is open", open, same, false}, {"open: no node", open, noNode, false},
		{"adopt", adopt, same, true}, {"adopt: the claim goes", adopt, leaving, false},
		{"unfence", unfence, same, true}, {"unfence: the claim goes", unfence, leaving, false},
		{"unfence: no node", unfence, noNode, false},

		{"fence what a user deletes", fence(command.Requested, ""), same, true},
		{"fence what a user deletes: no node", fence(command.Requested, ""), noNode, false},
		{"fence an empty node", fence(command.Empty, ""), (*scene).empty, true},
		{"fence an empty node: a pod has come", fence(command.Empty, ""), same, false},
		{"fence an empty node: the claim goes", fence(command.Empty, ""), func(x *scene) {
			x.empty()
			leaving(x)
		}, false},
		{"fence for a move", fence(u, "underutilized-m"), same, true},
		{"fence for a move: a pod says no", fence(u, "underutilized-m"), func(x *scene) {
			x.p.DoNotDisrupt = true
		}, false},
		{"fence for a move: the claim goes", fence(u, "underutilized-m"), leaving, false},
		{"fence for a move: the claim is another", fence(u, "underutilized-m"), namesake, false},
		{"fence for a move: the claim is in another move", fence(u, "underutilized-m"), func(x *scene) {
			x.claim.Move = "drifted-x"
		}, false},
		{"fence for a move: an empty node, of another claim", fence(u, "underutilized-m"), func(x *scene) {
			x.empty()
			namesake(x)
		}, false},
		{"fence for a move: the pool keeps its nodes", fence(u, "underutilized-m"), func(x *scene) {
			x.pool.ConsolidateAfter.Never = true
		}, false},
		{"fence for a move: the node is another machine", fence(u, "underutilized-m"), func(x *scene) {
			x.node.ProviderID, x.claim.NodeName = "cloud://o", ""
		}, false},
		{"fence once more", fence(u, "underutilized-m"), func(x *scene) {
			x.claim.Move, x.p.DoNotDisrupt = "underutilized-m", true
		}, true},
		{"fence once more: the node is another machine", fence(u, "underutilized-m"), func(x *scene) {
			x.claim.Move, x.node.ProviderID, x.claim.NodeName = "underutilized-m", "cloud://o", ""
		}, false},
		{"fence an interrupted node: it is not interrupted any more", fence(i, "interrupted-m"), same, false},
		{"fence an interrupted node, with a deadline", fence(i, "interrupted-m"), func(x *scene) {
			x.interrupt(time.Minute)
			x.p.DoNotDisrupt = true
		}, true},
		{"fence an interrupted node, without one: a pod says no", fence(i, "interrupted-m"), func(x *scene) {
			x.interrupt(0)
			x.p.DoNotDisrupt = true
		}, false},
		{"fence an interrupted node, without one", fence(i, "interrupted-m"), func(x *scene) { x.interrupt(0) }, true},

		{"delete what a user deletes", end(command.Requested, ""), same, true},
		{"delete: the claim is gone", end(command.Requested, ""), gone, false},
		{"delete: the claim goes", end(command.Requested, ""), leaving, false},
		{"delete: the claim is another", end(command.Requested, ""), namesake, false},
		{"delete an empty node", end(command.Empty, ""), (*scene).empty, true},
		{"delete an empty node: a pod has come", end(command.Empty, ""), same, false},
		{"delete an empty claim without a node", end(command.Empty, ""), noNode, false},
		{"delete a replacement without a node", end(command.Empty, ""), func(x *scene) {
			noNode(x)
			x.claim.Replaces, x.claim.Conditions = "drifted-x", x.claim.Conditions[:1]
		}, true},
		{"delete a replacement without a node that has joined before", end(command.Empty, ""), func(x *scene) {
			noNode(x)
			x.claim.Replaces, x.claim.Conditions = "drifted-x", x.claim.Conditions[:2]
		}, false},
		{"delete a replacement without a node: its move goes on", end(command.Empty, ""), func(x *scene) {
			noNode(x)
			x.claim.Replaces, x.claim.Conditions = "drifted-x", x.claim.Conditions[:1]
			x.s.Claims = append(x.s.Claims, &cluster.Claim{Name: "d", Move: "drifted-x"})
		}, false},
		{"delete an empty claim that has not joined", end(command.Empty, ""), func(x *scene) {
			noNode(x)
			x.claim.Conditions = x.claim.Conditions[:1]
		}, false},
		{"delete a replacement that pods have come to before it was up", end(command.Empty, ""), func(x *scene) {
			x.claim.Replaces, x.claim.Conditions = "drifted-x", x.claim.Conditions[:1]
		}, false},
		{"delete an empty replacement that is up: its move goes on", end(command.Empty, ""), func(x *scene) {
			x.empty()
			x.claim.Replaces = "drifted-x"
			x.s.Claims = append(x.s.Claims, &cluster.Claim{Name: "d", Move: "drifted-x"})
		}, true},
		{"delete an empty replacement that is coming up: its move goes on", end(command.Empty, ""), func(x *scene) {
			x.empty()
			x.claim.Replaces, x.claim.Conditions = "drifted-x", x.claim.Conditions[:2]
			x.s.Claims = append(x.s.Claims, &cluster.Claim{Name: "d", Move: "drifted-x"})
		}, false},
		{"delete a node in a move: the pool keeps its nodes", end(d, "m"), func(x *scene) {
			x.fenced(d)
			x.claim.DoNotDisrupt = true
		}, false},
		{"delete a node in a move", end(d, "m"), func(x *scene) { x.fenced(d) }, true},
		{"delete a node in a move: it was opened", end(d, "m"), same, false},
		{"delete a node in a move: the fence is gone", end(d, "m"), func(x *scene) {
			x.fenced(d)
			x.node.Taints = nil
		}, false},
		{"delete a node in a move: the node is gone", end(d, "m"), func(x *scene) { x.fenced(d); noNode(x) }, false},
		{"delete a node in a move: a pod says no", end(d, "m"), func(x *scene) {
			x.fenced(d)
			x.p.DoNotDisrupt = true
		}, false},
		{"delete a node in a move: it is in another", end(d, "m"), func(x *scene) { x.fenced(u) }, false},
		{"delete an expired node", end(command.Expired, ""), func(x *scene) {
			x.claim.ExpireAfter.For = 3 * time.Hour
		}, true},
		{"delete an expired node: it is not", end(command.Expired, ""), func(x *scene) {
			x.claim.ExpireAfter.For = 4 * time.Hour
		}, false},
		{"delete an expired node: it never does", end(command.Expired, ""), func(x *scene) {
			x.claim.ExpireAfter = cluster.NillableDuration{Never: true}
		}, false},
		{"delete an interrupted node whose time is up", end(i, ""), func(x *scene) {
			x.interrupt(10 * time.Second)
		}, true},
		{"delete an interrupted node whose time is up: there is more", end(i, ""), func(x *scene) {
			x.interrupt(time.Hour)
		}, false},
		{"delete an interrupted node whose pods have room", end(i, "m"), func(x *scene) {
			x.interrupt(time.Hour)
			x.empty()
		}, true},
		{"delete an interrupted node: it is not interrupted any more", end(i, "m"), (*scene).empty, false},
		{"delete an advised node that is fenced", end(i, "m"), func(x *scene) {
			x.interrupt(0)
			x.empty()
			x.fenced(i)
		}, true},
		{"delete a fenced node: it is not interrupted any more", end(i, "m"), func(x *scene) {
			x.empty()
			x.fenced(i)
		}, false},
		{"delete an interrupted node: the pool is gone", end(i, "m"), func(x *scene) {
			x.interrupt(time.Hour)
			x.empty()
			x.s.Pools = nil
		}, true},
		{"delete an advised node: the fence is gone", end(i, "m"), func(x *scene) { x.interrupt(0); x.empty() }, false},
		{"delete a claim whose node is missing", end(command.NodeMissing, ""), noNode, true},
		{"delete a claim whose node is missing: it is there", end(command.NodeMissing, ""), same, false},
		{"delete a claim whose instance is missing", end(command.InstanceMissing, ""), func(x *scene) {
			x.node.Ready = false
		}, true},
		{"delete a claim whose instance is missing, and the node", end(command.InstanceMissing, ""), noNode, true},
		{"delete a claim whose instance is missing: the node is ready", end(command.InstanceMissing, ""), same, false},

		{"evict", evict, same, true},
		{"evict: the pod is another", evict, func(x *scene) { x.p.UID = "o" }, false},
		{"evict: the pod is elsewhere", evict, func(x *scene) { x.p.Node = "m" }, false},
		{"nominate", nominate, same, true},
		{"nominate: the pod has a node", nominate, func(x *scene) { x.w.Node = "m" }, false},
		{"nominate: the pod goes", nominate, func(x *scene) { x.w.Deleting = x.s.Now }, false},
		{"nominate: the pod is done", nominate, func(x *scene) { x.w.Finished = true }, false},
		{"nominate: no node", nominate, noNode, false},
		{"nominate: the node goes", nominate, func(x *scene) { x.node.Deleting = x.s.Now }, false},
		{"nominate: the pod is gone", nominate, func(x *scene) { x.s.Pods = x.s.Pods[:1] }, false},
		{"take a nomination back", func(x *scene) command.Command { return command.Nominate{UID: "w"} }, noNode, true},
		{"bind", bind, func(x *scene) { x.node.Ready = false }, true},
		{"bind: the node is ready", bind, same, false},
		{"bind: the pod has a node", bind, func(x *scene) { x.node.Ready, x.w.Node = false, "m" }, false},
		{"bind: no room", bind, func(x *scene) { x.node.Ready, x.node.Allocatable[resource.CPU] = false, 1999 }, false},
		{"bind: room for one pod", bind, func(x *scene) {
			x.node.Ready, x.node.Allocatable[resource.Pods] = false, 1
		}, false},
		{"bind: no node", bind, noNode, false},
		{"bind: just enough room", bind, func(x *scene) {
			x.node.Ready, x.node.Allocatable[resource.CPU] = false, 2000
		}, true},
		{"bind: the kubelet has not spoken yet", bind, func(x *scene) {
			x.node.Ready, x.node.Allocatable = false, resource.Vector{}
		}, true},

		{"delete a node that nobody claims", leftover, same, true},
		{"delete a node that nobody claims: it goes", leftover, func(x *scene) { x.node.Deleting = x.s.Now }, false},
		{"delete a node that nobody claims: it is another", leftover, func(x *scene) { x.node.UID = "o" }, false},
		{"delete a node that nobody claims: no node", leftover, noNode, false},
		{"delete a node that nobody claims: somebody does", leftover, func(x *scene) {
			x.claim.ProviderID = "cloud://x"
		}, false},
		{"end an orphan", orphan, same, true},
		{"end an orphan: somebody claims it", orphan, func(x *scene) { x.claim.ProviderID = "cloud://x" }, false},
		{"end an instance", instance, func(x *scene) { x.empty(); x.ending() }, true},
		{"end an instance: a pod has come", instance, (*scene).ending, false},
		{"end an instance: its claim is gone", instance, gone, true},
		{"end an instance: its claim is another", instance, namesake, true},
		{"release", func(x *scene) command.Command { return command.Release{Claim: "c", UID: "u"} }, gone, true},
		{"write a pool", func(x *scene) command.Command { return command.SetPool{Pool: "default"} }, same, true},
		{"write a pool: it is gone", func(x *scene) command.Command {
			return command.SetPool{Pool: "default"}
		}, func(x *scene) { x.s.Pools = nil }, false},
		{"write a claim", func(x *scene) command.Command { return command.SetClaim{Claim: "c"} }, leaving, true},
		{"write a claim: it is gone", func(x *scene) command.Command {
			return command.SetClaim{Claim: "c"}
		}, gone, false},
		{"stamp a pool", stampPool, same, true},
		{"stamp a pool: it is another", stampPool, func(x *scene) { x.pool.UID = "o" }, false},
		{"stamp a pool: its template has changed", stampPool, func(x *scene) { x.pool.Hash = "3" }, false},
		{"stamp a pool: hashes are made otherwise", stampPool, func(x *scene) { x.pool.HashVersion = "v4" }, false},
		{"stamp a pool: it is gone", stampPool, func(x *scene) { x.s.Pools = nil }, false},
		{"stamp a claim", stampClaim, same, true},
		{"stamp a claim: it has a stamp", stampClaim, func(x *scene) {
			x.claim.Hash, x.claim.HashVersion = "1", "v3"
		}, false},
		{"stamp a claim: it has an old stamp", stampClaim, func(x *scene) {
			x.claim.Hash, x.claim.HashVersion = "1", "v2"
		}, true},
		{"stamp a claim: it has a version and no stamp", stampClaim, func(x *scene) {
			x.claim.HashVersion = "v3"
		}, true},
		{"stamp a claim: it is another", stampClaim, namesake, false},
		{"stamp a claim: it goes", stampClaim, leaving, false},
	}
	for _, c := range cases {
		x := newScene()
		cmd := c.command(x)
		c.change(x)
		x.s.Seal()
		before := plan.Plan{Commands: []command.Command{cmd}}
		after := plan.Check(before, x.s)
		if got := len(after.Commands) == 1; got != c.want {
			t.Errorf("%s: kept %t, want %t", c.name, got, c.want)
		}
		if len(before.Commands) != 1 {
			t.Errorf("%s: the plan itself was changed", c.name)
		}
	}
}

// Commands that bind pods share the room of a node, and those that make claims the limits of a pool.
func TestCommandsShareWhatIsLeft(t *testing.T) {
	x := newScene()
	x.node.Ready, x.pool.Limits = false, cluster.Limits{HasNodes: true, Nodes: 2}
	var list []command.Command
	for i := range 4 {
		w := *x.w
		w.UID = fmt.Sprint("w", i)
		x.s.Pods = append(x.s.Pods, &w)
		list = append(list, command.Bind{UID: w.UID, Node: "n"},
			command.CreateClaim{Name: fmt.Sprint("new", i), Pool: "default", PoolUID: "pool", Generation: 3,
				Pods: []*cluster.Pod{&w}})
	}
	p := plan.Check(plan.Plan{Commands: list}, x.s.Seal())
	var keys []string
	for _, c := range p.Commands {
		keys = append(keys, c.Key())
	}
	if want := []string{"bind/w0", "create/new0", "bind/w1", "bind/w2"}; !slices.Equal(keys, want) {
		t.Errorf("%v, want %v", keys, want)
	}
}
