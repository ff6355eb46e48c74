package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// begins lists the kinds of a plan's commands, but for notes.
func begins(p plan.Plan) string {
	var out []string
	for _, c := range p.Commands {
		if !command.IsStatusUpdate(c) {
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", c), "command."))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// When plans fail whatever is left out, NodeClaims take their next step and an interrupted node is replaced. Nothing
// else begins: no pod gets a new node.
func TestBarePlan(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	n.say("type small cpu=4 memory=8Gi price=0.10", "pool default after=0s",
		"node taken pool=default type=small", "pods old n=1 cpu=3 node=taken",
		"node leaving pool=default type=small", "pods last n=1 cpu=3 node=leaving", "tick 10m", "settle",
		"pods web n=1 cpu=3", "tick 10m",
		"interrupt taken SpotInterruption in=2m", "delete claim leaving")
	s := n.w.snapshot(nil)
	if got, want := begins(plan.Make(s, n.policy, nil, nil)),
		"CreateClaim CreateClaim CreateClaim Fence Fence"; got != want {
		t.Errorf("a whole plan begins %s, want %s", got, want)
	}
	if got, want := begins(plan.MakeMinimal(s, n.policy)), "CreateClaim Fence Fence"; got != want {
		t.Errorf("a bare one begins %s, want %s: the node that leaves and the interrupted one, which is replaced", got,
			want)
	}
	left := cluster.Quarantine{Parts: map[cluster.Part]cluster.Failure{cluster.Interrupting: {}}}
	if got, want := begins(plan.MakeMinimal(s.WithQuarantine(left), n.policy)), "Fence"; got != want {
		t.Errorf("without interruptions it begins %s, want %s", got, want)
	}
}

// A bare plan, too, leaves alone what is under way, and asks only so many pods to leave as their budget allows.
func TestBarePlanKeepsBudgets(t *testing.T) {
	x, _, _ := drained()
	evicted := func() (out []string) {
		for _, c := range plan.MakeMinimal(x.s.Seal(), defaultPolicy()).Commands {
			if e, ok := c.(command.Evict); ok {
				out = append(out, e.Name)
			}
		}
		return out
	}
	first := evicted()
	if len(first) != 1 {
		t.Fatalf("%v are asked to leave, and the budget allows one", first)
	}
	x.s.InFlight[command.Evict{UID: first[0]}.Key()] = true
	if next := evicted(); slices.Contains(next, first[0]) {
		t.Errorf("%s is asked to leave again", first[0])
	}
}
