package disrupttest

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Quiet is a pool of n empty nodes that have been left alone for long, under a budget of one.
func Quiet(n int) *cluster.Snapshot {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	s := &cluster.Snapshot{Now: now, InFlight: map[string]bool{}, Pools: []*cluster.Pool{{
		Name: "default", Budgets: []cluster.Budget{{Nodes: 1, Active: true}}}}}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		s.Nodes = append(s.Nodes, &cluster.Node{Name: name, ProviderID: "cloud://" + name, Ready: true})
		s.Claims = append(s.Claims, &cluster.Claim{Name: name, Pool: "default", ProviderID: "cloud://" + name,
			LastPodEvent: now.Add(-time.Hour), Conditions: []cluster.Condition{{Type: cluster.Initialized,
				Status: cluster.True, Since: now.Add(-2 * time.Hour)}}})
	}
	return s
}

// Taint fences a node.
func Taint(s *cluster.Snapshot, i int) {
	s.Nodes[i].Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
}

// Mark writes on a claim why its node is disrupted.
func Mark(s *cluster.Snapshot, i int, reason command.Reason) {
	s.Claims[i].Conditions = append(s.Claims[i].Conditions, cluster.Condition{Type: cluster.DisruptionReason,
		Status: cluster.True, Reason: string(reason)})
}
