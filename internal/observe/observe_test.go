package observe

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// recorder keeps events as lines.
type recorder struct{ lines []string }

func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	ref := regarding.(*corev1.ObjectReference)
	r.lines = append(r.lines, fmt.Sprintf("%s %s/%s %s: %s", kind, ref.Kind, ref.Name, reason,
		fmt.Sprintf(note, args...)))
}

func newObserver(now *time.Time) (*Observer, *recorder, *prometheus.Registry, *[]string) {
	r, registry, logs := &recorder{}, prometheus.NewRegistry(), &[]string{}
	log := funcr.New(func(prefix, args string) { *logs = append(*logs, prefix+" "+args) }, funcr.Options{})
	return New(log, r, registry, func() time.Time { return *now }, Options{ClusterState: true}), r, registry, logs
}

func snapshot() *cluster.Snapshot {
	return (&cluster.Snapshot{
		Names: &resource.Names{},
		Pools: []*cluster.Pool{{Name: "default", Limits: cluster.Limits{Set: [resource.Size]bool{resource.CPU: true},
			Amount: resource.Vector{resource.CPU: 1000000}}}},
		Claims: []*cluster.Claim{{Name: "a", UID: "u", Pool: "default", Capacity: resource.Vector{resource.CPU: 4000},
			Price:  0.25,
			Labels: cluster.LabelsOf(map[string]string{cluster.CapacityTypeLabel: "spot"})}},
	}).Seal()
}

func TestUnplacedPodIsToldOnceInAWhile(t *testing.T) {
	now := time.Now()
	o, r, _, logs := newObserver(&now)
	p := &plan.Plan{Provisioned: true, Placement: schedule.Placement{Unplaced: []schedule.Unplaced{{
		Pod:   &cluster.Pod{UID: "u", Namespace: "ns", Name: "p"},
		Pools: []schedule.PoolMiss{{Pool: "default", NotUsable: reason.Of(reason.PoolDeleting)}}}}}}
	for range 3 {
		o.Planned(snapshot(), p, time.Millisecond)
	}
	want := `Warning Pod/p FailedScheduling: Failed to schedule pod: NodePool "default": it is being deleted`
	if len(r.lines) != 1 || r.lines[0] != want {
		t.Errorf("events %q, want %q once", r.lines, want)
	}
	if len(*logs) != 1 || !strings.Contains((*logs)[0], "ns/p") {
		t.Errorf("log %q, want one line that names the pod", *logs)
	}
	now = now.Add(events.RepeatAfter)
	o.Planned(snapshot(), p, time.Millisecond)
	if len(r.lines) != 2 {
		t.Errorf("after %s the news was not told again", events.RepeatAfter)
	}
}

func TestLongNoteIsCut(t *testing.T) {
	now := time.Now()
	o, r, _, _ := newObserver(&now)
	o.Done(snapshot(), command.Outcome{Command: command.LaunchInstance{Claim: "a", UID: "u"},
		Err: errors.New(strings.Repeat("é", 2000))}, 0)
	if len(r.lines) != 1 {
		t.Fatalf("events %q", r.lines)
	}
	_, note, _ := strings.Cut(r.lines[0], "LaunchFailed: ")
	if len(note) > events.LongestNote || !strings.HasSuffix(note, "...") || strings.ContainsRune(note, '\uFFFD') {
		t.Errorf("a note of %d bytes, ending in %q", len(note), note[len(note)-8:])
	}
}

func TestNominationsAreRationed(t *testing.T) {
	now := time.Now()
	r := &recorder{}
	o := New(logr.Discard(), r, prometheus.NewRegistry(), func() time.Time { return now }, Options{ClusterState: true})
	p := &plan.Plan{Provisioned: true}
	for i := range 1000 {
		p.Placement.Assigned = append(p.Placement.Assigned, schedule.Assignment{Pod: &cluster.Pod{UID: fmt.Sprint(i)},
			Host: "n", Claim: "n"})
	}
	o.Planned(snapshot(), p, 0)
	if len(r.lines) < 1 || len(r.lines) > 50 {
		t.Errorf("%d events for 1000 nominations", len(r.lines))
	}
}
