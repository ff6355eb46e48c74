package execute

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What becomes of a move to save money that is under way: n1 is fenced, and its pod has room on n2 and n3.
func TestWhatBecomesOfASavingMove(t *testing.T) {
	goes := "delete/n1"
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"nothing has changed", func(f *disrupttest.Fleet) {}, goes},
		{"the node is interrupted", func(f *disrupttest.Fleet) {
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, ""},
		{"the claim is only expected", func(f *disrupttest.Fleet) { f.Claim("n1").Expected = true }, ""},
		{"the claim is being deleted", func(f *disrupttest.Fleet) { f.S.InFlight["delete/n1"] = true }, ""},
		{"the node is on its way out", func(f *disrupttest.Fleet) { f.Host("n1").Deleting = f.Now }, ""},
		{"the fence is being taken down", func(f *disrupttest.Fleet) { f.S.InFlight["unfence/n1"] = true }, ""},
		{"the fence did not come down", func(f *disrupttest.Fleet) {
			f.S.Retry["unfence/n1"] = cluster.Retry{}
		}, "unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted"},
		{"the fence is being put up", func(f *disrupttest.Fleet) { f.S.InFlight["fence/n1"] = true }, ""},
		{"the fence did not go up", func(f *disrupttest.Fleet) {
			f.Host("n1").Taints, f.S.Retry["fence/n1"] = nil, cluster.Retry{}
		}, "fence/n1"},
		{"somebody took the taint away", func(f *disrupttest.Fleet) {
			f.Host("n1").Taints = nil
		}, "unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted"},
		{"the reason is not written", func(f *disrupttest.Fleet) {
			c := f.Claim("n1")
			c.Conditions = c.Conditions[:3]
		}, "unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted"},
		{"another node is just being fenced", func(f *disrupttest.Fleet) {
			f.Begins(10 * time.Second)
			f.S.InFlight["fence/n3"] = true
		}, ""},
		{"another node is just being fenced, and the move is old", func(f *disrupttest.Fleet) {
			f.Begins(30 * time.Second)
			f.S.InFlight["fence/n3"] = true
		}, goes},
		{"the pool is gone", func(f *disrupttest.Fleet) {
			f.S.Pools = nil
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool is being deleted", func(f *disrupttest.Fleet) {
			f.Pool.Deleting = true
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool is being deleted, and the plan sends a pod there", func(f *disrupttest.Fleet) {
			f.Pool.Deleting = true
			f.O.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new", "", 1), Host: "n1"}}}
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool only wants to be told", func(f *disrupttest.Fleet) {
			f.Pool.Overrides.DryRun = true
		}, "unfence/n1: DryRun; give up n1: DryRun"},
		{"people keep the node", func(f *disrupttest.Fleet) {
			f.Claim("n1").DoNotDisrupt = true
		}, "unfence/n1: NodeDoNotDisrupt; give up n1: NodeDoNotDisrupt"},
		{"the plan sends a pod there", func(f *disrupttest.Fleet) {
			f.O.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new", "", 1), Host: "n1"}}}
		}, "unfence/n1: PodsExpected, rests; give up n1: PodsExpected"},
		{"a pod has been nominated there", func(f *disrupttest.Fleet) {
			f.Run("new", "", 1).Nominated = "n1"
		}, "unfence/n1: PodsExpected, rests; give up n1: PodsExpected"},
		{"a disruption budget allows nothing now", func(f *disrupttest.Fleet) { f.Guard(0, 1, 2) }, ""},
		{"a disruption budget never allows anything", func(f *disrupttest.Fleet) {
			f.Guard(0, 3, 3)
		}, "unfence/n1: PDBBlocks; give up n1: PDBBlocks"},
		{"a disruption budget allows nothing now, and another never would, of a pod that stays to the end",
			func(f *disrupttest.Fleet) {
				f.Guard(0, 1, 2)
				held(f, "n1").StaysThroughDrain = true
			}, ""},
		{"a disruption budget allows nothing now, and another never would, of the pod of a daemon",
			func(f *disrupttest.Fleet) {
				f.Guard(0, 1, 2)
				held(f, "n1").Daemon = true
			}, ""},
		{"a disruption budget allows nothing now, and the node has a time by which it must be gone",
			func(f *disrupttest.Fleet) {
				f.Guard(0, 1, 2)
				f.Claim("n1").HasTerminationGrace, f.Claim("n1").TerminationGrace = true, time.Minute
			}, ""},
		{"a budget does not cover it any more, and there is room in it for what has drifted",
			func(f *disrupttest.Fleet) {
				f.Pool.Budgets = []cluster.Budget{{Nodes: 1, Active: true},
					{Reasons: []string{string(command.Underutilized)}, Active: true}}
				f.Drifted("n2")
			}, "fence/n2; unfence/n1: BudgetBlocks; begin n2 $4; give up n1: BudgetBlocks"},
		{"two disruption budgets select the pod", func(f *disrupttest.Fleet) {
			f.Guard(1, 1, 3)
			f.Guard(1, 1, 3)
		}, "unfence/n1: SeveralPDBs; give up n1: SeveralPDBs"},
		{"the budget does not cover it any more", func(f *disrupttest.Fleet) {
			f.Pool.Budgets[0].Nodes = 0
		}, "unfence/n1: BudgetBlocks; give up n1: BudgetBlocks"},
		{"the budget is used up by a node that is not ready", func(f *disrupttest.Fleet) {
			oneAtATime(f)
			f.Host("n4").Ready = false
		}, ""},
		{"the budget is used up by a node that is going", func(f *disrupttest.Fleet) {
			oneAtATime(f)
			f.Claim("n4").Deleting = f.Now
		}, ""},
		{"the budget is used up by a node that is being deleted", func(f *disrupttest.Fleet) {
			oneAtATime(f)
			f.S.InFlight["delete/n4"] = true
		}, ""},
		{"the budget is used up by a node that somebody else drains", func(f *disrupttest.Fleet) {
			oneAtATime(f)
			f.Host("n4").Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
		}, ""},
		{"the budget is used up by what the plan deletes", func(f *disrupttest.Fleet) {
			oneAtATime(f)
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "n4", Node: "n4"}}
		}, ""},
		{"a node that is not up does not count", func(f *disrupttest.Fleet) {
			oneAtATime(f)
			disrupttest.NotUp(f.Claim("n4"))
			f.Host("n4").Ready = false
		}, goes},
		{"a node whose machine is being ended does not count", func(f *disrupttest.Fleet) {
			oneAtATime(f)
			f.Say("n4", cluster.InstanceTerminating, "", f.Now)
			f.Claim("n4").Deleting = f.Now
		}, goes},
		{"a pod waits for the room", func(f *disrupttest.Fleet) {
			f.Pod("p2").Class.Requests[0] = 6000
			f.O.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new2", "", 2), Host: "n2"},
				{Pod: f.Run("new3", "", 4), Host: "n3"}}}
		}, "want $1"},
		{"there is no room, and it has waited for too long", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Begins(10 * time.Minute)
		}, "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"there is no room, and a smaller node will do", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
		}, "want $1"},
		{"there is no room, and nothing is cheaper", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Run("more", "n1", 6)
		},
			"unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper"},
		{"there is no room, and no node can be made", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Pool.NodeClass.Ready = false
		},
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded"},
		{"its replacement is on its way", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			disrupttest.NotUp(f.Replaced(f.Claim("n1").Move, "new", "small"))
		}, ""},
		{"its replacement is on its way, and there is room meanwhile", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(f.Replaced(f.Claim("n1").Move, "new", "small"))
		}, ""},
		{"its replacement is up", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Replaced(f.Claim("n1").Move, "new", "small")
		}, goes},
		{"its replacement is up, and costs as much", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Replaced(f.Claim("n1").Move, "new", "large")
		}, "unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper"},
		{"it should have gone long ago", func(f *disrupttest.Fleet) {
			f.Begins(11 * time.Minute)
		}, "unfence/n1: NotDeleted, rests; give up n1: NotDeleted"},
		{"it should have gone a moment ago", func(f *disrupttest.Fleet) {
			f.Begins(11*time.Minute - time.Second)
		}, goes},
		{"the pool has become static", func(f *disrupttest.Fleet) {
			f.Pool.Static = true
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Fenced(command.Underutilized, "n1")
		c.change(f)
		if got := carry(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// oneAtATime leaves one node at a time to the pool's budget, and adds n4, which carries nothing.
func oneAtATime(f *disrupttest.Fleet) {
	f.Pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true}
	f.Node("n4", "large")
}

// held is a pod of another namespace on a node, with a disruption budget that never allows anything.
func held(f *disrupttest.Fleet, node string) *cluster.Pod {
	f.Guard(0, 3, 3)
	g, p := f.S.PDBs[len(f.S.PDBs)-1], f.Run("held", node, 1)
	g.Namespace, g.Selector.Namespaces, p.Namespace = "mail", []string{"mail"}, "mail"
	return p
}

// What becomes of a move that has to be: n1 has drifted and is fenced, and its pod has room on n2 and n3.
func TestWhatBecomesOfADueMove(t *testing.T) {
	goes := "delete/n1"
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"nothing has changed", func(f *disrupttest.Fleet) {}, goes},
		{"it is as it should be again", func(f *disrupttest.Fleet) {
			f.Claim("n1").DriftedFrom = ""
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"nobody knows whether it is as it should be", func(f *disrupttest.Fleet) {
			f.Claim("n1").DriftedFrom, f.Pool.Catalog = "", nil
		}, goes},
		{"the plan sends a pod there", func(f *disrupttest.Fleet) {
			f.O.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new", "", 1), Host: "n1"}}}
		}, goes},
		{"a pod has been nominated there", func(f *disrupttest.Fleet) { f.Run("new", "", 1).Nominated = "n1" }, ""},
		{"the fence is being put up", func(f *disrupttest.Fleet) { f.S.InFlight["fence/n1"] = true }, ""},
		{"the fence is being put up, for too long", func(f *disrupttest.Fleet) {
			f.Begins(10 * time.Minute)
			f.S.InFlight["fence/n1"] = true
		}, "give up n1: ReplacementsLate"},
		{"a disruption budget allows nothing now", func(f *disrupttest.Fleet) { f.Guard(0, 1, 2) }, ""},
		{"a pod objects", func(f *disrupttest.Fleet) {
			f.Pod("p1").DoNotDisrupt = true
		}, "unfence/n1: PodDoNotDisrupt; give up n1: PodDoNotDisrupt"},
		{"a pod objects in vain", func(f *disrupttest.Fleet) {
			f.Pod("p1").DoNotDisrupt, f.Claim("n1").HasTerminationGrace = true, true
		}, goes},
		{"there is no room", func(f *disrupttest.Fleet) { f.Run("new2", "n2", 4); f.Run("new3", "n3", 4) }, "want $1"},
		{"there is no room, and no node can be made", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Pool.NodeClass.Ready = false
		},
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded"},
		{"its replacement is on its way, and there is room meanwhile", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(f.Replaced(f.Claim("n1").Move, "new", "small"))
		}, ""},
		{"its replacement is on its way out, and there is room meanwhile", func(f *disrupttest.Fleet) {
			c := f.Replaced(f.Claim("n1").Move, "new", "small")
			disrupttest.NotUp(c)
			c.Deleting = f.Now
		}, goes},
		{"what is on its way is of an earlier try, and there is room meanwhile", func(f *disrupttest.Fleet) {
			c := f.Replaced(f.Claim("n1").Move, "new", "small")
			disrupttest.NotUp(c)
			c.Created = f.Now.Add(-time.Hour)
		}, goes},
		{"what is on its way is of another move, and there is room meanwhile", func(f *disrupttest.Fleet) {
			f.Drifted("n3")
			f.Pod("p3").Class.Requests[0] = 1000
			disrupttest.NotUp(f.Replaced(f.Fenced(command.Drifted, "n3"), "new", "medium"))
		}, goes},
		{"what others have drifted is no place if there is another", func(f *disrupttest.Fleet) {
			f.Pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true}
			f.Drifted("n2")
			f.Run("new3", "n3", 4)
		}, "want $1; eager"},
		{"what others have drifted is a place if there is no other", func(f *disrupttest.Fleet) {
			f.Drifted("n2")
			f.Pool.Budgets[0], f.Pool.NodeClass.Ready = cluster.Budget{Nodes: 1, Active: true}, false
			f.Run("new3", "n3", 4)
		}, "delete/n1; eager"},
		{"what has drifted no longer is a place", func(f *disrupttest.Fleet) {
			f.Say("n2", cluster.Drifted, "AMIDrift", f.Now.Add(-time.Hour))
			f.Run("new3", "n3", 4)
		}, goes},
		{"what has drifted and does not say so yet is a place", func(f *disrupttest.Fleet) {
			f.Claim("n2").DriftedFrom = "AMIDrift"
			f.Run("new3", "n3", 4)
		}, goes},
		{"the plan deletes it, too, and it counts once", func(f *disrupttest.Fleet) {
			f.Pool.Budgets[0] = cluster.Budget{Nodes: 2, Active: true}
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
			f.Begins(2 * time.Minute)
			f.Drifted("n2")
			f.Fenced(command.Drifted, "n2")
			f.Node("n4", "large")
		}, "delete/n1; delete/n2"},
		{"a node that has gone is no place", func(f *disrupttest.Fleet) {
			f.Claim("n2").Deleting = f.Now
			f.Run("new3", "n3", 4)
		}, "want $1"},
		{"a node that has lost its claim is no place", func(f *disrupttest.Fleet) {
			f.S.Claims = append(f.S.Claims[:1], f.S.Claims[2:]...)
			f.Run("new3", "n3", 4)
		}, ""},
		{"a node of somebody else is a place", func(f *disrupttest.Fleet) {
			f.S.Claims = append(f.S.Claims[:1], f.S.Claims[2:]...)
			f.Host("n2").Ours = false
			f.Run("new3", "n3", 4)
		}, goes},
		{"a node that is not up is no place yet", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(f.Claim("n2"))
			f.Run("new3", "n3", 4)
		}, ""},
		{"the pool has become static, and the gate is off", func(f *disrupttest.Fleet) {
			f.Pool.Static = true
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"it is not ready", func(f *disrupttest.Fleet) { oneAtATime(f); f.Host("n1").Ready = false }, goes},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Drifted("n1")
		f.Claim("n1").Move = f.Fenced(command.Drifted, "n1")
		c.change(f)
		if got := carry(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
