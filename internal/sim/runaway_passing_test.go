package sim

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestATaintThatPasses has an agent that taints each node until it is ready itself, 15 s later, and that nobody has
// declared as a startup taint: so do agents of networks. Ten pods that need a node each get the nodes that were made
// for them, and no others.
func TestATaintThatPasses(t *testing.T) {
	for _, kind := range []string{"taint NoSchedule", "taint NoExecute", "cordon"} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s %d", kind, seed), func(t *testing.T) { playPassingTaint(t, kind, seed) })
		}
	}
}

func playPassingTaint(t *testing.T, kind string, seed uint64) {
	const replicas, passes, patience = 10, 15 * time.Second, 2 * time.Minute
	s := newSim(seed, Options{})
	s.judge.unused.on = true
	pool := s.hourPool("general", kind)
	pool.Spec.Disruption.ConsolidateAfter, pool.Spec.Disruption.Budgets = lasting(0), []v1.Budget{{Nodes: "100%"}}
	small := s.cloud.types[0]
	spec := &pool.Spec.Template.Spec
	spec.Requirements = append(spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{small.Name},
	})
	s.store.create(pool)
	set := s.hourSet("victim", kind)
	count := int32(replicas)
	set.Spec.Replicas = &count
	half := apiresource.NewMilliQuantity(small.Capacity.Cpu().MilliValue()/2+1, apiresource.DecimalSI)
	set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *half}
	s.store.create(set)
	s.judge.unused.about(set.UID).share = 1
	a := s.startAgent(kind)
	a.from, a.delay, a.passes = "joined", 0, passes
	s.start()
	begin := s.clock.now
	for s.failure == nil && running(s, "victim") < replicas && s.clock.now.Before(begin.Add(patience)) {
		s.clock.runUntil(s.clock.now.Add(time.Second), s.over)
	}
	launched := 0
	for _, a := range s.judge.unused.of {
		launched += len(a.launched)
	}
	t.Logf("%d pods run after %s on %d machines", running(s, "victim"), s.clock.now.Sub(begin), launched)
	if s.failure != nil || running(s, "victim") < replicas || launched > replicas {
		t.Errorf("%d of %d pods run after %s, %d machines were launched for them: %v",
			running(s, "victim"), replicas, s.clock.now.Sub(begin), launched, s.failure)
	}
	for len(s.replicas) > 0 {
		s.replicas[0].kill()
	}
}

func running(s *Sim, app string) int {
	count := 0
	for _, p := range list[*corev1.Pod](s.store, pods) {
		if p.Labels["app"] == app && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			count++
		}
	}
	return count
}
