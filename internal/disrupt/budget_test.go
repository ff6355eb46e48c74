package disrupt_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/render"
)

// drawPool draws a pool with budgets and nodes in all states.
func drawPool(t *rapid.T) *cluster.Snapshot {
	p := &cluster.Pool{Name: "p"}
	for range rapid.IntRange(0, 4).Draw(t, "budgets") {
		b := cluster.Budget{Nodes: rapid.IntRange(0, 12).Draw(t, "nodes"), Active: rapid.Bool().Draw(t, "active"),
			Broken: rapid.IntRange(0, 9).Draw(t, "broken") == 0}
		if rapid.Bool().Draw(t, "percent") {
			b.Percent, b.Nodes = true, b.Nodes*9
		}
		for _, r := range disrupt.BudgetReasons() {
			if rapid.IntRange(0, 2).Draw(t, "reason") == 0 {
				b.Reasons = append(b.Reasons, string(r))
			}
		}
		p.Budgets = append(p.Budgets, b)
	}
	s := &cluster.Snapshot{Pools: []*cluster.Pool{p}, InFlight: map[string]bool{}}
	is := func(kind string) cluster.Condition { return cluster.Condition{Type: kind, Status: cluster.True} }
	for i := range rapid.IntRange(0, 25).Draw(t, "claims") {
		name := fmt.Sprintf("n%02d", i)
		c := &cluster.Claim{Name: name, Pool: "p", ProviderID: name}
		n := &cluster.Node{Name: name, ProviderID: name, Ready: true}
		odd := func(what string) bool { return rapid.IntRange(0, 7).Draw(t, what) == 0 }
		if !odd("joining") {
			c.Conditions = append(c.Conditions, is(cluster.Registered))
			if !odd("coming") {
				c.Conditions = append(c.Conditions, is(cluster.Initialized))
			}
		}
		if odd("ending") {
			c.Conditions = append(c.Conditions, is(cluster.InstanceTerminating))
		}
		if odd("deleting") {
			c.Deleting = time.Unix(1, 0)
		}
		if odd("moving") {
			c.Move = "m"
		}
		if odd("fenced") {
			n.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
		}
		if odd("leaving") {
			n.Deleting = time.Unix(1, 0)
		}
		if odd("interrupted") {
			c.Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}
		n.Ready = !odd("sick")
		s.InFlight["fence/"+name] = odd("busy")
		s.Claims = append(s.Claims, c)
		if !odd("lost") {
			s.Nodes = append(s.Nodes, n)
		}
	}
	return s.Seal()
}

// twinLeft is what the contract says about budgets, in so many words. Repairs, of which it says nothing, may be of
// nodes that have joined and are not up, and those that are not ready don't stand in the way.
func twinLeft(s *cluster.Snapshot, reason string) int {
	total, away := 0.0, 0
	for _, c := range s.Claims {
		if reason == string(command.Unhealthy) {
			if n := s.NodeOf(c.Name); n != nil && c.Is(cluster.Registered) && !c.Is(cluster.InstanceTerminating) {
				total++
				if !c.Deleting.IsZero() || !n.Deleting.IsZero() || len(n.Taints) > 0 || s.InFlight["fence/"+n.Name] {
					away++
				}
			}
			continue
		}
		if c.Condition(cluster.Initialized).Status == cluster.True &&
			c.Condition(cluster.InstanceTerminating).Status != cluster.True {
			total++
			n := s.NodeOf(c.Name)
			bad := n == nil
			bad = bad || !n.Ready
			bad = bad || !c.Deleting.IsZero() || !n.Deleting.IsZero() || c.Interruption.Kind != ""
			bad = bad || len(n.Taints) > 0 || c.Move == "m"
			bad = bad || s.InFlight["fence/"+n.Name]
			if bad {
				away++
			}
		}
	}
	least := total
	for _, b := range s.Pools[0].Budgets {
		names := len(b.Reasons) == 0
		for _, r := range b.Reasons {
			names = names || r == reason
		}
		switch {
		case b.Broken && (!b.Active || names):
			least = 0
		case !b.Active || !names:
		case b.Percent:
			least = math.Min(least, math.Ceil(total*float64(b.Nodes)/100))
		default:
			least = math.Min(least, float64(b.Nodes))
		}
	}
	return int(least) - away
}

