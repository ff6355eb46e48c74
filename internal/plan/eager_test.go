package plan_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/plan"
)

// A plan is eager while something waits for what is happening already, and only then: whoever waits for a budget that
// allows nothing waits for people.
func TestEagerPlans(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	look := func(what string, want bool) {
		t.Helper()
		p := plan.Make(n.w.snapshot(nil), n.policy, nil, nil)
		if p.PlanSoon != want {
			t.Errorf("%s: eager is %v", what, p.PlanSoon)
		}
		n.w.act(p, -1)
	}
	for _, line := range []string{"type small cpu=2 memory=8Gi price=0.10", "pool default budget=1 hash=one",
		"node n1 pool=default type=small", "node n2 pool=default type=small", "node n3 pool=default type=small",
		"pods web n=1 cpu=1500m node=n1", "pods web n=1 cpu=1500m node=n2", "pods web n=1 cpu=1500m node=n3", "tick 1h",
		"settle"} {
		n.tell(line)
	}
	look("all is well", false)
	n.tell("pool default hash=two")
	look("it is being written that nodes have drifted", true)
	look("the first begins", true)
	look("the others wait for it", true)
	n.tell("pool default no-budgets budget=0")
	look("nothing is allowed any more", false)
}
