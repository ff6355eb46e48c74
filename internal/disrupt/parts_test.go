package disrupt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
)

// How many pods a workload has: what its owner wants, or else those that are there.
func TestSizesOfWorkloads(t *testing.T) {
	h := newHouse()
	add := func(name string, change func(p *cluster.Pod)) {
		p := tenant(name, "loose")
		change(p)
		h.s.Pods = append(h.s.Pods, p)
	}
	for _, name := range []string{"a", "b", "c"} {
		add(name, func(*cluster.Pod) {})
	}
	add("done", func(p *cluster.Pod) { p.Finished = true })
	add("daemon", func(p *cluster.Pod) { p.Daemon = true })
	add("mirror", func(p *cluster.Pod) { p.Mirror = true })
	add("leaving", func(p *cluster.Pod) { p.Deleting = h.s.Now })
	for _, name := range []string{"d", "e"} { // one of them is about to go
		add(name, func(p *cluster.Pod) { p.Owner = "single" })
	}
	h.s.Owners["unknown"], h.s.Owners["none"] = cluster.Owner{UID: "unknown", Desired: 9}, cluster.Owner{UID: "none",
		Known: true}
	h.s.Owners["single"] = cluster.Owner{UID: "single", Known: true, Desired: 1}
	rates := NewEvictionRates(h.s.Seal(), h.set)
	for owner, want := range map[string]int{"deploy": 2, "loose": 3, "stateful": 1, "single": 1, "unknown": 1,
		"none": 1, "stranger": 1} {
		if got := rates.workloadSize(owner); got != want {
			t.Errorf("%s has %d pods, want %d", owner, got, want)
		}
	}
}

