package plan_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// places says where each pod goes.
func places(p *plan.Plan) string {
	var out []string
	for _, a := range p.Placement.Assigned {
		out = append(out, a.Pod.Name+" to "+a.Host)
	}
	for _, bin := range p.Placement.Bins {
		var pods []string
		for _, pod := range bin.Pods {
			pods = append(pods, pod.Name)
		}
		out = append(out, fmt.Sprintf("%s on a new node of %s", strings.Join(pods, "+"), bin.Pool.Name))
	}
	for _, u := range p.Placement.Unplaced {
		if u.Failed == nil {
			out = append(out, u.Pod.Name+" nowhere")
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// A class that is left out gets a refusal, and everybody else what they would get if its pending pods were not there.
func TestQuarantinedPodsAreAsIfTheyWereNotThere(t *testing.T) {
	refused := 0
	for seed := range int64(1000) {
		r := rand.New(rand.NewSource(seed))
		s := drawTangled(r).snapshot(nil)
		s.PlannedAt = s.Now.Add(time.Hour) // nobody is waited for
		for _, c := range s.Claims {
			c.Deleting = time.Time{}
		}
		s.Seal()
		pending := s.Pending()
		key := pending[r.Intn(len(pending))].Class.Key
		until := s.Now.Add(time.Minute)
		left := plan.Make(s.WithQuarantine(cluster.Quarantine{Classes: map[string]cluster.Failure{key: {Message: "boom",
			Until: until}}}), defaultPolicy(), nil, nil)
		fewer := *s
		fewer.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *cluster.Pod) bool {
			return p.Class.Key == key && p.Node == ""
		})
		want := plan.Make(fewer.Seal(), defaultPolicy(), nil, nil)
		if got, want := places(&left), places(&want); got != want {
			t.Fatalf("seed %d: without class %s\n%s\nwith it in quarantine\n%s", seed, key, want, got)
		}
		if left.WakeAt.IsZero() || left.WakeAt.After(until) {
			t.Fatalf("seed %d: it is looked again at %v, and the quarantine ends at %v", seed, left.WakeAt, until)
		}
		for _, u := range left.Placement.Unplaced {
			if (u.Failed != nil) != (u.Pod.Class.Key == key && u.Pod.Node == "") {
				t.Fatalf("seed %d: %s is told %s", seed, u.Pod.Name, render.Unplaced(&u))
			}
			if u.Failed != nil {
				refused++
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d pods were refused", refused)
	}
}

// A part that is left out is left out, and the others are there.
func TestPartsCanBeLeftOut(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	n.say("type small cpu=2 memory=8Gi price=0.10", "pool default after=0s", "node idle pool=default type=small",
		"pods web cpu=2", "tick 10m")
	whole := plan.Make(n.w.snapshot(nil), n.policy, nil, nil)
	for _, part := range append(cluster.Parts(), cluster.Searching) {
		s := n.w.snapshot(nil).WithQuarantine(
			cluster.Quarantine{Parts: map[cluster.Part]cluster.Failure{part: {Message: "boom",
				Until: n.w.now.Add(time.Minute)}}})
		p := plan.Make(s, n.policy, nil, nil)
		if nominated := slices.ContainsFunc(p.Notes, func(n cluster.Note) bool {
			return n.Reason == plan.PlannerFailed && n.Name == "default"
		}); !nominated {
			t.Errorf("%s: nobody is told", part)
		}
		if placed := len(p.Placement.Assigned)+len(p.Placement.Bins) > 0; placed == (part == cluster.Placing) {
			t.Errorf("%s: placed %v", part, placed)
		}
		tells := func(p *plan.Plan) bool {
			return slices.ContainsFunc(p.Commands, func(c command.Command) bool {
				_, ok := c.(command.SetPool)
				return ok
			})
		}
		if tells(&p) != (tells(&whole) && part != cluster.WritingStatus) {
			t.Errorf("%s: tells pools %v", part, tells(&p))
		}
	}
}
