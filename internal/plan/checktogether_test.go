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
	"github.com/tenon-sh/tenon/internal/resource"
)

// second is another node of the pool, m, with a claim d and nobody on it.
func (x *scene) second() *cluster.Claim {
	d, m := *x.claim, *x.node
	d.Name, d.UID, d.ProviderID, d.NodeName, d.Conditions = "d", "du", "cloud://d", "m",
		slices.Clone(x.claim.Conditions)
	m.Name, m.UID, m.ProviderID = "m", "mu", "cloud://d"
	x.s.Claims, x.s.Nodes = append(x.s.Claims, &d), append(x.s.Nodes, &m)
	return &d
}

// keys are what a plan still does.
func keys(p plan.Plan) []string {
	var out []string
	for _, c := range p.Commands {
		out = append(out, c.Key())
	}
	return out
}

// The node of a claim was beyond hope when the plan was made. Whether it is still replaced depends on it, its pods and
// its fellows.
func TestSickNodesThatStillGo(t *testing.T) {
	fence := func(c *cluster.Claim) command.Command {
		return command.Fence{Claim: c.Name, UID: c.UID, Node: "n", Reason: command.Unhealthy, Move: "unhealthy-x"}
	}
	end := func(c *cluster.Claim) command.Command {
		return command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: "n", Reason: command.Unhealthy,
			Departure: "unhealthy-x"}
	}
	same := func(*scene, *disrupt.RepairSettings) {}
	recovered := func(x *scene, _ *disrupt.RepairSettings) { x.node.Conditions[0].Status = "True" }
	objects := func(x *scene, _ *disrupt.RepairSettings) { x.p.DoNotDisrupt = true }
	for _, x := range []struct {
		name    string
		command func(*cluster.Claim) command.Command
		change  func(*scene, *disrupt.RepairSettings)
		want    bool
	}{
		{"fence", fence, same, true},
		{"fence: it has recovered", fence, recovered, false},
		{"fence: it is sick for a shorter time", fence, func(x *scene, _ *disrupt.RepairSettings) {
			x.node.Conditions[0].Since = x.s.Now.Add(-9 * time.Minute)
		}, false},
		{"fence: the claim is gone", fence, func(x *scene, _ *disrupt.RepairSettings) { x.s.Claims = nil }, false},
		{"fence: people want it left alone", fence, func(x *scene, _ *disrupt.RepairSettings) {
			x.claim.DoNotRepair = true
		}, false},
		{"fence: too many are sick", fence, func(_ *scene, set *disrupt.RepairSettings) {
			set.MaxUnhealthy = 0
		}, false},
		{"fence: it is in another move", fence, func(x *scene, _ *disrupt.RepairSettings) {
			x.claim.Move = "drifted-x"
		}, false},
		{"fence: a pod says no, for ever", fence, objects, false},
		{"fence: a pod says no until the node's time is up", fence, func(x *scene, set *disrupt.RepairSettings) {
			objects(x, set)
			x.claim.HasTerminationGrace, x.claim.TerminationGrace = true, time.Hour
		}, true},
		{"fence: a pod says no until the policy's time is up", fence, func(x *scene, set *disrupt.RepairSettings) {
			objects(x, set)
			set.Policies[0].HasGrace = true
		}, true},
		{"fence: it rests", fence, func(x *scene, _ *disrupt.RepairSettings) {
			x.claim.RestUntil = x.s.Now.Add(time.Minute)
		}, true},
		{"delete", end, func(x *scene, _ *disrupt.RepairSettings) { x.fenced(command.Unhealthy) }, true},
		{"delete: it has recovered", end, func(x *scene, set *disrupt.RepairSettings) {
			x.fenced(command.Unhealthy)
			recovered(x, set)
		}, false},
		{"delete: a pod says no, for ever", end, func(x *scene, set *disrupt.RepairSettings) {
			x.fenced(command.Unhealthy)
			objects(x, set)
		}, false},
		{"delete: a pod says no until the policy's time is up", end, func(x *scene, set *disrupt.RepairSettings) {
			x.fenced(command.Unhealthy)
			objects(x, set)
			set.Policies[0].HasGrace = true
		}, true},
		{"delete: the pods have no room elsewhere", end, func(x *scene, _ *disrupt.RepairSettings) {
			x.fenced(command.Unhealthy)
			x.s.Nodes = x.s.Nodes[:1]
		}, true},
		{"delete: the pool is static, and nothing is in its place", end, func(x *scene, _ *disrupt.RepairSettings) {
			x.fenced(command.Unhealthy)
			x.pool.Static = true
		}, false},
	} {
		s := newScene()
		s.node.Ready = false
		s.node.Conditions = []cluster.NodeCondition{{Type: "Ready", Status: "False",
			Since: s.s.Now.Add(-10 * time.Minute)}}
		set := disrupt.RepairSettings{Enabled: true, MaxUnhealthy: 20, Policies: []disrupt.RepairPolicy{{Type: "Ready",
			Status: "False", Toleration: 10 * time.Minute}}}
		c := x.command(s.claim)
		x.change(s, &set)
		policy := defaultPolicy()
		policy.Repair, policy.StaticCapacity = set, true
		p := plan.Make((&cluster.Snapshot{Now: s.s.Now, Names: &resource.Names{}}).Seal(), policy, nil, nil)
		p.Commands = []command.Command{c}
		if got := len(plan.Check(p, s.s.Seal()).Commands) == 1; got != x.want {
			t.Errorf("%s: kept %t, want %t", x.name, got, x.want)
		}
	}
}

