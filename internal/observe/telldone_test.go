package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/resource"
)

func TestActsAreToldOnTheirObjects(t *testing.T) {
	deleted := func(r command.Reason) command.Command {
		return command.DeleteClaim{Claim: "a", UID: "u", Node: "a", Reason: r, Text: reason.Said("why")}
	}
	both := func(kind, reason, note string) []string {
		return []string{kind + " NodeClaim/a " + reason + ": " + note, kind + " Node/a " + reason + ": " + note}
	}
	disrupting := func(r string) []string {
		return []string{"Normal NodeClaim/a DisruptionTerminating: Disrupting NodeClaim: " + r + ", why",
			"Normal Node/a DisruptionTerminating: Disrupting Node: " + r + ", why"}
	}
	for _, c := range []struct {
		command command.Command
		want    []string
	}{
		{deleted(command.Empty), disrupting("Empty")},
		{deleted(command.Expired), disrupting("Expired")},
		{deleted(command.Unhealthy), disrupting("Unhealthy")},
		{deleted(command.ScaledDown), disrupting("ScaledDown")},
		{deleted(command.InstanceMissing), both("Warning", "InstanceMissing", "InstanceMissing, why")},
		{deleted(command.NodeMissing), both("Warning", "NodeMissing", "NodeMissing, why")},
		{deleted(command.InitializationTimeout), both("Warning", "InitializationTimeout",
			"InitializationTimeout, why")},
		{deleted(command.InsufficientCapacity), both("Warning", "InsufficientCapacityError", "why")},
		{deleted(command.ClassNotReady), both("Warning", "NodeClassNotReady", "why")},
		{deleted(command.Requested), nil},
		{command.DeleteNode{Node: "a", Reason: command.ClaimMissing, Text: reason.Said("why")},
			[]string{"Warning Node/a ClaimMissing: ClaimMissing, why"}},
		{command.Register{Claim: "a", Node: "a", Untainted: true}, []string{"Warning NodeClaim/a " +
			"UnregisteredTaintMissing: Node a came without the taint karpenter.sh/unregistered"}},
		{command.Register{Claim: "a", Node: "a"}, nil},
		{command.Release{Claim: "a", UID: "u", Node: "a"}, both("Normal", "Finalized",
			"Finalized karpenter.sh/termination")},
		{command.Release{Node: "a"}, []string{"Normal Node/a Finalized: Finalized karpenter.sh/termination"}},
		{command.Release{Node: "gone"}, nil},
		{command.Evict{UID: "1", Namespace: "ns", Name: "p", Node: "a"}, []string{"Normal Pod/p Evicted: Evicted " +
			"pod: node a is being drained"}},
		{command.Evict{UID: "1", Namespace: "ns", Name: "p", Node: "a", Delete: true, Grace: 3 * time.Second},
			[]string{"Normal Pod/p Disrupted: Deleted pod with a grace period of 3s"}},
	} {
		now := time.Now()
		o, r, _, logs := newObserver(&now)
		for range 2 {
			o.Done(ended(), command.Outcome{Command: c.command}, 0)
		}
		if !slices.EqualFunc(r.lines, c.want, strings.HasPrefix) {
			t.Errorf("%+v: events\n%s\nwant\n%s", c.command, strings.Join(r.lines, "\n"), strings.Join(c.want, "\n"))
		}
		if d, ok := c.command.(command.DeleteClaim); ok {
			for _, want := range []string{`"NodeClaim"="a"`, fmt.Sprintf(`"reason"="%s"`, d.Reason), `"detail"="why"`} {
				if !strings.Contains((*logs)[0], want) {
					t.Errorf("%s: log line %s lacks %s", d.Reason, (*logs)[0], want)
				}
			}
		}
	}
}

func TestNotesBecomeEventsOnceInAWhile(t *testing.T) {
	now := time.Now()
	o, r, _, logs := newObserver(&now)
	s := ended()
	pod := &cluster.Pod{UID: "1", Namespace: "ns", Name: "p"}
	s.Notes = []cluster.Note{pod.Note("DoNotDisruptUntil", reason.Said("until noon"))}
	warn := s.Nodes[0].Note("FailedDraining", reason.Said("pod ns/p stays"))
	warn.Warning = true
	p := &plan.Plan{Notes: []cluster.Note{warn, s.Claims[0].Note("FailedConsistencyCheck",
		reason.Said("half the memory is missing")), s.Pools[0].Note("NodeRepairBlocked", reason.Said("too many"))}}
	for range 3 {
		o.Planned(s, p, 0)
	}
	want := []string{"Normal Pod/p DoNotDisruptUntil: until noon", "Warning Node/a FailedDraining: pod ns/p stays",
		"Normal NodeClaim/a FailedConsistencyCheck: half the memory is missing", "Normal NodePool/default " +
			"NodeRepairBlocked: too many"}
	if !slices.Equal(r.lines, want) {
		t.Errorf("events %q, want %q", r.lines, want)
	}
	if len(*logs) != 1 || !strings.Contains((*logs)[0], `"Node"="a" "reason"="FailedDraining"`) {
		t.Errorf("log %q, want one line about the warning", *logs)
	}
	now = now.Add(events.RepeatAfter)
	o.Planned(s, p, 0)
	if len(r.lines) != 2*len(want) {
		t.Errorf("%d events after %s, want all told again", len(r.lines), events.RepeatAfter)
	}
}

