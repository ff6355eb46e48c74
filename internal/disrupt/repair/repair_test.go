package repair

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Nodes of no pool, and where it is asked for all, are ended at once.
func TestWhichSickNodesEnd(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"a node of a pool", func(f *disrupttest.Fleet) {}, ""},
		{"a node of a pool, as it was before", func(f *disrupttest.Fleet) { f.O.Repair.Legacy = true }, "delete/n1"},
		{"a node in a move, as it was before", func(f *disrupttest.Fleet) {
			f.O.Repair.Legacy = true
			f.Fenced(command.Drifted, "n1")
		}, "delete/n1"},
		{"a dry run, as it was before", func(f *disrupttest.Fleet) {
			f.O.Repair.Legacy, f.Pool.Overrides.DryRun = true, true
		}, "would n1"},
		{"a node of no pool", func(f *disrupttest.Fleet) { f.Claim("n1").Pool = "" }, "delete/n1"},
		{"a node of no pool, and the gate is off", func(f *disrupttest.Fleet) {
			f.Claim("n1").Pool, f.O.Repair.Enabled = "", false
		}, ""},
		{"a node of no pool, and the cause is elsewhere", func(f *disrupttest.Fleet) {
			f.Claim("n1").Pool, f.O.Repair.MaxUnhealthy = "", 0
		}, ""},
		{"a node of no pool that is kept", func(f *disrupttest.Fleet) {
			f.Claim("n1").Pool, f.Claim("n1").DoNotRepair = "", true
		}, ""},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Sicken(time.Hour, "n1")
		c.change(f)
		r := EndUnhealthy(f.S.Seal(), f.O.Repair)
		if got := disrupttest.Outcome(&r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What is told of the budget for repairs is what repairs go by: a node that is not ready does not use it up.
func TestAllowanceOfRepairsIsThatOfRepair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 6).Draw(t, "nodes")
		s := &cluster.Snapshot{Now: time.Unix(1e6, 0),
			Pools: []*cluster.Pool{{Name: "p", Budgets: []cluster.Budget{{Nodes: rapid.IntRange(0, 6).Draw(t, "budget"),
				Active: true}}}}}
		up := []cluster.Condition{{Type: cluster.Registered, Status: cluster.True}, {Type: cluster.Initialized,
			Status: cluster.True}}
		unhealthy := 0
		for i := range total {
			name := fmt.Sprint("n", i)
			c := &cluster.Claim{Name: name, UID: name, ProviderID: name, Pool: "p", Conditions: up}
			n := &cluster.Node{Name: name, ProviderID: name, Ready: true}
			switch rapid.IntRange(0, 2).Draw(t, "state") {
			case 1:
				c.Deleting = s.Now
			case 2:
				n.Ready = false
				n.Conditions = []cluster.NodeCondition{{Type: "Ready", Status: "False"}}
				unhealthy++
			}
			s.Claims, s.Nodes = append(s.Claims, c), append(s.Nodes, n)
		}
		s.Seal()
		set := disrupt.RepairSettings{Enabled: true, Legacy: true, MaxUnhealthy: 100,
			Policies: []disrupt.RepairPolicy{{Type: "Ready", Status: "False"}}}
		allowed, out := disrupt.AllowedAndUnavailable(s, s.Pools[0], string(command.Unhealthy))
		if got, want := len(EndUnhealthy(s, set).Commands), min(unhealthy, max(allowed-out, 0)); got != want {
			t.Fatalf("%d of %d sick nodes are replaced; the allowance is %d of which %d are out", got, unhealthy,
				allowed, out)
		}
	})
}
