package plan_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// later is the same snapshot seen after a while in which nothing has happened.
func later(s *cluster.Snapshot, by time.Duration) *cluster.Snapshot {
	out := *s
	out.Now = s.Now.Add(by)
	return &out
}

// sameWithMemory makes two plans, one of which knows the last, and fails unless they are equal.
func (n *storyRunner) sameWithMemory(s *cluster.Snapshot, before *plan.Plan) plan.Plan {
	n.t.Helper()
	with, without := plan.Make(s, n.policy, before, nil), plan.Make(s, n.policy, nil, nil)
	if a, b := n.w.printPlan(with, true), n.w.printPlan(without, true); a != b {
		n.fail("at %s, with a memory:\n%swithout:\n%s", s.Now, a, b)
	}
	return with
}

// While pods are counted nobody knows where they go. Once that is known the places of an interrupted node's pods are
// looked for again, although nothing has happened: a pod that came may have taken the room.
func TestAnInterruptionAsksAgainWhenPodsAreCounted(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	for _, line := range []string{
		"type small cpu=2 memory=8Gi price=0.10", "pool default", "node n1 pool=default type=small",
		"node n2 pool=default type=small",
		"pods web n=1 cpu=1500m node=n1", "pods api n=1 cpu=100m node=n2", "tick 1h", "settle",
		"interrupt n1 SpotInterruption in=2m", "plan", "act", "pods more n=1 desired=3 cpu=1500m",
	} {
		n.tell(line)
	}
	s := n.w.snapshot(nil)
	s.DemandRev, s.SupplyRev = 7, 7
	first := plan.Make(s, n.policy, nil, nil)
	if first.Provisioned {
		t.Fatal("the pods are not being counted")
	}
	second := n.sameWithMemory(later(s, 20*time.Second), &first)
	if !second.Provisioned || len(creates(&second)) != 1 {
		t.Errorf("one room for two pods:\n%s", n.w.printPlan(second, true))
	}
}

// A pod that must not be disturbed needs a place only when the deadline comes near: by time alone.
func TestAnInterruptionAsksAgainWhenADeadlineComesNear(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	for _, line := range []string{
		"type small cpu=2 memory=8Gi price=0.10", "pool default after=1h", "node n1 pool=default type=small",
		"pods keep n=1 cpu=1500m node=n1 grace=30s do-not-disrupt", "tick 1h", "settle",
		"interrupt n1 ScheduledChange in=20m", "plan", "act", "plan", "act", "plan", "act",
	} {
		n.tell(line)
	}
	s := n.w.snapshot(nil)
	s.DemandRev, s.SupplyRev = 7, 7
	first := plan.Make(s, n.policy, nil, nil)
	if len(creates(&first)) > 0 {
		t.Fatalf("a node is made too early:\n%s", n.w.printPlan(first, true))
	}
	if second := n.sameWithMemory(later(s, 10*time.Minute), &first); len(creates(&second)) != 1 {
		t.Errorf("no place is made:\n%s", n.w.printPlan(second, true))
	}
}
