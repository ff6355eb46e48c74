package lifecycle

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/resource"
)

// The API keeps times to the second. What was written comes back cut off, and must not look like old news.
func TestPodEventIsWrittenOnce(t *testing.T) {
	event := time.Date(2026, 11, 15, 12, 0, 0, 700_000_000, time.UTC)
	c := &cluster.Claim{Name: "a", NodeName: "a", ProviderID: "cloud://a", Finalized: true, LastPodEvent: event,
		Conditions: []cluster.Condition{
			{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Registered, Status: cluster.True},
			{Type: cluster.Initialized, Status: cluster.True}}}
	s := (&cluster.Snapshot{Now: event.Add(time.Second), Claims: []*cluster.Claim{c},
		Nodes: []*cluster.Node{{Name: "a", ProviderID: "cloud://a", Finalized: true}}}).Seal()
	if step := Next(s, Settings{}); len(step.Commands) != 0 || !step.WakeAt.Equal(event.Add(podEventEvery)) {
		t.Fatalf("at once: %+v, want to wait until the node has come to rest", step)
	}
	s.Now = event.Add(podEventEvery)
	step := Next(s, Settings{})
	if len(step.Commands) != 1 || step.Commands[0].(command.SetClaim).LastPodEvent != event {
		t.Fatalf("first: %+v, want the event written", step)
	}
	c.SavedPodEvent = event.Truncate(time.Second)
	for _, later := range []time.Duration{time.Second, podEventEvery, time.Hour} {
		s.Now = event.Add(later)
		if step := Next(s, Settings{}); len(step.Commands) != 0 || !step.WakeAt.IsZero() {
			t.Errorf("%s later: %+v, want nothing", later, step)
		}
	}
	c.LastPodEvent = event.Add(3 * time.Second)
	s.Now = event.Add(4 * time.Second)
	if step := Next(s, Settings{}); len(step.Commands) != 0 || !step.WakeAt.Equal(c.LastPodEvent.Add(podEventEvery)) {
		t.Errorf("a new event soon after: %+v, want to wait for %s", step, podEventEvery)
	}
	s.Now = event.Add(podEventAtLast)
	c.LastPodEvent = s.Now.Add(-time.Second)
	if step := Next(s, Settings{}); len(step.Commands) != 1 {
		t.Errorf("a node that never rests: %+v, want it written", step)
	}
}

// A node that was removed by force does not come back: its instance must not run on for nobody.
func TestClaimWithoutItsNodeGoes(t *testing.T) {
	c := &cluster.Claim{Name: "a", UID: "u", NodeName: "a", ProviderID: "cloud://a", Finalized: true,
		Conditions: []cluster.Condition{
			{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Registered, Status: cluster.True}}}
	s := (&cluster.Snapshot{Now: time.Unix(1000, 0), Claims: []*cluster.Claim{c}}).Seal()
	step := Next(s, Settings{})
	if len(step.Commands) != 1 {
		t.Fatalf("%+v, want the claim deleted", step)
	}
	if d, ok := step.Commands[0].(command.DeleteClaim); !ok || d.Reason != command.NodeMissing || d.UID != "u" ||
		d.Missing != "a" || d.ProviderID != "cloud://a" {
		t.Errorf("%+v, want the claim deleted because its node is missing", step.Commands[0])
	}
	if hosts := s.SchedulerView().Hosts(); len(hosts) != 0 {
		t.Errorf("pods may still go to %+v", hosts)
	}
}

