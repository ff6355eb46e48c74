package plan_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/plan"
)

// waitingMove is a move that waits for its replacement, one snapshot after the other.
func waitingMove(t *testing.T) *storyRunner {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	for _, line := range []string{
		"type small cpu=2 memory=8Gi price=0.10", "type large cpu=8 memory=32Gi price=0.40",
		"pool default policy=WhenEmptyOrUnderutilized after=0s", "node n1 pool=default type=large",
		"node n2 pool=default type=large",
		"pods web n=1 cpu=1 node=n1", "pods api n=1 cpu=1 node=n2", "tick 1h", "settle", "cloud silent",
		"propose n1 n2", "plan", "act", "settle",
	} {
		n.tell(line)
	}
	return n
}

// While nothing changes, the pods of a move that waits are not placed again: what the last plan knew is taken over, and
// gives the same plan.
func TestAMoveThatWaitsIsNotPlacedAgain(t *testing.T) {
	n := waitingMove(t)
	s := n.w.snapshot(nil)
	s.DemandRev, s.SupplyRev = 7, 7
	first := plan.Make(s, n.policy, nil, nil)
	second := plan.Make(s, n.policy, &first, nil)
	if a, b := n.w.printPlan(first, true), n.w.printPlan(second, true); a != b {
		t.Fatalf("with a memory:\n%swithout:\n%s", b, a)
	}
	fresh := testing.AllocsPerRun(20, func() { plan.Make(s, n.policy, nil, nil) })
	known := testing.AllocsPerRun(20, func() { plan.Make(s, n.policy, &first, nil) })
	if known > 0.8*fresh {
		t.Errorf("a plan that knows the last one allocates %.0f times, one that does not %.0f times", known, fresh)
	}

	// The room is gone and nobody has said so: whoever looked again would ask for another node.
	n.tell("pods late n=1 cpu=1500m node=n1")
	s = n.w.snapshot(nil)
	s.DemandRev, s.SupplyRev = 7, 7
	if p := plan.Make(s, n.policy, &first, nil); len(creates(&p)) > 0 {
		t.Error("the pods were placed again although nothing is said to have changed")
	}
	s.SupplyRev = 8
	if p := plan.Make(s, n.policy, &first, nil); len(creates(&p)) == 0 {
		t.Error("the pods were not placed again although something has changed")
	}
}
