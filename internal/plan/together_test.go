package plan_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// A plan tells only of moves that its commands begin or give up, be it that one waits for another try or that a newer
// snapshot forbids it.
func TestPlansTellOfWhatTheyDo(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	for _, line := range []string{
		"type small cpu=2 memory=8Gi price=0.10", "type large cpu=8 memory=32Gi price=0.40",
		"pool default policy=WhenEmptyOrUnderutilized after=0s hash=one no-budgets", "node n1 pool=default type=large",
		"node n2 pool=default type=large",
		"node n3 pool=default type=large", "pods web n=1 cpu=1 node=n1", "pods api n=1 cpu=8 node=n2",
		"pods db n=1 cpu=6 node=n3", "tick 1h", "settle", "drifts n2 ImageDrift", "plan", "act", "propose n1", "plan",
	} {
		n.tell(line)
	}
	tells := func(what string, p plan.Plan, begun, givenUp int) {
		t.Helper()
		if len(p.Begun) != begun || len(p.GivenUp) != givenUp {
			t.Errorf("%s: %d moves begin and %d are given up, want %d and %d: %s", what, len(p.Begun), len(p.GivenUp),
				begun, givenUp, n.w.printPlan(p, false))
		}
	}
	first := n.last
	tells("n1 and n2 begin", first, 2, 0)
	n.tell("protect n1")
	checked := plan.Check(first, n.w.snapshot(nil))
	tells("n1 must not go any more", checked, 1, 0)
	tells("the plan itself stays as it was", first, 2, 0)
	n.tell("has failed fence/n2 5m")
	tells("n2's fence waits for another try", plan.Make(n.w.snapshot(nil), n.policy, nil, nil), 0, 0)
	n.tell("unprotect n1")
	n.w.act(first, -1)
	n.tell("protect n1")
	second := plan.Make(n.w.snapshot(nil), n.policy, nil, nil)
	tells("n1 is opened again", second, 0, 1)
	n.tell("delete claim n1")
	tells("n1 is deleted", plan.Check(second, n.w.snapshot(nil)), 0, 0)
}

// What a plan decides holds on the snapshot it was made from.
func (m *mover) checkKept(s *cluster.Snapshot, p *plan.Plan) {
	kept := make(map[string]bool)
	for _, c := range plan.Check(*p, s).Commands {
		kept[c.Key()] = true
	}
	for _, c := range p.Commands {
		if !kept[c.Key()] {
			m.fail("a check on the same snapshot drops %s (%T)", c.Key(), c)
		}
	}
}
