package plan_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// The same pods get a claim with the same name, in whatever order the planner has put them.
func TestNamesOfClaimsDependOnWhichPods(t *testing.T) {
	name := func(a, b int64) string {
		x := newScene()
		x.s.Nodes, x.s.Claims, x.s.Pods = nil, nil, nil
		x.pending("a", anywhere("a", a), nil)
		x.pending("b", anywhere("b", b), nil)
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		for _, c := range p.Commands {
			if c, ok := c.(command.CreateClaim); ok && len(c.Pods) == 2 {
				return c.Name
			}
		}
		t.Fatalf("no claim for both: %v", keys(p))
		return ""
	}
	if first, second := name(1000, 2000), name(2000, 1000); first != second {
		t.Errorf("the same pods get %s or %s", first, second)
	}
}

// A replacement of a drifted node says what its pool and NodeClass were when it was made; one that saves money does
// not.
func TestReplacementsOfDriftedNodesSaySo(t *testing.T) {
	for cause, want := range map[string]cluster.DriftReplacement{"drifts n1 AMIDrift": {PoolGeneration: 4,
		ClassGeneration: 7}, "propose n1": {}} {
		n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
		n.say("type small cpu=2 memory=8Gi price=0.10", "type large cpu=2 memory=32Gi price=0.40",
			"pool default policy=WhenEmptyOrUnderutilized after=0s", "node n1 pool=default type=large",
			"pods web n=1 cpu=1 node=n1", "tick 1h", "settle")
		n.w.pools["default"].Generation, n.w.pools["default"].NodeClass.Generation = 4, 7
		n.tell(cause)
		var made []command.CreateClaim
		for range 4 {
			n.tell("plan")
			made = append(made, creates(&n.last)...)
			n.tell("act")
		}
		if len(made) != 1 || made[0].DriftReplacement != want {
			t.Errorf("%s: %+v, want one claim with %+v", cause, made, want)
		}
	}
}

// Of pods whose nodes were of no use one node finds out whether the next is, also where the pods are of several classes
// that need a node each.
func TestOneNodeTriesForAllClassesOfAnOwner(t *testing.T) {
	for unused, want := range map[bool]int{true: 1, false: 2} {
		x := newScene()
		x.s.Nodes, x.s.Claims, x.s.Pods = nil, nil, nil
		a, b := x.pending("a", anywhere("a", 3000), nil), x.pending("b", anywhere("b", 2500), nil)
		if unused {
			x.hasUnused(0)
			x.s.WorkloadTries["web"].Failures[0].Classes = []*cluster.PodClass{a.Class, b.Class}
		}
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		if got := len(creates(&p)); got != want {
			t.Errorf("the nodes of the owner were of no use: %t, %d nodes are made, want %d", unused, got, want)
		}
	}
}
