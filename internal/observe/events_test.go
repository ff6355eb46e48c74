package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// stuck is a plan that finds no place for n pods of one class.
func stuck(n int) *plan.Plan {
	p := &plan.Plan{Provisioned: true}
	misses := []schedule.PoolMiss{{Pool: "a", NotUsable: reason.Said(strings.Repeat("long ", 40))},
		{Pool: "b", NotUsable: reason.Of(reason.PoolDeleting)}}
	for i := range n {
		pod := &cluster.Pod{UID: fmt.Sprint(i), Namespace: "ns", Name: fmt.Sprint("p", i)}
		p.Placement.Unplaced = append(p.Placement.Unplaced, schedule.Unplaced{Pod: pod, Pools: misses})
	}
	return p
}

func TestManyUnplacedPodsCostLittle(t *testing.T) {
	now := time.Now()
	o, r, _, logs := newObserver(&now)
	p, s := stuck(20000), snapshot()
	o.Planned(s, p, 0)
	if len(r.lines) != events.FailuresBurst || len(*logs) != 1 || !strings.Contains((*logs)[0], `"pods"=20000`) {
		t.Errorf("%d events and %d lines %.200q, want %d and one for all pods", len(r.lines), len(*logs), *logs,
			events.FailuresBurst)
	}
	if allocs := testing.AllocsPerRun(3, func() { o.Planned(s, p, 0) }); allocs > 500 {
		t.Errorf("%.0f allocations for the same pods again: the reason was put into words for each", allocs)
	}
}

func TestEveryUnplacedPodIsToldInTime(t *testing.T) {
	now := time.Now()
	o, r, _, _ := newObserver(&now)
	const pods = 8000 // more than are told before the first is due again
	p, s := stuck(pods), snapshot()
	for range pods/events.FailuresPerSecond + 1 {
		o.Planned(s, p, 0)
		now = now.Add(time.Second)
	}
	lines := slices.Clone(r.lines)
	slices.Sort(lines)
	if told := len(slices.Compact(lines)); told != pods {
		t.Errorf("%d of %d pods were told", told, pods)
	}
}

func TestFailuresAreToldWhereOneLooks(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "nodeclaims"}, "new",
		errors.New("quota is used up"))
	pods := []*cluster.Pod{{UID: "1", Name: "p1"}, {UID: "2", Name: "p2"}, {UID: "3", Name: "p3"},
		{UID: "4", Name: "p4"}}
	boom := errors.New("boom")
	for _, c := range []struct {
		command command.Command
		err     error
		want    []string
	}{
		{command.CreateClaim{Name: "new", Pool: "default", Pods: pods}, fmt.Errorf("creating NodeClaim new: %w",
			denied), []string{
			`Warning NodePool/default NodeClaimCreationFailed: Failed to create NodeClaim new: nodeclaims "new" is ` +
				`forbidden: quota is used up`,
			`Warning Pod/p1 FailedScheduling: Failed to schedule pod: creating NodeClaim new for NodePool default: ` +
				`nodeclaims "new" is forbidden: quota is used up`,
			`Warning Pod/p2 FailedScheduling: Failed to schedule pod: creating NodeClaim new for NodePool default: ` +
				`nodeclaims "new" is forbidden: quota is used up`,
			`Warning Pod/p3 FailedScheduling: Failed to schedule pod: creating NodeClaim new for NodePool default: ` +
				`nodeclaims "new" is forbidden: quota is used up`}},
		{command.LaunchInstance{Claim: "a", UID: "u"}, boom, []string{"Warning NodeClaim/a LaunchFailed: boom"}},
		{command.Register{Claim: "a", Node: "a"}, boom, []string{"Warning NodeClaim/a RegistrationFailed: boom"}},
		{command.Initialize{Claim: "a", Node: "a"}, boom, []string{"Warning NodeClaim/a InitializationFailed: boom"}},
		{command.DeleteClaim{Claim: "a", Node: "a"}, boom, []string{"Warning NodeClaim/a FailedTermination: boom"}},
		{command.Terminate{Claim: "a", Node: "a"}, boom, []string{"Warning NodeClaim/a FailedTermination: boom"}},
		{command.Release{Claim: "a", Node: "a"}, boom, []string{"Warning NodeClaim/a FailedTermination: boom"}},
		{command.Release{Node: "a"}, boom, []string{"Warning Node/a FailedTermination: boom"}},
		{command.Evict{UID: "x", Namespace: "ns", Name: "p", Node: "a"}, boom,
			[]string{"Warning Node/a FailedDraining: Pod ns/p could not be evicted: boom"}},
		{command.DeleteNode{Node: "a"}, boom, []string{"Warning Node/a FailedTermination: boom"}},
		{command.SetPool{Pool: "default"}, boom, []string{"Warning NodePool/default StatusUpdateFailed: boom"}},
		{command.SetPool{Pool: "default"}, apierrors.NewConflict(schema.GroupResource{}, "default", boom), nil},
	} {
		now := time.Now()
		o, r, _, _ := newObserver(&now)
		for range 2 {
			o.Done(ended(), command.Outcome{Command: c.command, Err: c.err}, 0)
		}
		if len(r.lines) != len(c.want) {
			t.Errorf("%s: events %q, want %q", c.command.Key(), r.lines, c.want)
			continue
		}
		for i, want := range c.want {
			if r.lines[i] != want {
				t.Errorf("%s: event %q, want %q", c.command.Key(), r.lines[i], want)
			}
		}
	}
}