// A move begins as a whole or not at all: if one of its nodes may not be fenced, the others are not, and nothing is
// bought for it. The plan then tells of no move, and the plan that was checked still does.
func TestMoveOfWhichOneNodeStays(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(x *scene)
		want   []string
		begun  int
	}{
		{"both may go", func(*scene) {}, []string{"fence/n", "fence/m", "create/new"}, 1},
		{"a pod of one says no", func(x *scene) { x.p.DoNotDisrupt = true }, nil, 0},
		{"one is being fenced", func(x *scene) { x.s.InFlight["fence/n"] = true }, nil, 0},
	} {
		s := newScene()
		d := s.second()
		move := disrupt.MoveID(command.Underutilized, []string{"a", "b"})
		p := plan.Plan{Begun: []disrupt.Move{{ID: move}}, Commands: []command.Command{
			command.Fence{Claim: "c", UID: "u", Node: "n", Reason: command.Underutilized, Move: move},
			command.Fence{Claim: d.Name, UID: d.UID, Node: "m", Reason: command.Underutilized, Move: move},
			command.CreateClaim{Name: "new", Pool: "default", PoolUID: "pool", Generation: 3, Pods: []*cluster.Pod{s.p},
				Replaces: move},
		}}
		x.change(s)
		after := plan.Check(p, s.s.Seal())
		if !slices.Equal(keys(after), x.want) || len(after.Begun) != x.begun {
			t.Errorf("%s: %v, and %d moves begin; want %v and %d", x.name, keys(after), len(after.Begun),
				x.want, x.begun)
		}
		if len(p.Begun) != 1 || p.Begun[0].ID != move {
			t.Errorf("%s: the plan itself was changed: %+v", x.name, p.Begun)
		}
	}
}

// What was to take the place of a node is not bought if no node of the move waits for it any more.
func TestReplacementThatNobodyWaitsFor(t *testing.T) {
	for awaited, want := range map[bool][]string{true: {"create/new"}, false: nil} {
		x := newScene()
		if awaited {
			x.fenced(command.Drifted)
		}
		move := disrupt.MoveID(command.Drifted, []string{disrupt.ClaimIdentity(x.claim)})
		p := plan.Plan{Commands: []command.Command{command.CreateClaim{Name: "new", Pool: "default", PoolUID: "pool",
			Generation: 3, Pods: []*cluster.Pod{x.p}, Replaces: move}}}
		if got := keys(plan.Check(p, x.s.Seal())); !slices.Equal(got, want) {
			t.Errorf("awaited %t: %v, want %v", awaited, got, want)
		}
	}
}

