package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

func TestNodesInVainAreToldAndCounted(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	o, r, registry, _ := newObserver(&now)
	tries := &cluster.WorkloadTries{Owner: "web", Kind: "Deployment", Name: "ns/web", FailedTries: 3,
		Since: now.Add(-5 * time.Minute), NextTry: now.Add(time.Minute),
		UnusedClaims: []string{"a"}, Retained: "a", Failures: []cluster.UnusedNode{{Claim: "a", Node: "n1",
			Pool: "default", Cause: cluster.Cause{
				Kind: cluster.CauseTaint, Taint: cluster.Taint{Key: "agent", Value: "yes", Effect: cluster.NoExecute},
				By: "node-agent"}}}}
	s := snapshot()
	s.WorkloadTries = map[string]*cluster.WorkloadTries{"web": tries}
	hold := schedule.PodHold{Tries: tries, Failure: &tries.Failures[0]}
	p := &plan.Plan{Provisioned: true, Placement: schedule.Placement{Unplaced: []schedule.Unplaced{
		{Pod: &cluster.Pod{UID: "u", Namespace: "ns", Name: "p"}, Held: hold}}}}
	o.Planned(s, p, time.Millisecond)
	if len(r.lines) != 1 {
		t.Fatalf("events %q, want one", r.lines)
	}
	for _, want := range []string{"Warning Pod/p FailedScheduling", "taint agent=yes:NoExecute",
		`written by "node-agent"`, "node n1", "3 tries have failed since 11:55:00 UTC",
		"the next try is at 12:01:00 UTC", "startupTaints"} {
		if !strings.Contains(r.lines[0], want) {
			t.Errorf("the event does not say %q: %s", want, r.lines[0])
		}
	}
	for prefix, want := range map[string]string{
		"tenon_nodes_in_vain": "tenon_nodes_in_vain{cause=Taint,nodepool=default} " +
			"1\ntenon_nodes_in_vain_price_per_hour{nodepool=default} 0.25\n",
		"tenon_workloads_": "tenon_workloads_held{cause=Taint} 1\n",
	} {
		if got := gathered(t, registry, prefix); got != want {
			t.Errorf("%s: %q, want %q", prefix, got, want)
		}
	}
	tries.WorkloadGone = true
	o.Planned(s, p, time.Millisecond)
	if got := gathered(t, registry, "tenon_workloads_"); got != "" {
		t.Errorf("a workload that is deleted still waits: %s", got)
	}
	s.WorkloadTries = nil
	o.Planned(s, p, time.Millisecond)
	if got := gathered(t, registry, "tenon_nodes_in_vain"); got != "" {
		t.Errorf("what is over is still counted: %s", got)
	}
}

func TestStaticNodesThatEndTooSoonAreCounted(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	o, _, registry, _ := newObserver(&now)
	s := snapshot()
	pool := s.Pools[0]
	pool.Static, pool.LostSlots = true, []cluster.LostSlot{{Number: 0, Tries: 1}, {Number: 1, Tries: 2},
		{Number: 2, Tries: 9}}
	o.Planned(s, &plan.Plan{}, time.Millisecond)
	want := "tenon_static_nodes_end_too_soon{nodepool=" + pool.Name + "} 2"
	if got := gathered(t, registry, "tenon_static_"); !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	pool.LostSlots = nil
	o.Planned(s, &plan.Plan{}, time.Millisecond)
	if got := gathered(t, registry, "tenon_static_"); got != "" {
		t.Errorf("what is over is still counted: %s", got)
	}
}

// A pod that kube-scheduler does not put on the node that is meant for it is placed as far as the plan can see. It is
// told all the same.
func TestWhatTheSchedulerRefusesIsTold(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	o, r, registry, _ := newObserver(&now)
	class := &cluster.PodClass{Key: "k"}
	tries := &cluster.WorkloadTries{Owner: "web", Kind: "Deployment", Name: "ns/web", FailedTries: 1, Since: now,
		UnusedClaims: []string{"a"}, Retained: "a",
		Failures: []cluster.UnusedNode{{Claim: "a", Node: "n1", Pool: "default", Classes: []*cluster.PodClass{class},
			Cause: cluster.Cause{Kind: cluster.CauseScheduler, Message: "0/2 nodes are available: 2 node(s) had no " +
				"free ring."}}}}
	s := snapshot()
	s.WorkloadTries = map[string]*cluster.WorkloadTries{"web": tries}
	pod := func(name string, class *cluster.PodClass) *cluster.Pod {
		return &cluster.Pod{UID: name, Namespace: "ns", Name: name, Owner: "web", Class: class}
	}
	other := &cluster.PodClass{Key: "other", Priority: 1, Tolerations: []cluster.Toleration{{Key: "x"}}}
	p := &plan.Plan{Provisioned: true, Placement: schedule.Placement{Assigned: []schedule.Assignment{
		{Pod: pod("p1", class), Host: "n1"}, {Pod: pod("p2", class), Host: "n2"}, {Pod: pod("p3", other), Host: "n1"}}}}
	o.Planned(s, p, time.Millisecond)
	var told []string
	for _, line := range r.lines {
		if strings.Contains(line, "FailedScheduling") {
			told = append(told, line)
		}
	}
	want := `kube-scheduler does not place the pod on node n1: "0/2 nodes are available: 2 node(s) had no free ` +
		`ring."; ` +
		"1 try has failed since 12:00:00 UTC, and the node is kept for the pod"
	if len(told) != 1 || !strings.Contains(told[0], "Pod/p1") || !strings.Contains(told[0], want) {
		t.Errorf("told is %q, want one with %q", told, want)
	}
	if got := gathered(t, registry, "tenon_workloads_"); got != "tenon_workloads_held{cause=RefusedByScheduler} 1\n" {
		t.Errorf("counted is %q", got)
	}
}

func TestEveryCauseIsPutIntoWords(t *testing.T) {
	said := make(map[string]bool)
	for _, kind := range []cluster.CauseKind{cluster.CauseTaint, cluster.CauseCordon, cluster.CauseLabel,
		cluster.CauseShrunk, cluster.CauseRoom, cluster.CauseDeleted, cluster.CauseEvicted,
		cluster.CausePort, cluster.CauseScheduler} {
		f := &cluster.UnusedNode{Claim: "c", Node: "n1", Cause: cluster.Cause{Kind: kind, Label: "zone",
			Resource: "cpu", Need: "2", Left: "1", Promised: "4"}}
		text := render.Cause(f)
		if said[text] || !strings.Contains(text, "n1") || strings.Contains(text, "does not accept the pod") {
			t.Errorf("%s is told as %q", kind, text)
		}
		said[text] = true
	}
}
