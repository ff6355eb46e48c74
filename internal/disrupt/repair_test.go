package disrupt

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// sicken has nodes be not ready for so long, where ten minutes are tolerated.
func (f *fleet) sicken(ago time.Duration, names ...string) {
	f.o.Repair = RepairSettings{Enabled: true, MaxUnhealthy: 100,
		Policies: []RepairPolicy{{Type: "Ready", Status: "False", Toleration: 10 * time.Minute}}}
	for _, name := range names {
		n := f.host(name)
		n.Ready, n.Conditions = false, []cluster.NodeCondition{{Type: "Ready", Status: "False", Since: f.now.Add(-ago)}}
	}
}

// notes are what stands in the way of a repair, without the name of whom it is told.
func notes(r *Result) string {
	var out []string
	for _, n := range r.Notes {
		if n.Kind == "Node" && n.Warning {
			out = append(out, n.Name+": "+n.Message)
		}
	}
	return strings.Join(out, "; ")
}

// Which unhealthy nodes are replaced: n1 has not been ready for ten minutes.
func TestWhichSickNodesBegin(t *testing.T) {
	begins := "fence/n1; begin n1 $4"
	no := func(f *fleet) { f.pod("p1").DoNotDisrupt = true }
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
		note   string
	}{
		{"one", func(f *fleet) {}, begins, ""},
		{"the gate is off", func(f *fleet) { f.o.Repair.Enabled = false }, "", ""},
		{"it is tolerated for a moment more", func(f *fleet) { f.sicken(10*time.Minute-time.Second, "n1") }, "", ""},
		{"another condition", func(f *fleet) { f.host("n1").Conditions[0].Type = "DiskPressure" }, "", ""},
		{"another status", func(f *fleet) { f.host("n1").Conditions[0].Status = "Unknown" }, "", ""},
		{"the policy that is due first counts", func(f *fleet) {
			f.o.Repair.Policies[0].Toleration = time.Hour
			f.o.Repair.Policies = append(f.o.Repair.Policies, RepairPolicy{Type: "Ready", Status: "False",
				Toleration: time.Minute})
		}, begins, ""},
		{"the policy that is due first counts, whichever that is", func(f *fleet) {
			f.o.Repair.Policies = append(f.o.Repair.Policies, RepairPolicy{Type: "Ready", Status: "False",
				Toleration: time.Hour})
		}, begins, ""},
		{"people keep the node", func(f *fleet) { f.host("n1").DoNotRepair = true }, "", ""},
		{"people keep the claim", func(f *fleet) { f.claim("n1").DoNotRepair = true }, "", ""},
		{"the claim is on its way out", func(f *fleet) { f.claim("n1").Deleting = f.now }, "", ""},
		{"the node is on its way out", func(f *fleet) { f.host("n1").Deleting = f.now }, "", ""},
		{"the node has not joined", func(f *fleet) { f.claim("n1").Conditions = f.claim("n1").Conditions[:1] }, "", ""},
		{"its machine is being ended", func(f *fleet) { f.say("n1", cluster.InstanceTerminating, "", f.now) }, "", ""},
		{"the planner fails on it", func(f *fleet) {
			f.s.Quarantine.Claims = map[string]cluster.Failure{"n1": {}}
		}, "", ""},
		{"it goes in a move to save money", func(f *fleet) { f.fenced(command.Underutilized, "n1") }, "delete/n1", ""},
		{"the plan takes it away otherwise", func(f *fleet) {
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, "", ""},
		{"a repair was given up lately", func(f *fleet) { f.claim("n1").RestUntil = f.now.Add(time.Second) }, "", ""},
		{"a repair was given up long ago", func(f *fleet) { f.claim("n1").RestUntil = f.now }, begins, ""},
		{"the pool is being deleted", func(f *fleet) { f.pool.Deleting = true }, "", ""},
		{"the pool only wants to be told", func(f *fleet) { f.pool.Overrides.DryRun = true }, "would n1", ""},
		{"a static pool without the gate", func(f *fleet) { f.pool.Static = true }, "",
			"n1: NodePool default is static and the feature gate StaticCapacity is off: nothing would take the " +
				"node's place"},
		{"a static pool", func(f *fleet) { f.pool.Static, f.o.Static = true, true }, begins, ""},
		{"more are sick than may be", func(f *fleet) {
			f.sicken(time.Minute, "n2", "n3")
			f.o.Repair.MaxUnhealthy = 60
		}, "",
			"n1: 3 of the 3 nodes of NodePool default are unhealthy, more than 60%: the cause is not this node"},
		{"as many are sick as may be", func(f *fleet) {
			f.sicken(time.Minute, "n2")
			f.o.Repair.MaxUnhealthy = 60
		}, begins, ""},
		{"the budget allows none", func(f *fleet) {
			f.pool.Budgets[0].Nodes = 0
		}, "", "n1: the disruption budgets of NodePool default allow no more nodes to be replaced now"},
		{"the budget is used up", func(f *fleet) { f.single(); f.claim("n3").Deleting = f.now }, "eager",
			"n1: the disruption budgets of NodePool default allow no more nodes to be replaced now"},
		{"one of two may go", func(f *fleet) {
			f.single()
			f.sicken(time.Hour, "n2")
		}, begins, "n2: the disruption budgets of NodePool default allow no more nodes to be replaced now"},
		{"one of two goes otherwise, so that the other may go", func(f *fleet) {
			f.pool.Budgets[0] = cluster.Budget{Nodes: 2, Active: true}
			f.sicken(time.Hour, "n2", "n3")
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, "fence/n2; fence/n3; begin n2 $4; begin n3 $4", ""},
		{"one of two rests, so that the other may go", func(f *fleet) {
			f.single()
			f.sicken(time.Hour, "n2")
			f.claim("n1").RestUntil = f.now.Add(time.Minute)
		}, "fence/n2; begin n2 $4", ""},
		{"two of a static pool without the gate", func(f *fleet) {
			f.single()
			f.sicken(time.Hour, "n2")
			f.pool.Static = true
		}, "",
			"n1: NodePool default is static and the feature gate StaticCapacity is off: nothing would take the " +
				"node's place; " +
				"n2: NodePool default is static and the feature gate StaticCapacity is off: nothing would take the " +
				"node's place"},
		{"another pool waits for a budget that allows none", func(f *fleet) {
			f.single()
			f.sicken(time.Hour, "n2")
			f.claim("n3").Deleting = f.now
			b := f.poolOf("b")
			b.Budgets = []cluster.Budget{{Active: true}}
			f.claim("n2").Pool = "b"
		}, "eager", "n1: the disruption budgets of NodePool default allow no more nodes to be replaced now; " +
			"n2: the disruption budgets of NodePool b allow no more nodes to be replaced now"},
		{"one of two is kept, so that the other may go", func(f *fleet) {
			f.single()
			f.sicken(time.Hour, "n2")
			no(f)
		}, "fence/n2; begin n2 $4",
			"n1: pod shop/p1 may not be evicted now (PodDoNotDisrupt), and nothing says after which time it may be: " +
				"set terminationGracePeriod in NodePool default"},
		{"a disruption budget keeps it", func(f *fleet) { f.guard(0, 1, 2) }, "",
			"n1: pod shop/p1 may not be evicted now (PDBBlocks), and nothing says after which time it may be: set " +
				"terminationGracePeriod in NodePool default"},
		{"two disruption budgets keep it", func(f *fleet) { f.guard(1, 1, 3); f.guard(1, 1, 3) }, "",
			"n1: pod shop/p1 may not be evicted now (SeveralPDBs), and nothing says after which time it may be: set " +
				"terminationGracePeriod in NodePool default"},
		{"a pod keeps it in vain", func(f *fleet) { no(f); f.claim("n1").HasTerminationGrace = true }, begins, ""},
		{"a pod keeps it in vain by the policy", func(f *fleet) {
			no(f)
			f.o.Repair.Policies[0].HasGrace = true
		}, begins, ""},
		{"a pod is expected", func(f *fleet) { f.run("new", "", 1).Nominated = "n1" }, begins, ""},
		{"pods have nowhere to go", func(f *fleet) {
			f.pool.NodeClass.Ready = false
			f.run("x", "n2", 4)
			f.run("y", "n3", 4)
		},
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded", ""},
	}
	for _, c := range cases {
		f := newFleet()
		f.sicken(10*time.Minute, "n1")
		c.change(f)
		r, _ := Execute(f.s.Seal(), f.set, f.o)
		if got := outcome(&r); got != c.want || notes(&r) != c.note {
			t.Errorf("%s: %q, want %q; told is %q, want %q", c.name, got, c.want, notes(&r), c.note)
		}
	}
}

// When an unhealthy node is looked at again.
func TestWhenSickNodesAreLookedAtAgain(t *testing.T) {
	for name, change := range map[string]func(f *fleet, at time.Time){
		"it is tolerated": func(f *fleet, at time.Time) { f.sicken(9*time.Minute, "n1") },
		"it rests":        func(f *fleet, at time.Time) { f.claim("n1").RestUntil = at },
		"a pod keeps it so": func(f *fleet, at time.Time) {
			f.pod("p1").DoNotDisrupt, f.pod("p1").DoNotDisruptUntil = true, at
		},
	} {
		f := newFleet()
		f.sicken(time.Hour, "n1")
		change(f, f.now.Add(time.Minute))
		if r, _ := Execute(f.s.Seal(), f.set, f.o); !r.WakeAt.Equal(f.now.Add(time.Minute)) {
			t.Errorf("%s: %s", name, r.WakeAt)
		}
	}
}

// A unhealthy node that is still ready takes up a place of the budgets; one that is not has done so before.
func TestWhatSickNodesTakeFromBudgets(t *testing.T) {
	for ready, want := range map[bool]int{true: 1, false: 0} {
		f := newFleet()
		f.sicken(time.Hour, "n1")
		f.host("n1").Ready = ready
		f.o.Budgets = NewBudgetTracker(f.s.Seal())
		before := f.o.Budgets.Remaining("default", command.Drifted)
		f.carry()
		if got := before - f.o.Budgets.Remaining("default", command.Drifted); got != want {
			t.Errorf("ready %t: %d are taken, want %d", ready, got, want)
		}
		f.run("x", "n2", 4)
		f.run("y", "n3", 4)
		f.pool.NodeClass.Ready = false // its pods have nowhere to go
		f.o.Budgets = NewBudgetTracker(f.s.Seal())
		if f.carry(); before != f.o.Budgets.Remaining("default", command.Drifted) {
			t.Errorf("ready %t: a repair that is given up leaves %d of %d", ready, f.o.Budgets.Remaining("default",
				command.Drifted), before)
		}
	}
}

// Nodes of no pool, and where it is asked for all, are ended at once.
func TestWhichSickNodesEnd(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"a node of a pool", func(f *fleet) {}, ""},
		{"a node of a pool, as it was before", func(f *fleet) { f.o.Repair.Legacy = true }, "delete/n1"},
		{"a node in a move, as it was before", func(f *fleet) {
			f.o.Repair.Legacy = true
			f.fenced(command.Drifted, "n1")
		}, "delete/n1"},
		{"a dry run, as it was before", func(f *fleet) {
			f.o.Repair.Legacy, f.pool.Overrides.DryRun = true, true
		}, "would n1"},
		{"a node of no pool", func(f *fleet) { f.claim("n1").Pool = "" }, "delete/n1"},
		{"a node of no pool, and the gate is off", func(f *fleet) {
			f.claim("n1").Pool, f.o.Repair.Enabled = "", false
		}, ""},
		{"a node of no pool, and the cause is elsewhere", func(f *fleet) {
			f.claim("n1").Pool, f.o.Repair.MaxUnhealthy = "", 0
		}, ""},
		{"a node of no pool that is kept", func(f *fleet) {
			f.claim("n1").Pool, f.claim("n1").DoNotRepair = "", true
		}, ""},
	}
	for _, c := range cases {
		f := newFleet()
		f.sicken(time.Hour, "n1")
		c.change(f)
		r := Repair(f.s.Seal(), f.o.Repair)
		if got := outcome(&r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What becomes of the repair of n1 that is under way: its pods have room on n2 and n3.
func TestWhatBecomesOfARepair(t *testing.T) {
	goes := "delete/n1"
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"nothing has changed", func(f *fleet) {}, goes},
		{"it is well again", func(f *fleet) {
			f.host("n1").Conditions = nil
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"it has fallen sick anew", func(f *fleet) {
			f.sicken(time.Minute, "n1")
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"people keep the node", func(f *fleet) {
			f.host("n1").DoNotRepair = true
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"people keep the claim", func(f *fleet) {
			f.claim("n1").DoNotRepair = true
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"the gate is off", func(f *fleet) {
			f.o.Repair.Enabled = false
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"many are sick", func(f *fleet) {
			f.sicken(time.Minute, "n2", "n3")
			f.o.Repair.MaxUnhealthy = 30
		}, "unfence/n1: ManyUnhealthy; give up n1: ManyUnhealthy"},
		{"two of three are sick where one may be", func(f *fleet) {
			f.sicken(time.Minute, "n2")
			f.o.Repair.MaxUnhealthy = 33
		}, "unfence/n1: ManyUnhealthy; give up n1: ManyUnhealthy"},
		{"two of three are sick where a little more than one may be", func(f *fleet) {
			f.sicken(time.Minute, "n2")
			f.o.Repair.MaxUnhealthy = 34
		}, goes},
		{"a pod is expected", func(f *fleet) { f.run("new", "", 1).Nominated = "n1" }, goes},
		{"a pod objects", func(f *fleet) {
			f.pod("p1").DoNotDisrupt = true
		}, "unfence/n1: PodDoNotDisrupt; give up n1: PodDoNotDisrupt"},
		{"a disruption budget allows nothing now", func(f *fleet) { f.guard(0, 1, 2) }, ""},
		{"a disruption budget never allows anything", func(f *fleet) {
			f.guard(0, 3, 3)
		}, "unfence/n1: PDBBlocks; give up n1: PDBBlocks"},
		{"a pod objects in vain", func(f *fleet) {
			f.pod("p1").DoNotDisrupt, f.o.Repair.Policies[0].HasGrace = true, true
		}, goes},
		{"two disruption budgets object in vain", func(f *fleet) {
			f.guard(1, 1, 3)
			f.guard(1, 1, 3)
			f.o.Repair.Policies[0].HasGrace = true
		}, goes},
		{"a disruption budget objects in vain", func(f *fleet) {
			f.guard(0, 1, 2)
			f.o.Repair.Policies[0].HasGrace = true
		}, goes},
		{"the planner fails on a pod of it that has no room", func(f *fleet) {
			f.s.Quarantine.Classes = map[string]cluster.Failure{f.pod("p1").Class.Key: {}}
			f.run("x", "n2", 4)
			f.run("y", "n3", 4)
		}, ""},
		{"a pod of a daemon has no room elsewhere", func(f *fleet) {
			f.o.Repair.Policies[0].HasGrace = true
			f.run("d", "n1", 6).Daemon = true
		}, goes},
		{"it has drifted instead, and a pod objects in vain", func(f *fleet) {
			f.drifted("n1")
			f.claim("n1").Conditions = slices.DeleteFunc(f.claim("n1").Conditions, func(c cluster.Condition) bool {
				return c.Type == cluster.DisruptionReason
			})
			f.fenced(command.Drifted, "n1")
			f.host("n1").Ready, f.host("n1").Conditions = true, nil
			f.claim("n1").HasTerminationGrace, f.pod("p1").DoNotDisrupt = true, true
			f.run("x", "n2", 4)
			f.run("y", "n3", 4)
		}, goes},
		{"a static pool has made another, and a pod objects in vain that has no room", func(f *fleet) {
			f.static1()
			f.o.Repair.Policies[0].HasGrace = true
			f.pod("p1").DoNotDisrupt = true
			f.replaced(f.claim("n1").Move, "new", "small")
			f.run("x", "n2", 4)
			f.run("y", "n3", 4)
			f.run("z", "new", 2)
		}, goes},
		{"a pod objects in vain, and there is no room for it", func(f *fleet) {
			f.pod("p1").DoNotDisrupt, f.o.Repair.Policies[0].HasGrace = true, true
			f.run("x", "n2", 4)
			f.run("y", "n3", 4)
		}, "want $1"},
		{"a disruption budget objects in vain, and there is no room for its pod", func(f *fleet) {
			f.guard(0, 3, 3)
			f.o.Repair.Policies[0].HasGrace = true
			f.run("x", "n2", 4)
			f.run("y", "n3", 4)
		}, "want $1"},
	}
	for _, c := range cases {
		f := newFleet()
		f.sicken(time.Hour, "n1")
		f.fenced(command.Unhealthy, "n1")
		c.change(f)
		if got := f.carry(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The pods of an unhealthy node that goes have the time that the policy and the node leave them.
func TestWhenPodsOfASickNodeMustBeGone(t *testing.T) {
	f := newFleet()
	f.sicken(time.Hour, "n1")
	f.fenced(command.Unhealthy, "n1")
	end := func() command.DeleteClaim {
		r, _ := Execute(f.s.Seal(), f.set, f.o)
		return r.Commands[0].(command.DeleteClaim)
	}
	if d := end(); !d.Deadline.IsZero() || d.Condition != "Ready" || d.Message != "condition Ready of node n1 has "+
		"been False for 10m0s or longer" {
		t.Errorf("nobody says anything: %+v", d)
	}
	f.o.Repair.Policies[0].HasGrace, f.o.Repair.Policies[0].Grace = true, 5*time.Minute
	if d := end(); !d.Deadline.Equal(f.now.Add(5 * time.Minute)) {
		t.Errorf("the policy says five minutes: %s", d.Deadline.Sub(f.now))
	}
	f.claim("n1").HasTerminationGrace, f.claim("n1").TerminationGrace = true, time.Minute
	if d := end(); !d.Deadline.Equal(f.now.Add(time.Minute)) {
		t.Errorf("the node says one minute: %s", d.Deadline.Sub(f.now))
	}
}
