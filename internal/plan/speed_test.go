package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// leavingNodes is a cluster of n nodes with ten pods each, of which so many have drifted, are fenced and may go.
func leavingNodes(n, leaving int) *cluster.Snapshot {
	w := newWorld()
	t := &storyRunner{w: w, policy: defaultPolicy()}
	t.tell("type large cpu=32 memory=128Gi price=1")
	t.tell("pool default hash=two budget=10%")
	catalog, label := w.catalog(), cluster.LabelsOf(map[string]string{"app": "web"})
	s := w.snapshot(nil)
	s.InFlight = map[string]bool{}
	kind, pool := catalog.Types[0], s.Pools[0]
	var need resource.Vector
	need[resource.CPU] = 500
	class := w.class("web", shape{requests: need})
	labels := catalog.Offerings[0].Labels.With(cluster.PoolLabel, pool.Name)
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		c := &cluster.Claim{Name: name, UID: name, Pool: pool.Name, ProviderID: name, NodeName: name, Labels: labels,
			Price: 1, Finalized: true,
			Capacity: kind.Capacity, Allocatable: kind.Allocatable, Hash: pool.Hash, HashVersion: pool.HashVersion,
			Created: s.Now.Add(-time.Hour)}
		for _, what := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: what, Status: cluster.True,
				Since: s.Now.Add(-time.Hour)})
		}
		node := &cluster.Node{Name: name, UID: name, ProviderID: name, Labels: labels, Capacity: kind.Capacity,
			Allocatable: kind.Allocatable, Ready: true, Ours: true, Finalized: true}
		if i < leaving {
			c.Hash, c.Move = "one", disrupt.MoveID(command.Drifted, []string{name})
			c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.Drifted, Status: cluster.True,
				Reason: drift.PoolDrifted, Since: s.Now.Add(-time.Hour)},
				cluster.Condition{Type: cluster.DisruptionReason, Status: cluster.True, Reason: string(command.Drifted),
					Since: s.Now.Add(-time.Minute)})
			node.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
		}
		s.Claims, s.Nodes = append(s.Claims, c), append(s.Nodes, node)
		for j := range 10 {
			s.Pods = append(s.Pods, &cluster.Pod{UID: fmt.Sprintf("%s-%d", name, j), Namespace: "default", Name: "web",
				Class: class, Labels: label,
				Owner: "web", Node: name, Ready: true, Phase: "Running", EvictionCost: 1})
		}
	}
	return s.Seal()
}

func BenchmarkCheckDepartures(b *testing.B) {
	s := leavingNodes(10_000, 1_000)
	p := plan.Make(s, defaultPolicy(), nil, nil)
	b.ResetTimer()
	for range b.N {
		deleted := 0
		for _, c := range plan.Check(p, s).Commands {
			if _, ok := c.(command.DeleteClaim); ok {
				deleted++
			}
		}
		if deleted != 1_000 {
			b.Fatalf("%d go, want 1,000", deleted)
		}
	}
}