// A node that is held up says by what, once, on its claim.
func TestWhatHoldsUpInitializationIsTold(t *testing.T) {
	registered := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	boot := cluster.Taint{Key: "boot", Value: "x", Effect: cluster.NoSchedule}
	c := &cluster.Claim{Name: "a", NodeName: "a", ProviderID: "cloud://a", Finalized: true,
		StartupTaints: []cluster.Taint{boot}, Conditions: []cluster.Condition{
			{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Registered, Status: cluster.True,
				Since: registered}}}
	n := &cluster.Node{Name: "a", ProviderID: "cloud://a", Finalized: true, Ready: true, Taints: []cluster.Taint{boot}}
	s := (&cluster.Snapshot{Now: registered.Add(time.Second), Claims: []*cluster.Claim{c}, Nodes: []*cluster.Node{n}}).
		Seal()
	if step := Next(s, Settings{}); len(step.Commands) != 0 || !step.WakeAt.Equal(registered.Add(tellOpeningAfter)) {
		t.Fatalf("soon: %+v, want to wait", step)
	}
	s.Now = registered.Add(tellOpeningAfter)
	step := Next(s, Settings{})
	if len(step.Commands) != 1 {
		t.Fatalf("later: %+v, want it told", step)
	}
	told := render.Condition(step.Commands[0].(command.SetClaim).Conditions[0])
	if told.Reason != "StartupTaintsExist" || told.Message != "startup taint boot=x:NoSchedule is still on node a" {
		t.Errorf("told %+v", told)
	}
	c.Conditions = append(c.Conditions, told)
	if step := Next(s, Settings{}); len(step.Commands) != 0 || !step.WakeAt.IsZero() {
		t.Errorf("told again: %+v", step)
	}
	n.Taints = nil
	if step := Next(s, Settings{}); len(step.Commands) != 1 || step.Commands[0].Key() != "initialize/a" {
		t.Errorf("without the taint: %+v, want it initialized", step)
	}
}

// Two replicas may launch twice for a claim whose first machine has died. It then has another node than it names.
func TestClaimFindsTheNodeOfItsMachine(t *testing.T) {
	c := &cluster.Claim{Name: "a", NodeName: "old", ProviderID: "cloud://new", Finalized: true,
		Conditions: []cluster.Condition{
			{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Registered, Status: cluster.True}}}
	created := time.Unix(1000, 0)
	old := &cluster.Node{Name: "old", UID: "o", ProviderID: "cloud://old", Finalized: true, Ours: true,
		Created: created}
	n := &cluster.Node{Name: "new", UID: "n", ProviderID: "cloud://new", Finalized: true, Ours: true, Ready: true,
		Created: created}
	s := (&cluster.Snapshot{Now: created.Add(time.Hour), Claims: []*cluster.Claim{c}, Nodes: []*cluster.Node{n, old}}).
		Seal()
	if step := Next(s, Settings{}); len(step.Commands) != 1 || step.Commands[0] != (command.Register{Claim: "a",
		Node: "new"}) {
		t.Errorf("%+v, want the new node registered", step)
	}
	step, _ := Orphans(s)
	if len(step.Commands) != 1 {
		t.Fatalf("the old node: %+v, want it deleted", step)
	}
	if d, ok := step.Commands[0].(command.DeleteNode); !ok || d.UID != "o" {
		t.Errorf("the old node: %+v, want it deleted", step.Commands[0])
	}
}

// With a clock ahead of the API server's, a claim that was made a moment ago is not too old to be launched.
func TestLaunchTimeoutCountsFromWhenTheClaimWasSeen(t *testing.T) {
	for _, x := range []struct {
		appeared time.Time
		want     string
	}{{noon.Add(-time.Minute), "launch/a"}, {noon.Add(-5 * time.Minute), "delete/a"}, {time.Time{}, "delete/a"}} {
		c := &cluster.Claim{Name: "a", UID: "u", Finalized: true, Created: noon.Add(-10 * time.Minute),
			FirstSeen: x.appeared}
		s := &cluster.Snapshot{Now: noon, Names: &resource.Names{}, Claims: []*cluster.Claim{c},
			InFlight: map[string]bool{}, Retry: map[string]cluster.Retry{}}
		if got := keys(Next(s.Seal(), Settings{LaunchTimeout: 5 * time.Minute})); got != x.want {
			t.Errorf("seen %s: %s, want %s", x.appeared, got, x.want)
		}
	}
}
