package execute

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/require"
)

// exodus is a city in which so many nodes have drifted, are fenced, and may go.
func exodus(n, leaving int) *cluster.Snapshot {
	s := disrupttest.City(n)
	for _, g := range s.PDBs {
		g.Allowed = 5
	}
	for _, p := range s.Pods {
		p.Class.Terms = []require.Set{nil}
	}
	p := s.Pools[0]
	p.Hash, p.HashVersion = "two", "v3"
	for i, c := range s.Claims {
		c.Hash, c.HashVersion = "two", "v3"
		for dim := range s.Nodes[i].Allocatable {
			s.Nodes[i].Allocatable[dim] = 1 << 40
		}
		if i >= leaving {
			continue
		}
		c.Hash, c.Move = "one", disrupt.MoveID(command.Drifted, []string{c.Name})
		c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.Drifted, Status: cluster.True,
			Reason: drift.PoolDrifted, Since: s.Now.Add(-time.Hour)},
			cluster.Condition{Type: cluster.DisruptionReason, Status: cluster.True, Reason: string(command.Drifted),
				Since: s.Now.Add(-time.Minute)})
		s.Nodes[i].Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	}
	s.InFlight["delete/elsewhere"] = true
	return s.Seal()
}

func BenchmarkCarryDepartures(b *testing.B) {
	s := exodus(10_000, 1_000)
	b.ResetTimer()
	for range b.N {
		r, _ := Moves(s, disrupt.Settings{}, Input{})
		if len(r.Commands) != 1_000 {
			b.Fatalf("%d commands, want 1,000 deletions", len(r.Commands))
		}
	}
}

// Who has gone counts at once, however often a pool's budget is asked, and nobody counts twice.
func TestBudgetsAreCountedOnceAndKept(t *testing.T) {
	s := exodus(100, 20)
	s.Pools[0].Budgets = []cluster.Budget{{Nodes: 12, Active: true}}
	s.Claims[3].Deleting, s.Nodes[50].Ready = s.Now, false // two are out already
	r, _ := Moves(s, disrupt.Settings{}, Input{})
	deleted := 0
	for _, c := range r.Commands {
		if _, ok := c.(command.DeleteClaim); ok {
			deleted++
		}
	}
	if deleted != 10 {
		t.Errorf("%d go, want 10: the budget is 12, and 2 are out", deleted)
	}
}