func TestManyNotesAreAllToldInTime(t *testing.T) {
	now := time.Now()
	o, r, _, _ := newObserver(&now)
	const notes = 1000
	p := &plan.Plan{}
	for i := range notes {
		p.Notes = append(p.Notes, (&cluster.Pod{UID: fmt.Sprint(i), Name: fmt.Sprint(i)}).
			Note("InvalidDoNotDisruptAnnotation", reason.Said("x")))
	}
	o.Planned(snapshot(), p, 0)
	if len(r.lines) != events.FailuresBurst {
		t.Errorf("%d events at once, want %d", len(r.lines), events.FailuresBurst)
	}
	for range notes/events.FailuresPerSecond + 1 {
		now = now.Add(time.Second)
		o.Planned(snapshot(), p, 0)
	}
	if len(r.lines) != notes {
		t.Errorf("%d of %d notes were told", len(r.lines), notes)
	}
}

// claimWorld is a world with a claim that has the conditions, or with none.
func claimWorld(deleting time.Time, conditions ...cluster.Condition) *cluster.Snapshot {
	s := snapshot()
	c := *s.Claims[0]
	c.Conditions, c.Deleting = conditions, deleting
	c.Created = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	s.Claims = []*cluster.Claim{&c}
	return s.Seal()
}

