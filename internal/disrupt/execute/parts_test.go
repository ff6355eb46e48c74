package execute

import (
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/require"
)

// What a replacement costs: what its claim says, what is asked for such a node, or the least that it may become.
func TestWhatAReplacementCosts(t *testing.T) {
	only := func(types ...string) require.Set {
		return require.Set{}.With(cluster.InstanceTypeLabel, require.Only(types...))
	}
	for _, c := range []struct {
		name   string
		change func(f *disrupttest.Fleet, c *cluster.Claim)
		want   string
	}{
		{"its claim says", func(f *disrupttest.Fleet, c *cluster.Claim) { c.Price = 7 }, "7 true"},
		{"its claim says, and the pool is gone", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Price, c.Pool = 7, "gone"
		}, "7 true"},
		{"the pool is gone", func(f *disrupttest.Fleet, c *cluster.Claim) { c.Pool = "gone" }, "0 false"},
		{"the catalog is not known", func(f *disrupttest.Fleet, c *cluster.Claim) { f.Pool.Catalog = nil }, "0 false"},
		{"it is known what it is", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Labels = disrupttest.LabelsFor("medium", "a", disrupt.OnDemand)
		}, "2 true"},
		{"nobody sells what it is", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Labels = disrupttest.LabelsFor("tiny", "a", disrupt.OnDemand)
		}, "0 false"},
		{"only its type is known", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Labels, c.Requirements = cluster.Labels{}.With(cluster.InstanceTypeLabel, "large"), only("large")
		}, "4 true"},
		{"it may be anything", func(f *disrupttest.Fleet, c *cluster.Claim) {}, "1 true"},
		{"it may be medium or large", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Requirements = only("medium", "large")
		}, "2 true"},
		{"it may be nothing that is sold", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Requirements = only("tiny")
		}, "0 false"},
		{"what it may be is sold out", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Pool.Catalog = f.Pool.Catalog.Without(func(o *cluster.Offering) bool { return o.Price < 4 })
		}, "4 true"},
		{"a label that only the claim has", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Labels, c.Requirements = cluster.Labels{}.With("team", "red"), require.Set{}.With("team",
				require.Only("red"))
		}, "1 true"},
	} {
		f := disrupttest.NewFleet()
		claim := &cluster.Claim{Name: "new", Pool: "default", Replaces: "underutilized-x"}
		f.S.Claims = append(f.S.Claims, claim)
		c.change(f, claim)
		price, known := saving.ReplacementPrice(f.S.Seal(), claim)
		if got := fmt.Sprint(price, known); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Which nodes count as gone when moves are looked at: those that other parts of the plan take away, and those that are
// fenced in no move, unless the plan opens them.
func TestWhoIsGone(t *testing.T) {
	ours := func(f *disrupttest.Fleet) {
		disrupttest.Taint(f.S, 0)
		f.Say("n1", cluster.DisruptionReason, string(command.Empty), f.Now)
	}
	for _, c := range []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   bool
	}{
		{"nothing", func(f *disrupttest.Fleet) {}, false},
		{"fenced by us", ours, true},
		{"fenced by us, and opened by the plan", func(f *disrupttest.Fleet) {
			ours(f)
			f.O.Commands = []command.Command{command.Unfence{Node: "n1"}}
		}, false},
		{"fenced by us for a move", func(f *disrupttest.Fleet) { f.Fenced(command.Drifted, "n1") }, false},
		{"fenced by somebody else", func(f *disrupttest.Fleet) { disrupttest.Taint(f.S, 0) }, false},
		{"interrupted", func(f *disrupttest.Fleet) {
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, true},
		{"advised", func(f *disrupttest.Fleet) {
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "rebalance"}
		}, false},
		{"advised, and in a move for that", func(f *disrupttest.Fleet) {
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "rebalance"}
			f.Fenced(command.Interrupted, "n1")
		}, true},
		{"fenced by the plan", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.Fence{Node: "n1"}}
		}, true},
		{"the plan deletes a claim without a node", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "other"}}
		}, false},
		{"deleted by the plan", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, true},
	} {
		f := disrupttest.NewFleet()
		c.change(f)
		x := newExecutor(f.S.Seal(), f.Set, input(f))
		if got := x.RemovedNodes["n1"]; got != c.want || x.RemovedNodes["n2"] || x.RemovedNodes[""] {
			t.Errorf("%s: %t, want %t: %v", c.name, got, c.want, x.RemovedNodes)
		}
	}
}
