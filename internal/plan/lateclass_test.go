package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// A NodeClass that nobody has judged yet makes its pool neither ready nor wrong, and is looked at again when its time
// is up.
func TestAClassThatIsNotJudgedYet(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	n.say("type small cpu=2 memory=8Gi price=0.10", "pool default")
	var broken []cluster.Problem
	until := n.w.now.Add(time.Second)
	conditions := func(state cluster.NodeClassState) (string, time.Time) {
		s := n.w.snapshot(nil)
		pool := *s.Pools[0]
		pool.NodeClass, pool.Problems, s.Pools[0] = state, broken, &pool
		p := plan.Make(s, n.policy, nil, nil)
		var out []string
		for _, c := range p.Commands {
			set, ok := c.(command.SetPool)
			if !ok {
				continue
			}
			for _, of := range set.Status.Conditions {
				if of.Type == cluster.NodeClassReady || of.Type == cluster.Ready {
					out = append(out, of.Type+"="+string(of.Status)+" "+of.Reason)
				}
			}
		}
		return strings.Join(out, ", "), p.WakeAt
	}
	got, wake := conditions(cluster.NodeClassState{Pending: true, Until: until, Reason: "NodeClassNotFound"})
	if want := "NodeClassReady=Unknown NodeClassNotFound, Ready=Unknown ReconcilingDependents"; got != want ||
		wake.IsZero() || wake.After(until) {
		t.Errorf("pending: %s, looked at again at %s; want %s, by %s", got, wake, want, until)
	}
	got, _ = conditions(cluster.NodeClassState{Reason: "NodeClassNotFound"})
	if want := "NodeClassReady=False NodeClassNotFound, Ready=False UnhealthyDependents"; got != want {
		t.Errorf("not found: %s, want %s", got, want)
	}
	broken = []cluster.Problem{{Field: "spec", Text: "wrong"}}
	got, _ = conditions(cluster.NodeClassState{Pending: true, Reason: "NodeClassReadinessUnknown"})
	if want := "NodeClassReady=Unknown NodeClassReadinessUnknown, Ready=False UnhealthyDependents"; got != want {
		t.Errorf("pending, and the pool itself is wrong: %s, want %s", got, want)
	}
}