func TestConditionsAreFollowed(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, r, registry, _ := newObserver(&now)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	o.Planned(claimWorld(time.Time{}), &plan.Plan{}, 0)
	o.Planned(claimWorld(time.Time{}, condition(cluster.Launched, "Launched", at(3))), &plan.Plan{}, 0)
	now = at(10)
	launched := condition(cluster.Launched, "Launched", now.Add(-7*time.Second))
	drained := cluster.Condition{Type: cluster.Drained, Status: cluster.False, Reason: "Draining", Since: now}
	o.Planned(claimWorld(now, launched, drained), &plan.Plan{}, 0)
	now = now.Add(5 * time.Second)
	for _, want := range []string{
		"operator_nodeclaim_status_condition_count{karpenter_sh_nodepool=,name=a,namespace=,reason=Launched,status=True,type=Launched} 1",
		"operator_nodeclaim_status_condition_current_status_seconds{karpenter_sh_nodepool=,name=a,namespace=,reason=Launched,status=True,type=Launched} 12",
		"operator_nodeclaim_status_condition_transitions_total{karpenter_sh_nodepool=,reason=Launched,status=True,type=Launched} 1",
		"operator_nodeclaim_status_condition_transition_seconds{karpenter_sh_nodepool=,status=Unknown,to_status=True,type=Launched} 1",
		"operator_status_condition_transitions_total{group=karpenter.sh,kind=NodeClaim,reason=Draining,status=False,type=Drained} 1",
		"operator_status_condition_count{group=karpenter.sh,kind=NodeClaim,name=a,namespace=,reason=Draining,status=False,type=Drained} 1",
		"operator_nodeclaim_termination_current_time_seconds{karpenter_sh_nodepool=,name=a,namespace=} 5",
	} {
		if got := gathered(t, registry, "operator_"); !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if !slices.Contains(r.lines, "Normal NodeClaim/a Launched: Condition Launched went from Unknown to True, reason "+
		"Launched") {
		t.Errorf("events %q", r.lines)
	}
	gone := snapshot()
	gone.Claims = nil
	o.Planned(gone.Seal(), &plan.Plan{}, 0)
	got := gathered(t, registry, "operator_nodeclaim_")
	if !strings.Contains(got, "operator_nodeclaim_termination_duration_seconds{karpenter_sh_nodepool=} 1\n") ||
		strings.Contains(got, "name=a") {
		t.Errorf("when the claim is gone:\n%s", got)
	}
}

func TestPoolsAndNodesAreFollowed(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, registry := townObserver(&now, Options{ClusterState: true})
	first := town(now, 1, 0)
	o.Planned(first, &plan.Plan{}, 0)
	second := town(now, 1, 0)
	second.Pools[0].Deleting = true
	second.Pools[0].Status.Conditions = []cluster.Condition{{Type: cluster.Ready, Status: cluster.False,
		Reason: "Deleting"}}
	second.Nodes[0].Ready, second.Nodes[0].Deleting = false, now
	second.Nodes[0].Conditions = []cluster.NodeCondition{{Type: "Ready", Status: "Unknown", Since: now}}
	o.Planned(second, &plan.Plan{}, 0)
	now = now.Add(4 * time.Second)
	const where = "karpenter_kwok_sh_kwoknodeclass=default,karpenter_sh_initialized=true,karpenter_sh_nodepool=default,"
	for _, want := range []string{
		"operator_nodepool_status_condition_count{name=default,namespace=,reason=Deleting,status=False,type=Ready} 1",
		"operator_nodepool_termination_current_time_seconds{name=default,namespace=} 4",
		"operator_node_status_condition_transitions_total{" + where + "reason=,status=Unknown,type=Ready} 1",
		"operator_node_status_condition_current_status_seconds{" + where +
			"name=node-00000,namespace=,reason=,status=Unknown,type=Ready} 4",
		"operator_node_termination_current_time_seconds{" + where + "name=node-00000,namespace=} 4",
	} {
		if got := gathered(t, registry, "operator_"); !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	third := town(now, 0, 0)
	third.Pools = nil
	o.Planned(third.Seal(), &plan.Plan{}, 0)
	for _, want := range []string{"operator_nodepool_termination_duration_seconds{} 1",
		"operator_node_termination_duration_seconds{" + strings.TrimSuffix(where, ",") + "} 1"} {
		if got := gathered(t, registry, "operator_"); !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestPodsAreToldHowLongTheyAreSpared(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, r, _, _ := newObserver(&now)
	pod := func(spared bool, until time.Time) *cluster.Snapshot {
		return pending(&cluster.Pod{UID: "1", Name: "p", Node: "n", DoNotDisrupt: spared, DoNotDisruptUntil: until})
	}
	noon := now.Add(time.Hour)
	for _, s := range []*cluster.Snapshot{pod(false, time.Time{}), pod(true, time.Time{}), pod(true, noon),
		pod(true, noon), pod(false, noon), pod(false, noon)} {
		o.Planned(s, &plan.Plan{}, 0)
	}
	want := []string{"Normal Pod/p DoNotDisruptUntil: The pod's node is not disrupted before 2026-11-15T13:00:00Z",
		"Normal Pod/p DoNotDisruptGracePeriodElapsed: The pod no longer keeps its node from being disrupted: its " +
			"time was over at 2026-11-15T13:00:00Z"}
	if !slices.Equal(r.lines, want) {
		t.Errorf("events %q, want %q", r.lines, want)
	}
}

// A refusal is logged with the cloud's own reason: not every one is for want of capacity.
func TestRefusalsAreLoggedWithTheirReason(t *testing.T) {
	for _, reason := range []command.Reason{command.ClassNotReady, command.InsufficientCapacity} {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		New(log, silent{}, prometheus.NewRegistry(), time.Now, Options{}).Done(ended(), command.Outcome{
			Command: command.LaunchInstance{Claim: "a"}, Refused: true, Refusal: command.Refusal{Reason: reason,
				Message: "no subnets"}}, 0)
		if len(lines) != 1 || !strings.Contains(lines[0], `"reason"="`+string(reason)+`"`) ||
			!strings.Contains(lines[0], `"cause"="no subnets"`) {
			t.Errorf("%s: log %q", reason, lines)
		}
	}
}

func TestEveryActIsLoggedWithItsObjectAndReason(t *testing.T) {
	for _, out := range []command.Outcome{
		{Command: command.CreateClaim{Name: "a", Reason: command.Provisioned}},
		{Command: command.LaunchInstance{Claim: "a"}},
		{Command: command.LaunchInstance{Claim: "a"}, Refused: true,
			Refusal: command.Refusal{Reason: command.ClassNotReady, Message: "no subnets"}},
		{Command: command.Register{Claim: "a"}}, {Command: command.Initialize{Claim: "a"}},
		{Command: command.Fence{Claim: "a", Reason: command.Empty}}, {Command: command.Unfence{Claim: "a"}},
		{Command: command.DeleteClaim{Claim: "a", Reason: command.Expired}},
		{Command: command.DeleteNode{Node: "a", Reason: command.ClaimMissing}}, {Command: command.Evict{Pod: "a"}},
		{Command: command.Evict{Pod: "a", Delete: true}}, {Command: command.Nominate{Pod: "a"}},
		{Command: command.Bind{Pod: "a"}}, {Command: command.Terminate{Claim: "a"}, InstanceGone: true},
		{Command: command.Release{Claim: "a"}}, {Command: command.Adopt{Claim: "a"}},
		{Command: command.SetClaim{Claim: "a"}}, {Command: command.SetPool{Pool: "a"}},
		{Command: command.WritePoolHash{Pool: "a"}}, {Command: command.WriteClaimHash{Claim: "a"}},
	} {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
		o := New(log, silent{}, prometheus.NewRegistry(), time.Now, Options{})
		o.Done(ended(), out, 0)
		if strings.Contains(lines[0], `"message"=`) {
			t.Errorf("%T: log %q: message is the logger's own key", out.Command, lines)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], `="a"`) || strings.Count(lines[0], `"reason"="`) != 1 ||
			strings.Contains(lines[0], `"reason"=""`) {
			t.Errorf("%T: log %q, want one line with the object and the reason", out.Command, lines)
		}
	}
}

// Pods hear that the cloud has no machine for them, even if the plan that gives their claim up has another place for
// them.
func TestPodsAreToldThatTheCloudHasNoMachineForThem(t *testing.T) {
	now := time.Now()
	o, r, _, _ := newObserver(&now)
	pod := func(name string) *cluster.Pod {
		return &cluster.Pod{UID: name, Namespace: "shop", Name: name, Owner: "o", Class: &cluster.PodClass{},
			Unschedulable: true}
	}
	waits, found := pod("waits"), pod("found")
	world := func(claims ...string) *cluster.Snapshot {
		s := &cluster.Snapshot{Names: &resource.Names{}, Now: now, Pods: []*cluster.Pod{waits, found}}
		for _, name := range claims {
			s.Claims = append(s.Claims, &cluster.Claim{Name: name, UID: "uid-" + name})
		}
		return s.Seal()
	}
	o.Planned(world(), &plan.Plan{Provisioned: true, Commands: []command.Command{command.CreateClaim{Name: "a",
		Pods: []*cluster.Pod{waits, found}}}}, 0)
	elsewhere := &plan.Plan{Provisioned: true, Commands: []command.Command{
		command.DeleteClaim{Claim: "a", UID: "uid-a", Reason: command.InsufficientCapacity,
			Text: reason.Said("sold out")},
		command.CreateClaim{Name: "b", Pods: []*cluster.Pod{waits}}}}
	found.Node, found.Unschedulable = "n", false
	s := world("a")
	o.Planned(s, elsewhere, 0)
	r.lines = nil
	o.Done(s, command.Outcome{Command: elsewhere.Commands[0]}, 0)
	want := []string{"Warning NodeClaim/a InsufficientCapacityError: sold out",
		"Warning Pod/waits InsufficientCapacityError: NodeClaim a, which was made for this pod, could not be " +
			"launched: sold out"}
	slices.Sort(r.lines)
	if !slices.Equal(r.lines, want) {
		t.Errorf("events %q, want %q", r.lines, want)
	}
	o.Planned(world("b"), &plan.Plan{}, 0)
	if len(o.events.PlannedPods.Pods) != 1 {
		t.Errorf("remembers %v, want the claim that is there", o.events.PlannedPods.Pods)
	}
}

// Changes of the contract's conditions of a pool are told by their type, as Karpenter does; those of ours are not, nor
// is what a new pool begins with.
func TestPoolsAreToldChangesByTheTypeOfTheCondition(t *testing.T) {
	now := time.Now()
	o, r, _, _ := newObserver(&now)
	world := func(status cluster.ConditionStatus) *cluster.Snapshot {
		p := &cluster.Pool{Name: "default", UID: "pool"}
		for _, kind := range []string{cluster.NodeClassReady, cluster.Ready, cluster.CanLaunch} {
			p.Status.Conditions = append(p.Status.Conditions, cluster.Condition{Type: kind, Status: status,
				Reason: "Why", Message: "because", Since: now})
		}
		return (&cluster.Snapshot{Names: &resource.Names{}, Pools: []*cluster.Pool{p}}).Seal()
	}
	empty := (&cluster.Snapshot{Names: &resource.Names{}}).Seal()
	for _, s := range []*cluster.Snapshot{empty, world(cluster.True), world(cluster.True), world(cluster.False),
		world(cluster.True)} {
		o.Planned(s, &plan.Plan{}, 0)
	}
	want := []string{
		"Normal NodePool/default NodeClassReady: Condition NodeClassReady went from True to False, reason Why: because",
		"Normal NodePool/default Ready: Condition Ready went from True to False, reason Why: because",
		"Normal NodePool/default NodeClassReady: Condition NodeClassReady went from False to True, reason Why: because",
	}
	if !slices.Equal(r.lines, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(r.lines, "\n"), strings.Join(want, "\n"))
	}
}