// The budget tracker leaves what the contract leaves, and what is taken for one reason is gone for all.
func TestLedgerIsTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawPool(t)
		budgets := disrupt.NewBudgetTracker(s)
		taken := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			reason := rapid.SampledFrom(disrupt.BudgetReasons()).Draw(t, "reason")
			left := twinLeft(s, string(reason)) - taken
			if got := budgets.Remaining("p", reason); got != left {
				t.Fatalf("%s: %d left, want %d", reason, got, left)
			}
			if allowed, out := disrupt.AllowedAndUnavailable(s, s.Pools[0], string(reason)); allowed-out != left+taken {
				t.Fatalf("%s: allowance %d of which %d are out, want %d left", reason, allowed, out, left+taken)
			}
			switch n := rapid.IntRange(0, 4).Draw(t, "n"); {
			case rapid.IntRange(0, 3).Draw(t, "give") == 0:
				budgets.Return("p", n)
				taken -= n
			case budgets.Reserve("p", reason, n):
				if n > left {
					t.Fatalf("%s: took %d of %d", reason, n, left)
				}
				taken += n
			case n <= left:
				t.Fatalf("%s: could not take %d of %d", reason, n, left)
			}
		}
	})
}

// A move takes all of its nodes or none.
func TestAMoveTakesAllOrNone(t *testing.T) {
	s := &cluster.Snapshot{InFlight: map[string]bool{}}
	of := make(map[string][]disrupt.Candidate)
	for _, pool := range []string{"a", "b"} {
		s.Pools = append(s.Pools, &cluster.Pool{Name: pool, Budgets: []cluster.Budget{{Nodes: 2, Active: true}}})
		for i := range 4 {
			name := fmt.Sprint(pool, i)
			c := &cluster.Claim{Name: name, Pool: pool, ProviderID: name,
				Conditions: []cluster.Condition{{Type: cluster.Initialized, Status: cluster.True}}}
			s.Claims, s.Nodes = append(s.Claims, c), append(s.Nodes, &cluster.Node{Name: name, ProviderID: name,
				Ready: true})
			of[pool] = append(of[pool], disrupt.Candidate{Claim: c})
		}
	}
	budgets := disrupt.NewBudgetTracker(s.Seal())
	if budgets.ReserveAll(append(of["b"][:3:3], of["a"][0]), command.Drifted) {
		t.Errorf("three of a pool went under a budget of two")
	}
	if budgets.Remaining("a", command.Drifted) != 2 || budgets.Remaining("b", command.Empty) != 2 {
		t.Errorf("a move that did not go took %d and %d", 2-budgets.Remaining("a", command.Drifted),
			2-budgets.Remaining("b", command.Empty))
	}
	if !budgets.ReserveAll(append(of["b"][:2:2], of["a"][0]), command.Drifted) || budgets.Remaining("a",
		command.Empty) != 1 || budgets.Remaining("b", command.Empty) != 0 {
		t.Errorf("a move of two and one: %d and %d left", budgets.Remaining("a", command.Empty),
			budgets.Remaining("b", command.Empty))
	}
	if budgets.Reserve("c", command.Empty, 1) || budgets.Remaining("c", command.Empty) != 0 {
		t.Errorf("a node of a pool that is not there was taken")
	}
}