func TestOneCauseForManyClaimsIsToldOnce(t *testing.T) {
	now := time.Now()
	o, r, _, _ := newObserver(&now)
	for _, name := range []string{"default-1", "default-2"} {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "nodeclaims"}, name,
			errors.New("quota is used up"))
		o.Done(ended(), command.Outcome{Command: command.CreateClaim{Name: name, Pool: "default"}, Err: err}, 0)
	}
	if len(r.lines) != 1 {
		t.Errorf("events %q, want one", r.lines)
	}
}

// toWrite are the conditions that a plan writes so that they read like this.
func toWrite(list []cluster.Condition) []command.Condition {
	var out []command.Condition
	for _, c := range list {
		out = append(out, command.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason,
			Text: reason.Said(c.Message)})
	}
	return out
}

func TestPoolIsToldWhatIsWrongWithIt(t *testing.T) {
	cond := func(kind string, status cluster.ConditionStatus, reason, message string) cluster.Condition {
		return cluster.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	good := []cluster.Condition{cond(cluster.ValidationSucceeded, cluster.True, "ValidationSucceeded", ""),
		cond(cluster.NodeClassReady, cluster.True, "NodeClassReady", ""), cond(cluster.Ready, cluster.True,
			"Ready", "")}
	lost := []cluster.Condition{good[0], cond(cluster.NodeClassReady, cluster.False, "NodeClassNotFound",
		`KWOKNodeClass "x" is not there`),
		cond(cluster.Ready, cluster.False, "UnhealthyDependents", `NodeClassReady: KWOKNodeClass "x" is not there`)}
	typo := []cluster.Condition{cond(cluster.ValidationSucceeded, cluster.False, "ValidationFailed", "spec.x is wrong"),
		lost[1], lost[2]}
	const notFound = `Warning NodePool/default NodeClassNotFound: KWOKNodeClass "x" is not there`
	for name, c := range map[string]struct {
		before, after []cluster.Condition
		want          []string
	}{
		"new and good":    {nil, good, []string{"Normal NodePool/default Ready: NodePool is ready"}},
		"new and bad":     {nil, lost, []string{notFound}},
		"as before, good": {good, good, nil},
		"as before, bad":  {lost, lost, nil},
		"goes bad":        {good, lost, []string{notFound}},
		"gets worse":      {lost, typo, []string{"Warning NodePool/default ValidationFailed: spec.x is wrong"}},
		"is right again":  {typo, good, []string{"Normal NodePool/default Ready: NodePool is ready"}},
		"has a doubtful label": {good, append(slices.Clone(good), cond(cluster.CanLaunch, cluster.True, "CanLaunch",
			"spec.x is doubtful")), []string{"Warning NodePool/default DoubtfulLabel: spec.x is doubtful"}},
		"can launch": {good, append(slices.Clone(good), cond(cluster.CanLaunch, cluster.True, "CanLaunch",
			"")), nil},
		"not ready by itself": {good, []cluster.Condition{cond(cluster.Ready, cluster.False, "Deleting", "")},
			[]string{"Warning NodePool/default Deleting: Ready is False"}},
	} {
		now := time.Now()
		o, r, _, _ := newObserver(&now)
		s := ended()
		s.Pools[0].Status.Conditions = c.before
		for range 2 {
			o.Done(s, command.Outcome{Command: command.SetPool{Pool: "default",
				Status: command.PoolStatus{Conditions: toWrite(c.after)}}}, 0)
		}
		if !slices.Equal(r.lines, c.want) {
			t.Errorf("%s: events %q, want %q", name, r.lines, c.want)
		}
	}
}

// silent drops events.
type silent struct{}

func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func BenchmarkUnplaced20000(b *testing.B) {
	now := time.Now()
	o := New(logr.Discard(), silent{}, prometheus.NewRegistry(), func() time.Time {
		return now
	}, Options{ClusterState: true})
	p, s := stuck(20000), snapshot()
	for b.Loop() {
		now = now.Add(events.RepeatAfter) // each time all is news again
		o.Planned(s, p, 0)
	}
}
