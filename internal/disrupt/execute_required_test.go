package disrupt

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What becomes of a move to save money that is under way: n1 is fenced, and its pod has room on n2 and n3.
func TestWhatBecomesOfASavingMove(t *testing.T) {
	goes := "delete/n1"
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"nothing has changed", func(f *fleet) {}, goes},
		{"the node is interrupted", func(f *fleet) {
			f.claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, ""},
		{"the claim is only expected", func(f *fleet) { f.claim("n1").Expected = true }, ""},
		{"the claim is being deleted", func(f *fleet) { f.s.InFlight["delete/n1"] = true }, ""},
		{"the node is on its way out", func(f *fleet) { f.host("n1").Deleting = f.now }, ""},
		{"the fence is being taken down", func(f *fleet) { f.s.InFlight["unfence/n1"] = true }, ""},
		{"the fence did not come down", func(f *fleet) {
			f.s.Retry["unfence/n1"] = cluster.Retry{}
		}, "unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted"},
		{"the fence is being put up", func(f *fleet) { f.s.InFlight["fence/n1"] = true }, ""},
		{"the fence did not go up", func(f *fleet) {
			f.host("n1").Taints, f.s.Retry["fence/n1"] = nil, cluster.Retry{}
		}, "fence/n1"},
		{"somebody took the taint away", func(f *fleet) {
			f.host("n1").Taints = nil
		}, "unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted"},
		{"the reason is not written", func(f *fleet) {
			c := f.claim("n1")
			c.Conditions = c.Conditions[:3]
		}, "unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted"},
		{"another node is just being fenced", func(f *fleet) {
			f.begins(10 * time.Second)
			f.s.InFlight["fence/n3"] = true
		}, ""},
		{"another node is just being fenced, and the move is old", func(f *fleet) {
			f.begins(30 * time.Second)
			f.s.InFlight["fence/n3"] = true
		}, goes},
		{"the pool is gone", func(f *fleet) { f.s.Pools = nil }, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool is being deleted", func(f *fleet) {
			f.pool.Deleting = true
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool is being deleted, and the plan sends a pod there", func(f *fleet) {
			f.pool.Deleting = true
			f.o.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new", "", 1), Host: "n1"}}}
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool only wants to be told", func(f *fleet) {
			f.pool.Overrides.DryRun = true
		}, "unfence/n1: DryRun; give up n1: DryRun"},
		{"people keep the node", func(f *fleet) {
			f.claim("n1").DoNotDisrupt = true
		}, "unfence/n1: NodeDoNotDisrupt; give up n1: NodeDoNotDisrupt"},
		{"the plan sends a pod there", func(f *fleet) {
			f.o.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new", "", 1), Host: "n1"}}}
		}, "unfence/n1: PodsExpected, rests; give up n1: PodsExpected"},
		{"a pod has been nominated there", func(f *fleet) {
			f.run("new", "", 1).Nominated = "n1"
		}, "unfence/n1: PodsExpected, rests; give up n1: PodsExpected"},
		{"a disruption budget allows nothing now", func(f *fleet) { f.guard(0, 1, 2) }, ""},
		{"a disruption budget never allows anything", func(f *fleet) {
			f.guard(0, 3, 3)
		}, "unfence/n1: PDBBlocks; give up n1: PDBBlocks"},
		{"a disruption budget allows nothing now, and another never would, of a pod that stays to the end",
			func(f *fleet) {
				f.guard(0, 1, 2)
				f.held("n1").StaysThroughDrain = true
			}, ""},
		{"a disruption budget allows nothing now, and another never would, of the pod of a daemon", func(f *fleet) {
			f.guard(0, 1, 2)
			f.held("n1").Daemon = true
		}, ""},
		{"a disruption budget allows nothing now, and the node has a time by which it must be gone", func(f *fleet) {
			f.guard(0, 1, 2)
			f.claim("n1").HasTerminationGrace, f.claim("n1").TerminationGrace = true, time.Minute
		}, ""},
		{"a budget does not cover it any more, and there is room in it for what has drifted", func(f *fleet) {
			f.pool.Budgets = []cluster.Budget{{Nodes: 1, Active: true},
				{Reasons: []string{string(command.Underutilized)}, Active: true}}
			f.drifted("n2")
		}, "fence/n2; unfence/n1: BudgetBlocks; begin n2 $4; give up n1: BudgetBlocks"},
		{"two disruption budgets select the pod", func(f *fleet) {
			f.guard(1, 1, 3)
			f.guard(1, 1, 3)
		}, "unfence/n1: SeveralPDBs; give up n1: SeveralPDBs"},
		{"the budget does not cover it any more", func(f *fleet) {
			f.pool.Budgets[0].Nodes = 0
		}, "unfence/n1: BudgetBlocks; give up n1: BudgetBlocks"},
		{"the budget is used up by a node that is not ready", func(f *fleet) {
			f.one()
			f.host("n4").Ready = false
		}, ""},
		{"the budget is used up by a node that is going", func(f *fleet) {
			f.one()
			f.claim("n4").Deleting = f.now
		}, ""},
		{"the budget is used up by a node that is being deleted", func(f *fleet) {
			f.one()
			f.s.InFlight["delete/n4"] = true
		}, ""},
		{"the budget is used up by a node that somebody else drains", func(f *fleet) {
			f.one()
			f.host("n4").Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
		}, ""},
		{"the budget is used up by what the plan deletes", func(f *fleet) {
			f.one()
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "n4", Node: "n4"}}
		}, ""},
		{"a node that is not up does not count", func(f *fleet) {
			f.one()
			notUp(f.claim("n4"))
			f.host("n4").Ready = false
		}, goes},
		{"a node whose machine is being ended does not count", func(f *fleet) {
			f.one()
			f.say("n4", cluster.InstanceTerminating, "", f.now)
			f.claim("n4").Deleting = f.now
		}, goes},
		{"a pod waits for the room", func(f *fleet) {
			f.pod("p2").Class.Requests[0] = 6000
			f.o.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new2", "", 2), Host: "n2"},
				{Pod: f.run("new3", "", 4), Host: "n3"}}}
		}, "want $1"},
		{"there is no room, and it has waited for too long", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.begins(10 * time.Minute)
		}, "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"there is no room, and a smaller node will do", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
		}, "want $1"},
		{"there is no room, and nothing is cheaper", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.run("more", "n1", 6)
		},
			"unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper"},
		{"there is no room, and no node can be made", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.pool.NodeClass.Ready = false
		},
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded"},
		{"its replacement is on its way", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			notUp(f.replaced(f.claim("n1").Move, "new", "small"))
		}, ""},
		{"its replacement is on its way, and there is room meanwhile", func(f *fleet) {
			notUp(f.replaced(f.claim("n1").Move, "new", "small"))
		}, ""},
		{"its replacement is up", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.replaced(f.claim("n1").Move, "new", "small")
		}, goes},
		{"its replacement is up, and costs as much", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.replaced(f.claim("n1").Move, "new", "large")
		}, "unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper"},
		{"it should have gone long ago", func(f *fleet) {
			f.begins(11 * time.Minute)
		}, "unfence/n1: NotDeleted, rests; give up n1: NotDeleted"},
		{"it should have gone a moment ago", func(f *fleet) { f.begins(11*time.Minute - time.Second) }, goes},
		{"the pool has become static", func(f *fleet) {
			f.pool.Static = true
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
	}
	for _, c := range cases {
		f := newFleet()
		f.fenced(command.Underutilized, "n1")
		c.change(f)
		if got := f.carry(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// begins says how long ago the move of n1 began.
func (f *fleet) begins(ago time.Duration) {
	conditions := f.claim("n1").Conditions
	conditions[len(conditions)-1].Since = f.now.Add(-ago)
}

// one leaves one node at a time to the pool's budget, and adds n4, which carries nothing.
func (f *fleet) one() {
	f.pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true}
	f.node("n4", "large")
}

// guard adds a disruption budget for the deployment's pods.
func (f *fleet) guard(allowed, wanted, expected int) {
	f.s.PDBs = append(f.s.PDBs, &cluster.PDB{Namespace: "shop", Name: "g", Allowed: allowed, Healthy: wanted + allowed,
		DesiredHealthy: wanted, Expected: expected,
		Selector: cluster.Selector{Namespaces: []string{"shop"}}})
}

// held is a pod of another namespace on a node, with a disruption budget that never allows anything.
func (f *fleet) held(node string) *cluster.Pod {
	f.guard(0, 3, 3)
	g, p := f.s.PDBs[len(f.s.PDBs)-1], f.run("held", node, 1)
	g.Namespace, g.Selector.Namespaces, p.Namespace = "mail", []string{"mail"}, "mail"
	return p
}

// What becomes of a move that has to be: n1 has drifted and is fenced, and its pod has room on n2 and n3.
func TestWhatBecomesOfADueMove(t *testing.T) {
	goes := "delete/n1"
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"nothing has changed", func(f *fleet) {}, goes},
		{"it is as it should be again", func(f *fleet) {
			f.claim("n1").DriftedFrom = ""
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"nobody knows whether it is as it should be", func(f *fleet) {
			f.claim("n1").DriftedFrom, f.pool.Catalog = "", nil
		}, goes},
		{"the plan sends a pod there", func(f *fleet) {
			f.o.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new", "", 1), Host: "n1"}}}
		}, goes},
		{"a pod has been nominated there", func(f *fleet) { f.run("new", "", 1).Nominated = "n1" }, ""},
		{"the fence is being put up", func(f *fleet) { f.s.InFlight["fence/n1"] = true }, ""},
		{"the fence is being put up, for too long", func(f *fleet) {
			f.begins(10 * time.Minute)
			f.s.InFlight["fence/n1"] = true
		}, "give up n1: ReplacementsLate"},
		{"a disruption budget allows nothing now", func(f *fleet) { f.guard(0, 1, 2) }, ""},
		{"a pod objects", func(f *fleet) {
			f.pod("p1").DoNotDisrupt = true
		}, "unfence/n1: PodDoNotDisrupt; give up n1: PodDoNotDisrupt"},
		{"a pod objects in vain", func(f *fleet) {
			f.pod("p1").DoNotDisrupt, f.claim("n1").HasTerminationGrace = true, true
		}, goes},
		{"there is no room", func(f *fleet) { f.run("new2", "n2", 4); f.run("new3", "n3", 4) }, "want $1"},
		{"there is no room, and no node can be made", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.pool.NodeClass.Ready = false
		},
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded"},
		{"its replacement is on its way, and there is room meanwhile", func(f *fleet) {
			notUp(f.replaced(f.claim("n1").Move, "new", "small"))
		}, ""},
		{"its replacement is on its way out, and there is room meanwhile", func(f *fleet) {
			c := f.replaced(f.claim("n1").Move, "new", "small")
			notUp(c)
			c.Deleting = f.now
		}, goes},
		{"what is on its way is of an earlier try, and there is room meanwhile", func(f *fleet) {
			c := f.replaced(f.claim("n1").Move, "new", "small")
			notUp(c)
			c.Created = f.now.Add(-time.Hour)
		}, goes},
		{"what is on its way is of another move, and there is room meanwhile", func(f *fleet) {
			f.drifted("n3")
			f.pod("p3").Class.Requests[0] = 1000
			notUp(f.replaced(f.fenced(command.Drifted, "n3"), "new", "medium"))
		}, goes},
		{"what others have drifted is no place if there is another", func(f *fleet) {
			f.pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true}
			f.drifted("n2")
			f.run("new3", "n3", 4)
		}, "want $1; eager"},
		{"what others have drifted is a place if there is no other", func(f *fleet) {
			f.drifted("n2")
			f.pool.Budgets[0], f.pool.NodeClass.Ready = cluster.Budget{Nodes: 1, Active: true}, false
			f.run("new3", "n3", 4)
		}, "delete/n1; eager"},
		{"what has drifted no longer is a place", func(f *fleet) {
			f.say("n2", cluster.Drifted, "AMIDrift", f.now.Add(-time.Hour))
			f.run("new3", "n3", 4)
		}, goes},
		{"what has drifted and does not say so yet is a place", func(f *fleet) {
			f.claim("n2").DriftedFrom = "AMIDrift"
			f.run("new3", "n3", 4)
		}, goes},
		{"the plan deletes it, too, and it counts once", func(f *fleet) {
			f.pool.Budgets[0] = cluster.Budget{Nodes: 2, Active: true}
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
			f.begins(2 * time.Minute)
			f.drifted("n2")
			f.fenced(command.Drifted, "n2")
			f.node("n4", "large")
		}, "delete/n1; delete/n2"},
		{"a node that has gone is no place", func(f *fleet) {
			f.claim("n2").Deleting = f.now
			f.run("new3", "n3", 4)
		}, "want $1"},
		{"a node that has lost its claim is no place", func(f *fleet) {
			f.s.Claims = append(f.s.Claims[:1], f.s.Claims[2:]...)
			f.run("new3", "n3", 4)
		}, ""},
		{"a node of somebody else is a place", func(f *fleet) {
			f.s.Claims = append(f.s.Claims[:1], f.s.Claims[2:]...)
			f.host("n2").Ours = false
			f.run("new3", "n3", 4)
		}, goes},
		{"a node that is not up is no place yet", func(f *fleet) { notUp(f.claim("n2")); f.run("new3", "n3", 4) }, ""},
		{"the pool has become static, and the gate is off", func(f *fleet) {
			f.pool.Static = true
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"it is not ready", func(f *fleet) { f.one(); f.host("n1").Ready = false }, goes},
	}
	for _, c := range cases {
		f := newFleet()
		f.drifted("n1")
		f.claim("n1").Move = f.fenced(command.Drifted, "n1")
		c.change(f)
		if got := f.carry(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
