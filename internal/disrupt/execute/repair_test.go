package execute

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/render"
)

// Which unhealthy nodes are replaced: n1 has not been ready for ten minutes.
func TestWhichSickNodesBegin(t *testing.T) {
	begins := "fence/n1; begin n1 $4"
	no := func(f *disrupttest.Fleet) { f.Pod("p1").DoNotDisrupt = true }
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
		note   string
	}{
		{"one", func(f *disrupttest.Fleet) {}, begins, ""},
		{"the gate is off", func(f *disrupttest.Fleet) { f.O.Repair.Enabled = false }, "", ""},
		{"it is tolerated for a moment more", func(f *disrupttest.Fleet) {
			f.Sicken(10*time.Minute-time.Second, "n1")
		}, "", ""},
		{"another condition", func(f *disrupttest.Fleet) { f.Host("n1").Conditions[0].Type = "DiskPressure" }, "", ""},
		{"another status", func(f *disrupttest.Fleet) { f.Host("n1").Conditions[0].Status = "Unknown" }, "", ""},
		{"the policy that is due first counts", func(f *disrupttest.Fleet) {
			f.O.Repair.Policies[0].Toleration = time.Hour
			f.O.Repair.Policies = append(f.O.Repair.Policies, disrupt.RepairPolicy{Type: "Ready", Status: "False",
				Toleration: time.Minute})
		}, begins, ""},
		{"the policy that is due first counts, whichever that is", func(f *disrupttest.Fleet) {
			f.O.Repair.Policies = append(f.O.Repair.Policies, disrupt.RepairPolicy{Type: "Ready", Status: "False",
				Toleration: time.Hour})
		}, begins, ""},
		{"people keep the node", func(f *disrupttest.Fleet) { f.Host("n1").DoNotRepair = true }, "", ""},
		{"people keep the claim", func(f *disrupttest.Fleet) { f.Claim("n1").DoNotRepair = true }, "", ""},
		{"the claim is on its way out", func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, "", ""},
		{"the node is on its way out", func(f *disrupttest.Fleet) { f.Host("n1").Deleting = f.Now }, "", ""},
		{"the node has not joined", func(f *disrupttest.Fleet) {
			f.Claim("n1").Conditions = f.Claim("n1").Conditions[:1]
		}, "", ""},
		{"its machine is being ended", func(f *disrupttest.Fleet) {
			f.Say("n1", cluster.InstanceTerminating, "", f.Now)
		}, "", ""},
		{"the planner fails on it", func(f *disrupttest.Fleet) {
			f.S.Quarantine.Claims = map[string]cluster.Failure{"n1": {}}
		}, "", ""},
		{"it goes in a move to save money", func(f *disrupttest.Fleet) {
			f.Fenced(command.Underutilized, "n1")
		}, "delete/n1", ""},
		{"the plan takes it away otherwise", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, "", ""},
		{"a repair was given up lately", func(f *disrupttest.Fleet) {
			f.Claim("n1").RestUntil = f.Now.Add(time.Second)
		}, "", ""},
		{"a repair was given up long ago", func(f *disrupttest.Fleet) { f.Claim("n1").RestUntil = f.Now }, begins, ""},
		{"the pool is being deleted", func(f *disrupttest.Fleet) { f.Pool.Deleting = true }, "", ""},
		{"the pool only wants to be told", func(f *disrupttest.Fleet) {
			f.Pool.Overrides.DryRun = true
		}, "would n1", ""},
		{"a static pool without the gate", func(f *disrupttest.Fleet) { f.Pool.Static = true }, "",
			"n1: NodePool default is static and the feature gate StaticCapacity is off: nothing would take the " +
				"node's place"},
		{"a static pool", func(f *disrupttest.Fleet) { f.Pool.Static, f.O.Static = true, true }, begins, ""},
		{"more are sick than may be", func(f *disrupttest.Fleet) {
			f.Sicken(time.Minute, "n2", "n3")
			f.O.Repair.MaxUnhealthy = 60
		}, "",
			"n1: 3 of the 3 nodes of NodePool default are unhealthy, more than 60%: the cause is not this node"},
		{"as many are sick as may be", func(f *disrupttest.Fleet) {
			f.Sicken(time.Minute, "n2")
			f.O.Repair.MaxUnhealthy = 60
		}, begins, ""},
		{"the budget allows none", func(f *disrupttest.Fleet) {
			f.Pool.Budgets[0].Nodes = 0
		}, "", "n1: the disruption budgets of NodePool default allow no more nodes to be replaced now"},
		{"the budget is used up", func(f *disrupttest.Fleet) { f.Single(); f.Claim("n3").Deleting = f.Now }, "eager",
			"n1: the disruption budgets of NodePool default allow no more nodes to be replaced now"},
		{"one of two may go", func(f *disrupttest.Fleet) {
			f.Single()
			f.Sicken(time.Hour, "n2")
		}, begins, "n2: the disruption budgets of NodePool default allow no more nodes to be replaced now"},
		{"one of two goes otherwise, so that the other may go", func(f *disrupttest.Fleet) {
			f.Pool.Budgets[0] = cluster.Budget{Nodes: 2, Active: true}
			f.Sicken(time.Hour, "n2", "n3")
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, "fence/n2; fence/n3; begin n2 $4; begin n3 $4", ""},
		{"one of two rests, so that the other may go", func(f *disrupttest.Fleet) {
			f.Single()
			f.Sicken(time.Hour, "n2")
			f.Claim("n1").RestUntil = f.Now.Add(time.Minute)
		}, "fence/n2; begin n2 $4", ""},
		{"two of a static pool without the gate", func(f *disrupttest.Fleet) {
			f.Single()
			f.Sicken(time.Hour, "n2")
			f.Pool.Static = true
		}, "",
			"n1: NodePool default is static and the feature gate StaticCapacity is off: nothing would take the " +
				"node's place; " +
				"n2: NodePool default is static and the feature gate StaticCapacity is off: nothing would take the " +
				"node's place"},
		{"another pool waits for a budget that allows none", func(f *disrupttest.Fleet) {
			f.Single()
			f.Sicken(time.Hour, "n2")
			f.Claim("n3").Deleting = f.Now
			b := f.PoolOf("b")
			b.Budgets = []cluster.Budget{{Active: true}}
			f.Claim("n2").Pool = "b"
		}, "eager", "n1: the disruption budgets of NodePool default allow no more nodes to be replaced now; " +
			"n2: the disruption budgets of NodePool b allow no more nodes to be replaced now"},
		{"one of two is kept, so that the other may go", func(f *disrupttest.Fleet) {
			f.Single()
			f.Sicken(time.Hour, "n2")
			no(f)
		}, "fence/n2; begin n2 $4",
			"n1: pod shop/p1 may not be evicted now (PodDoNotDisrupt), and nothing says after which time it may be: " +
				"set terminationGracePeriod in NodePool default"},
		{"a disruption budget keeps it", func(f *disrupttest.Fleet) { f.Guard(0, 1, 2) }, "",
			"n1: pod shop/p1 may not be evicted now (PDBBlocks), and nothing says after which time it may be: set " +
				"terminationGracePeriod in NodePool default"},
		{"two disruption budgets keep it", func(f *disrupttest.Fleet) { f.Guard(1, 1, 3); f.Guard(1, 1, 3) }, "",
			"n1: pod shop/p1 may not be evicted now (SeveralPDBs), and nothing says after which time it may be: set " +
				"terminationGracePeriod in NodePool default"},
		{"a pod keeps it in vain", func(f *disrupttest.Fleet) {
			no(f)
			f.Claim("n1").HasTerminationGrace = true
		}, begins, ""},
		{"a pod keeps it in vain by the policy", func(f *disrupttest.Fleet) {
			no(f)
			f.O.Repair.Policies[0].HasGrace = true
		}, begins, ""},
		{"a pod is expected", func(f *disrupttest.Fleet) { f.Run("new", "", 1).Nominated = "n1" }, begins, ""},
		{"pods have nowhere to go", func(f *disrupttest.Fleet) {
			f.Pool.NodeClass.Ready = false
			f.Run("x", "n2", 4)
			f.Run("y", "n3", 4)
		},
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded", ""},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Sicken(10*time.Minute, "n1")
		c.change(f)
		r, _ := Moves(f.S.Seal(), f.Set, input(f))
		if got := disrupttest.Outcome(&r); got != c.want || notes(&r) != c.note {
			t.Errorf("%s: %q, want %q; told is %q, want %q", c.name, got, c.want, notes(&r), c.note)
		}
	}
}

// When an unhealthy node is looked at again.
func TestWhenSickNodesAreLookedAtAgain(t *testing.T) {
	for name, change := range map[string]func(f *disrupttest.Fleet, at time.Time){
		"it is tolerated": func(f *disrupttest.Fleet, at time.Time) { f.Sicken(9*time.Minute, "n1") },
		"it rests":        func(f *disrupttest.Fleet, at time.Time) { f.Claim("n1").RestUntil = at },
		"a pod keeps it so": func(f *disrupttest.Fleet, at time.Time) {
			f.Pod("p1").DoNotDisrupt, f.Pod("p1").DoNotDisruptUntil = true, at
		},
	} {
		f := disrupttest.NewFleet()
		f.Sicken(time.Hour, "n1")
		change(f, f.Now.Add(time.Minute))
		if r, _ := Moves(f.S.Seal(), f.Set, input(f)); !r.WakeAt.Equal(f.Now.Add(time.Minute)) {
			t.Errorf("%s: %s", name, r.WakeAt)
		}
	}
}

// A unhealthy node that is still ready takes up a place of the budgets; one that is not has done so before.
func TestWhatSickNodesTakeFromBudgets(t *testing.T) {
	for ready, want := range map[bool]int{true: 1, false: 0} {
		f := disrupttest.NewFleet()
		f.Sicken(time.Hour, "n1")
		f.Host("n1").Ready = ready
		f.O.Budgets = disrupt.NewBudgetTracker(f.S.Seal())
		before := f.O.Budgets.Remaining("default", command.Drifted)
		carry(f)
		if got := before - f.O.Budgets.Remaining("default", command.Drifted); got != want {
			t.Errorf("ready %t: %d are taken, want %d", ready, got, want)
		}
		f.Run("x", "n2", 4)
		f.Run("y", "n3", 4)
		f.Pool.NodeClass.Ready = false // its pods have nowhere to go
		f.O.Budgets = disrupt.NewBudgetTracker(f.S.Seal())
		if carry(f); before != f.O.Budgets.Remaining("default", command.Drifted) {
			t.Errorf("ready %t: a repair that is given up leaves %d of %d", ready, f.O.Budgets.Remaining("default",
				command.Drifted), before)
		}
	}
}

// What becomes of the repair of n1 that is under way: its pods have room on n2 and n3.
func TestWhatBecomesOfARepair(t *testing.T) {
	goes := "delete/n1"
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"nothing has changed", func(f *disrupttest.Fleet) {}, goes},
		{"it is well again", func(f *disrupttest.Fleet) {
			f.Host("n1").Conditions = nil
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"it has fallen sick anew", func(f *disrupttest.Fleet) {
			f.Sicken(time.Minute, "n1")
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"people keep the node", func(f *disrupttest.Fleet) {
			f.Host("n1").DoNotRepair = true
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"people keep the claim", func(f *disrupttest.Fleet) {
			f.Claim("n1").DoNotRepair = true
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"the gate is off", func(f *disrupttest.Fleet) {
			f.O.Repair.Enabled = false
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"many are sick", func(f *disrupttest.Fleet) {
			f.Sicken(time.Minute, "n2", "n3")
			f.O.Repair.MaxUnhealthy = 30
		}, "unfence/n1: ManyUnhealthy; give up n1: ManyUnhealthy"},
		{"two of three are sick where one may be", func(f *disrupttest.Fleet) {
			f.Sicken(time.Minute, "n2")
			f.O.Repair.MaxUnhealthy = 33
		}, "unfence/n1: ManyUnhealthy; give up n1: ManyUnhealthy"},
		{"two of three are sick where a little more than one may be", func(f *disrupttest.Fleet) {
			f.Sicken(time.Minute, "n2")
			f.O.Repair.MaxUnhealthy = 34
		}, goes},
		{"a pod is expected", func(f *disrupttest.Fleet) { f.Run("new", "", 1).Nominated = "n1" }, goes},
		{"a pod objects", func(f *disrupttest.Fleet) {
			f.Pod("p1").DoNotDisrupt = true
		}, "unfence/n1: PodDoNotDisrupt; give up n1: PodDoNotDisrupt"},
		{"a disruption budget allows nothing now", func(f *disrupttest.Fleet) { f.Guard(0, 1, 2) }, ""},
		{"a disruption budget never allows anything", func(f *disrupttest.Fleet) {
			f.Guard(0, 3, 3)
		}, "unfence/n1: PDBBlocks; give up n1: PDBBlocks"},
		{"a pod objects in vain", func(f *disrupttest.Fleet) {
			f.Pod("p1").DoNotDisrupt, f.O.Repair.Policies[0].HasGrace = true, true
		}, goes},
		{"two disruption budgets object in vain", func(f *disrupttest.Fleet) {
			f.Guard(1, 1, 3)
			f.Guard(1, 1, 3)
			f.O.Repair.Policies[0].HasGrace = true
		}, goes},
		{"a disruption budget objects in vain", func(f *disrupttest.Fleet) {
			f.Guard(0, 1, 2)
			f.O.Repair.Policies[0].HasGrace = true
		}, goes},
		{"the planner fails on a pod of it that has no room", func(f *disrupttest.Fleet) {
			f.S.Quarantine.Classes = map[string]cluster.Failure{f.Pod("p1").Class.Key: {}}
			f.Run("x", "n2", 4)
			f.Run("y", "n3", 4)
		}, ""},
		{"a pod of a daemon has no room elsewhere", func(f *disrupttest.Fleet) {
			f.O.Repair.Policies[0].HasGrace = true
			f.Run("d", "n1", 6).Daemon = true
		}, goes},
		{"it has drifted instead, and a pod objects in vain", func(f *disrupttest.Fleet) {
			f.Drifted("n1")
			f.Claim("n1").Conditions = slices.DeleteFunc(f.Claim("n1").Conditions, func(c cluster.Condition) bool {
				return c.Type == cluster.DisruptionReason
			})
			f.Fenced(command.Drifted, "n1")
			f.Host("n1").Ready, f.Host("n1").Conditions = true, nil
			f.Claim("n1").HasTerminationGrace, f.Pod("p1").DoNotDisrupt = true, true
			f.Run("x", "n2", 4)
			f.Run("y", "n3", 4)
		}, goes},
		{"a static pool has made another, and a pod objects in vain that has no room", func(f *disrupttest.Fleet) {
			f.Static1()
			f.O.Repair.Policies[0].HasGrace = true
			f.Pod("p1").DoNotDisrupt = true
			f.Replaced(f.Claim("n1").Move, "new", "small")
			f.Run("x", "n2", 4)
			f.Run("y", "n3", 4)
			f.Run("z", "new", 2)
		}, goes},
		{"a pod objects in vain, and there is no room for it", func(f *disrupttest.Fleet) {
			f.Pod("p1").DoNotDisrupt, f.O.Repair.Policies[0].HasGrace = true, true
			f.Run("x", "n2", 4)
			f.Run("y", "n3", 4)
		}, "want $1"},
		{"a disruption budget objects in vain, and there is no room for its pod", func(f *disrupttest.Fleet) {
			f.Guard(0, 3, 3)
			f.O.Repair.Policies[0].HasGrace = true
			f.Run("x", "n2", 4)
			f.Run("y", "n3", 4)
		}, "want $1"},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Sicken(time.Hour, "n1")
		f.Fenced(command.Unhealthy, "n1")
		c.change(f)
		if got := carry(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The pods of an unhealthy node that goes have the time that the policy and the node leave them.
func TestWhenPodsOfASickNodeMustBeGone(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Sicken(time.Hour, "n1")
	f.Fenced(command.Unhealthy, "n1")
	end := func() command.DeleteClaim {
		r, _ := Moves(f.S.Seal(), f.Set, input(f))
		return r.Commands[0].(command.DeleteClaim)
	}
	if d := end(); !d.Deadline.IsZero() || d.Condition != "Ready" || render.Text(d.Text) != "condition Ready of node "+
		"n1 has "+
		"been False for 10m0s or longer" {
		t.Errorf("nobody says anything: %+v", d)
	}
	f.O.Repair.Policies[0].HasGrace, f.O.Repair.Policies[0].Grace = true, 5*time.Minute
	if d := end(); !d.Deadline.Equal(f.Now.Add(5 * time.Minute)) {
		t.Errorf("the policy says five minutes: %s", d.Deadline.Sub(f.Now))
	}
	f.Claim("n1").HasTerminationGrace, f.Claim("n1").TerminationGrace = true, time.Minute
	if d := end(); !d.Deadline.Equal(f.Now.Add(time.Minute)) {
		t.Errorf("the node says one minute: %s", d.Deadline.Sub(f.Now))
	}
}

// notes are what stands in the way of a repair, without the name of whom it is told.
func notes(r *disrupt.Result) string {
	var out []string
	for _, n := range r.Notes {
		if n.Kind == "Node" && n.Warning {
			out = append(out, n.Name+": "+render.Text(n.Text))
		}
	}
	return strings.Join(out, "; ")
}
