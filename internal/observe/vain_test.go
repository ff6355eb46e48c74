package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
)

func TestNodesInVainAreToldAndCounted(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	o, r, registry, _ := newObserver(&now)
	setback := &cluster.Setback{Owner: "web", Kind: "Deployment", Name: "ns/web", Tries: 3, Since: now.Add(-5 * time.Minute), Next: now.Add(time.Minute),
		Standing: []string{"a"}, Witness: "a", Failures: []cluster.VainNode{{Claim: "a", Node: "n1", Pool: "default", Cause: cluster.Cause{
			Kind: cluster.CauseTaint, Taint: cluster.Taint{Key: "agent", Value: "yes", Effect: cluster.NoExecute}, By: "node-agent"}}}}
	s := snapshot()
	s.Setbacks = map[string]*cluster.Setback{"web": setback}
	hold := schedule.Hold{Setback: setback, Failure: &setback.Failures[0]}
	p := &plan.Plan{Provisioned: true, Placement: schedule.Placement{Unplaced: []schedule.Unplaced{
		{Pod: &cluster.Pod{UID: "u", Namespace: "ns", Name: "p"}, Held: hold}}}}
	o.Planned(s, p, time.Millisecond)
	if len(r.lines) != 1 {
		t.Fatalf("events %q, want one", r.lines)
	}
	for _, want := range []string{"Warning Pod/p FailedScheduling", "taint agent=yes:NoExecute", `written by "node-agent"`, "node n1", "3 tries have failed since 11:55:00 UTC",
		"the next is at 12:01:00 UTC", "startupTaints"} {
		if !strings.Contains(r.lines[0], want) {
			t.Errorf("the event does not say %q: %s", want, r.lines[0])
		}
	}
	for prefix, want := range map[string]string{
		"tenon_nodes_in_vain": "tenon_nodes_in_vain{cause=Taint,nodepool=default} 1\ntenon_nodes_in_vain_price_per_hour{nodepool=default} 0.25\n",
		"tenon_workloads_":    "tenon_workloads_held{cause=Taint} 1\n",
	} {
		if got := series(t, registry, prefix); got != want {
			t.Errorf("%s: %q, want %q", prefix, got, want)
		}
	}
	s.Setbacks = nil
	o.Planned(s, p, time.Millisecond)
	if got := series(t, registry, "tenon_nodes_in_vain"); got != "" {
		t.Errorf("what is over is still counted: %s", got)
	}
}

func TestEveryCauseIsPutIntoWords(t *testing.T) {
	said := make(map[string]bool)
	for _, kind := range []cluster.CauseKind{cluster.CauseTaint, cluster.CauseCordon, cluster.CauseLabel, cluster.CauseShrunk, cluster.CauseRoom, cluster.CauseDeleted, cluster.CauseEvicted} {
		f := &cluster.VainNode{Claim: "c", Node: "n1", Cause: cluster.Cause{Kind: kind, Label: "zone", Resource: "cpu", Need: "2", Left: "1", Promised: "4"}}
		text := schedule.Away(f)
		if said[text] || !strings.Contains(text, "n1") || strings.Contains(text, "does not take it") {
			t.Errorf("%s is told as %q", kind, text)
		}
		said[text] = true
	}
}