// What a replacement costs: what its claim says, what is asked for such a node, or the least that it may become.
func TestWhatAReplacementCosts(t *testing.T) {
	only := func(types ...string) require.Set {
		return require.Set{}.With(cluster.InstanceTypeLabel, require.Only(types...))
	}
	for _, c := range []struct {
		name   string
		change func(f *fleet, c *cluster.Claim)
		want   string
	}{
		{"its claim says", func(f *fleet, c *cluster.Claim) { c.Price = 7 }, "7 true"},
		{"its claim says, and the pool is gone", func(f *fleet, c *cluster.Claim) {
			c.Price, c.Pool = 7, "gone"
		}, "7 true"},
		{"the pool is gone", func(f *fleet, c *cluster.Claim) { c.Pool = "gone" }, "0 false"},
		{"the catalog is not known", func(f *fleet, c *cluster.Claim) { f.pool.Catalog = nil }, "0 false"},
		{"it is known what it is", func(f *fleet, c *cluster.Claim) {
			c.Labels = labelsFor("medium", "a", onDemand)
		}, "2 true"},
		{"nobody sells what it is", func(f *fleet, c *cluster.Claim) {
			c.Labels = labelsFor("tiny", "a", onDemand)
		}, "0 false"},
		{"only its type is known", func(f *fleet, c *cluster.Claim) {
			c.Labels, c.Requirements = cluster.Labels{}.With(cluster.InstanceTypeLabel, "large"), only("large")
		}, "4 true"},
		{"it may be anything", func(f *fleet, c *cluster.Claim) {}, "1 true"},
		{"it may be medium or large", func(f *fleet, c *cluster.Claim) {
			c.Requirements = only("medium", "large")
		}, "2 true"},
		{"it may be nothing that is sold", func(f *fleet, c *cluster.Claim) {
			c.Requirements = only("tiny")
		}, "0 false"},
		{"what it may be is sold out", func(f *fleet, c *cluster.Claim) {
			f.pool.Catalog = f.pool.Catalog.Without(func(o *cluster.Offering) bool { return o.Price < 4 })
		}, "4 true"},
		{"a label that only the claim has", func(f *fleet, c *cluster.Claim) {
			c.Labels, c.Requirements = cluster.Labels{}.With("team", "red"), require.Set{}.With("team",
				require.Only("red"))
		}, "1 true"},
	} {
		f := newFleet()
		claim := &cluster.Claim{Name: "new", Pool: "default", Replaces: "underutilized-x"}
		f.s.Claims = append(f.s.Claims, claim)
		c.change(f, claim)
		price, known := newExecutor(f.s.Seal(), f.set, f.o).replacementPrice(claim)
		if got := fmt.Sprint(price, known); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Which nodes count as gone when moves are looked at: those that other parts of the plan take away, and those that are
// fenced in no move, unless the plan opens them.
func TestWhoIsGone(t *testing.T) {
	ours := func(f *fleet) {
		taint(f.s, 0)
		f.say("n1", cluster.DisruptionReason, string(command.Empty), f.now)
	}
	for _, c := range []struct {
		name   string
		change func(f *fleet)
		want   bool
	}{
		{"nothing", func(f *fleet) {}, false},
		{"fenced by us", ours, true},
		{"fenced by us, and opened by the plan", func(f *fleet) {
			ours(f)
			f.o.Commands = []command.Command{command.Unfence{Node: "n1"}}
		}, false},
		{"fenced by us for a move", func(f *fleet) { f.fenced(command.Drifted, "n1") }, false},
		{"fenced by somebody else", func(f *fleet) { taint(f.s, 0) }, false},
		{"interrupted", func(f *fleet) {
			f.claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, true},
		{"advised", func(f *fleet) { f.claim("n1").Interruption = cluster.Interruption{Kind: "rebalance"} }, false},
		{"advised, and in a move for that", func(f *fleet) {
			f.claim("n1").Interruption = cluster.Interruption{Kind: "rebalance"}
			f.fenced(command.Interrupted, "n1")
		}, true},
		{"fenced by the plan", func(f *fleet) { f.o.Commands = []command.Command{command.Fence{Node: "n1"}} }, true},
		{"the plan deletes a claim without a node", func(f *fleet) {
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "other"}}
		}, false},
		{"deleted by the plan", func(f *fleet) {
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, true},
	} {
		f := newFleet()
		c.change(f)
		x := newExecutor(f.s.Seal(), f.set, f.o)
		if got := x.removedNodes["n1"]; got != c.want || x.removedNodes["n2"] || x.removedNodes[""] {
			t.Errorf("%s: %t, want %t: %v", c.name, got, c.want, x.removedNodes)
		}
	}
}

// A claim is told from others even before it has a UID.
func TestIdentities(t *testing.T) {
	if a, b := ClaimIdentity(&cluster.Claim{Name: "a"}), ClaimIdentity(&cluster.Claim{Name: "b"}); a == "" || a == b {
		t.Errorf("%q and %q", a, b)
	}
}

// Which fences come down because the planner fails.
func TestWhatIsWithdrawn(t *testing.T) {
	fails := func(f *fleet) { f.s.Quarantine.Claims = map[string]cluster.Failure{"n1": {}} }
	opens := "unfence/n1: PlannerFails, rests; give up n1: PlannerFails"
	for _, c := range []struct {
		name     string
		change   func(f *fleet)
		part     string
		whenever string // if it fails on everything
	}{
		{"a node in a move", func(f *fleet) {}, opens, opens},
		{"the planner does not fail on it", func(f *fleet) { f.s.Quarantine.Claims = nil }, "", opens},
		{"the planner fails on another of the move", func(f *fleet) {
			f.fenced(command.Drifted, "n1", "n2")
			f.claim("n1").Conditions = f.claim("n1").Conditions[:4]
		}, "unfence/n1: PlannerFails, rests; unfence/n2: PlannerFails, rests; give up n1+n2: PlannerFails",
			"unfence/n1: PlannerFails, rests; unfence/n2: PlannerFails, rests; give up n1+n2: PlannerFails"},
		{"nothing is left of the fence of its move", func(f *fleet) {
			f.host("n1").Taints = nil
			c := f.claim("n1")
			c.Conditions = c.Conditions[:3]
		}, opens, opens},
		{"two moves", func(f *fleet) { f.fenced(command.Expired, "n2") }, opens,
			"unfence/n1: PlannerFails, rests; unfence/n2: PlannerFails, rests; give up n1: PlannerFails; give up n2: " +
				"PlannerFails"},
		{"a fence of no move", func(f *fleet) {
			f.claim("n1").Move = ""
		}, "unfence/n1: PlannerFails, rests", "unfence/n1: PlannerFails, rests"},
		{"only the reason is written", func(f *fleet) {
			f.claim("n1").Move, f.host("n1").Taints = "", nil
		}, "unfence/n1: PlannerFails, rests", "unfence/n1: PlannerFails, rests"},
		{"a node that is not fenced", func(f *fleet) {
			f.claim("n1").Move, f.host("n1").Taints = "", nil
			c := f.claim("n1")
			c.Conditions = c.Conditions[:3]
		}, "", ""},
		{"a sick node", func(f *fleet) { f.claim("n1").Move = "unhealthy-x" }, "", ""},
		{"a node that is interrupted", func(f *fleet) {
			f.claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, "", ""},
		{"a node that was advised to go", func(f *fleet) { f.claim("n1").Move = "interrupted-x" }, "", ""},
		{"a claim on its way out", func(f *fleet) { f.claim("n1").Deleting = f.now }, "", ""},
		{"a node on its way out", func(f *fleet) { f.host("n1").Deleting = f.now }, "", ""},
		{"a claim without a node", func(f *fleet) { f.s.Nodes = f.s.Nodes[1:] }, "", ""},
		{"a node that is being opened", func(f *fleet) { f.s.InFlight["unfence/n1"] = true }, "", ""},
	} {
		f := newFleet()
		fails(f)
		f.fenced(command.Drifted, "n1")
		c.change(f)
		part, all := ReopenQuarantined(f.s.Seal(), false), ReopenQuarantined(f.s, true)
		if got, whenever := outcome(&part), outcome(&all); got != c.part || whenever != c.whenever {
			t.Errorf("%s: %q, and if all fails %q; want %q and %q", c.name, got, whenever, c.part, c.whenever)
		}
	}
}

// What a pool that balances makes of a move: the part of its price that is saved, over the part of it that is
// disturbed.
func TestWhenAMoveIsBalanced(t *testing.T) {
	whole := PoolTotal{Price: 10, Cost: 10}
	for _, c := range []struct {
		total        PoolTotal
		saving, cost float64
		want         float64
	}{
		{whole, 1, 2, 0.5}, {whole, 2, 1, 2}, {whole, 0, 1, 0}, {whole, -1, 1, 0}, {whole, 1, 0, 0},
		{PoolTotal{Price: 0, Cost: 10}, 1, 1, 0}, {PoolTotal{Price: 10}, 1, 1, 0},
	} {
		if got := c.total.Score(c.saving, c.cost); got != c.want {
			t.Errorf("%+v saves %g and costs %g: %g, want %g", c.total, c.saving, c.cost, got, c.want)
		}
	}
	a, b := &cluster.Pool{Name: "a", Policy: cluster.Balanced}, &cluster.Pool{Name: "b", Policy: cluster.Balanced}
	goes := func(p *cluster.Pool, price, cost float64) Candidate {
		return Candidate{Claim: &cluster.Claim{Name: p.Name}, Node: &cluster.Node{Name: p.Name}, Pool: p, Price: price,
			Cost: cost}
	}
	totals := PoolTotals{"a": whole, "b": whole}
	if blocked := totals.Approves(Settings{}, []Candidate{goes(a, 4, 2)}, 1); blocked != nil {
		t.Errorf("a move that is just good enough: %+v", *blocked)
	}
	if blocked := totals.Approves(Settings{}, []Candidate{goes(a, 4, 2)}, 0.9); blocked == nil ||
		blocked.NeededSaving != 1 || blocked.Saving != 0.9 {
		t.Errorf("one that is not: %+v", blocked)
	}
	// The saving is split by price: 3 of 4 parts are a's.
	if blocked := totals.Approves(Settings{}, []Candidate{goes(b, 1, 2), goes(a, 3, 2)}, 2); blocked == nil ||
		blocked.Claim != "b" || blocked.Saving != 0.5 {
		t.Errorf("one of two pools: %+v, want b's no", blocked)
	}
	if blocked := totals.Approves(Settings{}, []Candidate{goes(b, 1, 9), goes(a, 1, 9)}, 2); blocked == nil ||
		blocked.Claim != "a" {
		t.Errorf("both pools: %+v, want the first by name", blocked)
	}
}

// How long replacements of drifted nodes are watched, and why none can be made in a static pool.
func TestDriftOfPoolsIsToldApart(t *testing.T) {
	s := rolling(1, 0, 0)
	for _, c := range []struct{ own, set, want time.Duration }{{time.Hour, time.Minute, time.Hour},
		{0, time.Minute, time.Minute}, {0, 0, 10 * time.Minute}} {
		s.Pools[0].Overrides.CanaryWatch = c.own
		if got := NewRollouts(s, Settings{DriftWatch: c.set}).canaryWatch(s.Pools[0]); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	for _, c := range []struct {
		name   string
		change func(f *fleet)
		want   bool
	}{
		{"the limit leaves no room", func(f *fleet) {}, true},
		{"the limit leaves room", func(f *fleet) { f.pool.Limits.Nodes = 4 }, false},
		{"the pool is not static", func(f *fleet) { f.pool.Static = false }, false},
		{"the pool can't be read", func(f *fleet) { f.pool.Problems = []cluster.Problem{{}} }, false},
		{"the class is not ready", func(f *fleet) { f.pool.NodeClass.Ready = false }, false},
		{"the catalog is not known", func(f *fleet) { f.pool.Catalog = nil }, false},
		{"nothing has drifted", func(f *fleet) { c := f.claim("n1"); c.Conditions = c.Conditions[:3] }, false},
		{"what has drifted goes", func(f *fleet) { f.claim("n1").Deleting = f.now }, false},
		{"one is under way", func(f *fleet) { f.fenced(command.Drifted, "n2") }, false},
		{"another move is under way", func(f *fleet) { f.fenced(command.Unhealthy, "n2") }, true},
		{"one is being fenced", func(f *fleet) { f.s.InFlight["fence/n1"] = true }, false},
	} {
		f := staticFleet(3)
		f.pool.Limits = cluster.Limits{HasNodes: true, Nodes: 3}
		f.drifted("n1")
		c.change(f)
		if got := NewRollouts(f.s.Seal(), f.set).DriftCondition(f.pool); strings.HasPrefix(got.Reason,
			"NoRoom") != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