// What a pool's status says about its budgets.
func TestBudgetsAreTold(t *testing.T) {
	five, six := time.Date(2026, 11, 15, 17, 0, 0, 0, time.UTC), time.Date(2026, 11, 15, 18, 0, 0, 0, time.UTC)
	ten := cluster.Budget{Nodes: 10, Percent: true, Active: true}
	cases := []struct {
		name    string
		nodes   int64
		budgets []cluster.Budget
		status  cluster.ConditionStatus
		reason  string
		message string
	}{
		{"the default", 42, []cluster.Budget{ten}, cluster.True, "BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 5 (budgets[0], 10%)"},
		{"none", 3, nil, cluster.True, "BudgetsAllow", "of 3 nodes at the same time: Empty, Underutilized, Drifted, " +
			"Unhealthy: all, no budget holds"},
		{"more than there are", 3, []cluster.Budget{{Nodes: math.MaxInt32, Active: true}}, cluster.True, "BudgetsAllow",
			"of 3 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 3 (budgets[0], 2147483647)"},
		{"no nodes yet", 0, []cluster.Budget{ten}, cluster.True, "BudgetsAllow",
			"of 0 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 0 (budgets[0], 10%)"},
		{"closed in the daytime", 42, []cluster.Budget{ten, {Active: true, ChangesAt: five,
			Reasons: []string{"Underutilized"}}}, cluster.False, "SomeReasonsBlocked",
			"of 42 nodes at the same time: Empty, Drifted, Unhealthy: up to 5 (budgets[0], 10%); Underutilized: none " +
				"(budgets[1], 0) until 2026-11-15T17:00:00Z"},
		{"will be closed", 42, []cluster.Budget{ten, {ChangesAt: five, Reasons: []string{"Drifted"}}}, cluster.True,
			"BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Unhealthy: up to 5 (budgets[0], 10%); Drifted: up " +
				"to 5 (budgets[0], 10%), from 2026-11-15T17:00:00Z on budgets[1], 0"},
		{"what is next is told", 42, []cluster.Budget{{Nodes: 7, Active: true, ChangesAt: six},
			{Nodes: 3, ChangesAt: five}}, cluster.True, "BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 7 (budgets[0], 7), from " +
				"2026-11-15T17:00:00Z on budgets[1], 3"},
		{"what is next comes first in the list", 42, []cluster.Budget{{Nodes: 3, ChangesAt: five},
			{Nodes: 7, Active: true, ChangesAt: six}}, cluster.True, "BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 7 (budgets[1], 7), from " +
				"2026-11-15T17:00:00Z on budgets[0], 3"},
		{"of two that come the first in time is told", 42, []cluster.Budget{{Nodes: 3, ChangesAt: six},
			{Nodes: 2, ChangesAt: five}, {Nodes: 7, Active: true}}, cluster.True, "BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 7 (budgets[2], 7), from " +
				"2026-11-15T17:00:00Z on budgets[1], 2"},
		{"of two that come at the same time the first in the list is told", 42,
			[]cluster.Budget{{Nodes: 3, ChangesAt: five}, {Nodes: 2, ChangesAt: five}, {Nodes: 7, Active: true}},
			cluster.True, "BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 7 (budgets[2], 7), from " +
				"2026-11-15T17:00:00Z on budgets[0], 3"},
		{"what will allow as many is not told", 42, []cluster.Budget{{Nodes: 7, Active: true},
			{Nodes: 7, ChangesAt: five}}, cluster.True, "BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 7 (budgets[0], 7)"},
		{"what changes nothing is not told", 42, []cluster.Budget{{Nodes: 7, Active: true},
			{Nodes: 30, ChangesAt: five}, {Nodes: 90, Percent: true, Active: true, ChangesAt: five}}, cluster.True,
			"BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 7 (budgets[0], 7)"},
		{"of two that allow the same the first is told", 42, []cluster.Budget{{Nodes: 7, Active: true},
			{Nodes: 7, Active: true}}, cluster.True, "BudgetsAllow",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: up to 7 (budgets[0], 7)"},
		{"can't be read", 42, []cluster.Budget{ten, {Nodes: 7, Broken: true}}, cluster.False, "AllReasonsBlocked",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: none (budgets[1] can't be read)"},
		{"closed for good", 42, []cluster.Budget{{Active: true}}, cluster.False, "AllReasonsBlocked",
			"of 42 nodes at the same time: Empty, Underutilized, Drifted, Unhealthy: none (budgets[0], 0)"},
	}
	for _, c := range cases {
		got := render.Condition(disrupt.BudgetsCondition(&cluster.Pool{Name: "p", Budgets: c.budgets}, c.nodes))
		if want := (cluster.Condition{Type: cluster.BudgetsAllow, Status: c.status, Reason: c.reason,
			Message: c.message}); got != want {
			t.Errorf("%s:\n%+v\nwant\n%+v", c.name, got, want)
		}
	}
}

// A line says what the budgets allow at this moment and how many nodes are out.
func TestBudgetsInALine(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Pool.Budgets[0].Nodes = 50
	f.Host("n3").Ready = false
	if got, want := render.Text(disrupt.AllowedNow(f.S.Seal(), f.Pool, command.Drifted)), "up to 2 (budgets[0], 50%) "+
		"of 3 "+
		"nodes, and "+
		"1 are out"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