// Nodes that go together for each other's sake go all or none. One that is gone already keeps nobody; one that may not
// go keeps all.
func TestDeparturesOfWhichOneNodeStays(t *testing.T) {
	both := []string{"delete/c", "delete/d"}
	for _, x := range []struct {
		name   string
		change func(x *scene, d *cluster.Claim)
		want   []string
	}{
		{"both may go", func(*scene, *cluster.Claim) {}, both},
		{"one has been opened", func(_ *scene, d *cluster.Claim) { d.Move = "" }, nil},
		{"one goes already", func(x *scene, d *cluster.Claim) { d.Deleting = x.s.Now }, []string{"delete/c"}},
		{"one is gone", func(x *scene, _ *cluster.Claim) { x.s.Claims = x.s.Claims[:1] }, []string{"delete/c"}},
	} {
		s := newScene()
		s.fenced(command.Drifted)
		d := s.second()
		p := plan.Plan{}
		for _, c := range []*cluster.Claim{s.claim, d} {
			p.Commands = append(p.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: c.NodeName,
				Reason: command.Drifted, Departure: "p"})
		}
		x.change(s, d)
		if got := keys(plan.Check(p, s.s.Seal())); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// Budgets are asked again: a window may have opened since the plan was made, or nodes may have gone of which the budget
// is a percentage. Whoever comes first in the plan goes first.
func TestBudgetsAreAskedAgain(t *testing.T) {
	one, both := []string{"delete/c"}, []string{"delete/c", "delete/d"}
	percent := func(x *scene, others int) {
		x.pool.Budgets = []cluster.Budget{{Nodes: 10, Percent: true, Active: true}}
		for i := range others {
			other := *x.claim
			other.Name, other.UID, other.ProviderID, other.NodeName, other.Move = fmt.Sprint("up", i),
				fmt.Sprint("up", i), fmt.Sprint("cloud://up", i), fmt.Sprint("up", i), ""
			x.s.Claims = append(x.s.Claims, &other)
			x.s.Nodes = append(x.s.Nodes, &cluster.Node{Name: other.NodeName, UID: other.UID,
				ProviderID: other.ProviderID, Ready: true, Ours: true, Allocatable: x.node.Allocatable})
		}
	}
	for _, x := range []struct {
		name       string
		reason     command.Reason
		departures [2]string
		change     func(x *scene, d *cluster.Claim)
		want       []string
	}{
		{"there is enough", command.Drifted, [2]string{"p", "q"}, func(*scene, *cluster.Claim) {}, both},
		{"eleven nodes", command.Drifted, [2]string{"p", "q"}, func(x *scene, _ *cluster.Claim) {
			percent(x, 9)
		}, both},
		{"ten nodes", command.Drifted, [2]string{"p", "q"}, func(x *scene, _ *cluster.Claim) { percent(x, 8) }, one},
		{"ten nodes, and they go together", command.Drifted, [2]string{"p", "p"}, func(x *scene, _ *cluster.Claim) {
			percent(x, 8)
		}, nil},
		{"ten nodes, and one is on its way out", command.Drifted, [2]string{"p", "q"},
			func(x *scene, d *cluster.Claim) {
				percent(x, 8)
				d.Deleting = x.s.Now
			}, nil},
		{"ten nodes, and one is being deleted", command.Drifted, [2]string{"p", "q"}, func(x *scene, _ *cluster.Claim) {
			percent(x, 8)
			x.s.InFlight["delete/d"] = true
		}, nil},
		{"a window has opened", command.Drifted, [2]string{"p", "q"}, func(x *scene, _ *cluster.Claim) {
			x.pool.Budgets = append(x.pool.Budgets, cluster.Budget{Nodes: 0, Active: true})
		}, nil},
		{"a window has opened for other reasons", command.Drifted, [2]string{"p", "q"},
			func(x *scene, _ *cluster.Claim) {
				x.pool.Budgets = append(x.pool.Budgets, cluster.Budget{Nodes: 0, Active: true,
					Reasons: []string{"Empty"}})
			}, both},
		{"a window has opened, and they go before their time", command.Expired, [2]string{"p", "q"},
			func(x *scene, _ *cluster.Claim) {
				x.pool.Budgets = append(x.pool.Budgets, cluster.Budget{Nodes: 0, Active: true})
			}, nil},
		{"a window has opened, and the time of one is up", command.Expired, [2]string{"p", "q"},
			func(x *scene, _ *cluster.Claim) {
				x.pool.Budgets = append(x.pool.Budgets, cluster.Budget{Nodes: 0, Active: true})
				x.claim.ExpireAfter.For = time.Minute
			}, one},
		{"idle nodes", command.Empty, [2]string{}, func(x *scene, _ *cluster.Claim) { x.empty() }, both},
		{"idle nodes, of ten", command.Empty, [2]string{}, func(x *scene, _ *cluster.Claim) {
			x.empty()
			percent(x, 8)
		}, one},
	} {
		s := newScene()
		s.claim.ExpireAfter.For = 1000 * time.Hour
		d := s.second()
		s.fenced(x.reason)
		d.Conditions, s.s.Nodes[len(s.s.Nodes)-1].Taints = s.claim.Conditions, s.node.Taints
		d.ExpireAfter, d.Move = s.claim.ExpireAfter, disrupt.MoveID(x.reason, []string{"d"})
		if x.reason == command.Empty {
			s.claim.Move, d.Move = "", ""
		}
		p := plan.Plan{}
		for i, c := range []*cluster.Claim{s.claim, d} {
			p.Commands = append(p.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: c.NodeName,
				Reason: x.reason, Departure: x.departures[i]})
		}
		x.change(s, d)
		if got := keys(plan.Check(p, s.s.Seal())); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// Whether the pods of nodes that go still have room is asked again if pods or nodes have changed since, or if nobody
// knows that. Room was taken in all of these.
func TestRoomIsAskedForAgain(t *testing.T) {
	for _, x := range []struct {
		name                     string
		demand, supply           uint64
		demandAfter, supplyAfter uint64
		want                     []string
	}{
		{"nothing has changed", 3, 4, 3, 4, []string{"delete/c"}},
		{"other pods", 3, 4, 5, 4, nil},
		{"other nodes", 3, 4, 3, 5, nil},
		{"nobody knows about pods", 0, 4, 0, 4, nil},
		{"nobody knows about nodes", 3, 0, 3, 0, nil},
		{"the first pods and nodes", 1, 1, 1, 1, []string{"delete/c"}},
	} {
		s := newScene()
		s.fenced(command.Drifted)
		s.s.Nodes = s.s.Nodes[:1]
		s.s.DemandRev, s.s.SupplyRev = x.demandAfter, x.supplyAfter
		p := plan.Make((&cluster.Snapshot{Now: s.s.Now, Names: &resource.Names{}, DemandRev: x.demand,
			SupplyRev: x.supply}).Seal(), defaultPolicy(), nil, nil)
		p.Commands = []command.Command{command.DeleteClaim{Claim: "c", UID: "u", Node: "n", Reason: command.Drifted,
			Departure: "p"}}
		if got := keys(plan.Check(p, s.s.Seal())); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// Of an owner whose nodes are unused one plan makes one more try, however many claims it asks for; another owner is
// free.
func TestOnePlanMakesOneTry(t *testing.T) {
	x := newScene()
	x.hasUnused(0)
	var list []command.Command
	for _, uid := range []string{"w1", "w2", "z"} {
		w := *x.w
		w.UID, w.Owner = uid, map[bool]string{true: "free", false: "web"}[uid == "z"]
		x.s.Pods = append(x.s.Pods, &w)
		list = append(list, command.CreateClaim{Name: "for-" + uid, Pool: "default", PoolUID: "pool", Generation: 3,
			Pods: []*cluster.Pod{&w}})
	}
	if got, want := keys(plan.Check(plan.Plan{Commands: list}, x.s.Seal())), []string{"create/for-w1",
		"create/for-z"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A node of a static pool goes for the one that was made in its place. If that is gone or no longer up when the plan is
// checked, the node stays until there is another. Where static pools are not served, its pods need room like all
// others.
func TestNodesOfStaticPoolsGoForTheirReplacements(t *testing.T) {
	for _, x := range []struct {
		name   string
		reason command.Reason
		change func(x *scene, d *cluster.Claim)
		want   bool
	}{
		{"interrupted, and it is up", command.Interrupted, func(*scene, *cluster.Claim) {}, true},
		{"interrupted, and it has no room for the pods", command.Interrupted, func(x *scene, _ *cluster.Claim) {
			x.s.Nodes[2].Allocatable = resource.Vector{}
		}, true},
		{"interrupted, and it is gone", command.Interrupted, func(x *scene, _ *cluster.Claim) {
			x.s.Claims, x.s.Nodes = x.s.Claims[:1], x.s.Nodes[:2]
		}, false},
		{"interrupted, and it goes", command.Interrupted, func(x *scene, d *cluster.Claim) {
			d.Deleting = x.s.Now
		}, false},
		{"interrupted, and it is not up", command.Interrupted, func(_ *scene, d *cluster.Claim) {
			d.Conditions = d.Conditions[:2]
		}, false},
		{"interrupted, and it was made for another move", command.Interrupted, func(_ *scene, d *cluster.Claim) {
			d.Replaces = "interrupted-other"
		}, false},
		{"interrupted, and it was made for an earlier try", command.Interrupted, func(x *scene, d *cluster.Claim) {
			d.Created = x.s.Now.Add(-time.Hour)
		}, false},
		{"drifted, and it is up", command.Drifted, func(*scene, *cluster.Claim) {}, true},
		{"drifted, and it is gone", command.Drifted, func(x *scene, _ *cluster.Claim) {
			x.s.Claims, x.s.Nodes = x.s.Claims[:1], x.s.Nodes[:2]
		}, false},
	} {
		s := newScene()
		s.pool.Static = true
		d := s.second()
		s.s.Nodes[1].Allocatable = resource.Vector{}
		s.fenced(x.reason)
		d.Created, d.Replaces = s.s.Now.Add(-30*time.Second), s.claim.Move
		if x.reason == command.Interrupted {
			s.interrupt(2 * time.Minute)
		}
		x.change(s, d)
		if got := s.goesFor(s.claim.Move, x.reason, true); got != x.want {
			t.Errorf("%s: kept %t, want %t", x.name, got, x.want)
		}
	}
	for _, room := range []bool{true, false} {
		s := newScene()
		s.pool.Static, s.node.Allocatable = true, resource.Vector{}
		s.fenced(command.Interrupted)
		s.interrupt(2 * time.Minute)
		if !room {
			s.s.Nodes[1].Allocatable = resource.Vector{}
		}
		if got := s.goesFor(s.claim.Move, command.Interrupted, false); got != room {
			t.Errorf("static pools are not served, and there is room %t: kept %t", room, got)
		}
	}
}

// goesFor reports whether the claim is still deleted if the plan lets it go in the departure.
func (x *scene) goesFor(departure string, reason command.Reason, static bool) bool {
	policy := defaultPolicy()
	policy.StaticCapacity = static
	p := plan.Make((&cluster.Snapshot{Now: x.s.Now, Names: &resource.Names{}}).Seal(), policy, nil, nil)
	p.Commands = []command.Command{command.DeleteClaim{Claim: "c", UID: "u", Node: "n", Reason: reason,
		Departure: departure}}
	return len(plan.Check(p, x.s.Seal()).Commands) == 1
}
