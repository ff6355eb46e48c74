package observe

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// A failure is counted each time, and written with its stack once in a while.
func TestBreakdownIsTold(t *testing.T) {
	now := time.Now()
	o, _, _, logs := newObserver(&now)
	failure := plan.PlannerFailure{Step: plan.StepMake, Panic: "index out of range", Stack: "place.go:7",
		Pods: 3, Tries: 9,
		LeftOut: cluster.Quarantine{Classes: map[string]cluster.Failure{"c1": {}}}}
	o.PlannerFailed(failure)
	o.PlannerFailed(failure)
	if got := testutil.ToFloat64(o.metrics.Breakdowns.Panics.WithLabelValues("make")); got != 2 {
		t.Errorf("counted %v", got)
	}
	if len(*logs) != 1 {
		t.Fatalf("the log has %v", *logs)
	}
	for _, want := range []string{"index out of range", "place.go:7", "pods of 1 classes are left without a place",
		`"step"="make"`, `"pods"=3`} {
		if !strings.Contains((*logs)[0], want) {
			t.Errorf("the log does not say %s: %s", want, (*logs)[0])
		}
	}
}

// The same mistake is logged once, whatever it says of whom; what is new is what is done about it.
func TestSameMistakeIsLoggedOnce(t *testing.T) {
	now := time.Now()
	o, _, _, logs := newObserver(&now)
	failure := plan.PlannerFailure{Step: plan.StepCheck, Frames: "plan.holds:7", Stack: "check.go:7"}
	for _, say := range []string{"boom at a", "boom at b"} {
		failure.Panic = say
		o.PlannerFailed(failure)
	}
	if len(*logs) != 1 {
		t.Errorf("the log has %v", *logs)
	}
	failure.Commands = []string{"pool/default"}
	if o.PlannerFailed(failure); len(*logs) != 2 || !strings.Contains((*logs)[1], "pool/default") {
		t.Errorf("the log has %v", *logs)
	}
}

// Each step is shown with 0 before it fails for the first time: an alert on the increase would not see the first
// failure otherwise.
func TestEveryStepIsCountedFromZero(t *testing.T) {
	now := time.Now()
	o, _, _, _ := newObserver(&now)
	if got, want := testutil.CollectAndCount(o.metrics.Breakdowns.Panics), len(plan.Steps()); got != want || want == 0 {
		t.Errorf("%d of %d steps are shown", got, want)
	}
}

func TestContainedSaysWhatIsLeftOut(t *testing.T) {
	one, two := map[string]cluster.Failure{"x": {}}, map[string]cluster.Failure{"x": {}, "y": {}}
	parts := map[cluster.Part]cluster.Failure{cluster.Searching: {}, cluster.Disrupting: {}}
	for want, failure := range map[string]plan.PlannerFailure{
		"nothing can be planned":          {Minimal: true, MinimalFailed: true},
		"NodeClaims that are there go on": {Minimal: true},
		"to 1 claims or nodes":            {LeftOut: cluster.Quarantine{Claims: one}},
		"[disruption search]":             {LeftOut: cluster.Quarantine{Parts: parts}},
		"2 classes of pods and 1 claims":  {LeftOut: cluster.Quarantine{SearchClaims: one, SearchClasses: two}},
		"1 commands are left out":         {Commands: []string{"pool/default"}},
		"the plan can't be checked":       {Unchecked: true},
		"it is tried again, ev":           {},
	} {
		if got := describeHandling(failure); !strings.Contains(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

func TestSavedIsTold(t *testing.T) {
	now := time.Now()
	o, _, _, logs := newObserver(&now)
	o.SnapshotSaved("/x/y.json.gz", nil)
	o.SnapshotSaved("", errors.New("the disk is full"))
	if len(*logs) != 2 || !strings.Contains((*logs)[0], "/x/y.json.gz") || !strings.Contains((*logs)[1],
		"the disk is full") {
		t.Errorf("the log has %v", *logs)
	}
}

// Pods whose class is left out are told so, each class in its own words, and what is left out is shown.
func TestQuarantineIsShown(t *testing.T) {
	now := time.Now()
	o, r, _, _ := newObserver(&now)
	s := (&cluster.Snapshot{Names: &resource.Names{},
		Quarantine: cluster.Quarantine{Classes: map[string]cluster.Failure{"a": {}, "b": {}}}}).Seal()
	pod := func(name string) *cluster.Pod {
		return &cluster.Pod{UID: name, Namespace: "d", Name: name, Class: &cluster.PodClass{}}
	}
	a, b := &cluster.Failure{Message: "boom", Until: now}, &cluster.Failure{Message: "bang", Until: now}
	p := &plan.Plan{Provisioned: true, Placement: schedule.Placement{
		Unplaced: []schedule.Unplaced{{Pod: pod("1"), Failed: a}, {Pod: pod("2"), Failed: a},
			{Pod: pod("3"), Failed: b}},
		Faults: []purchase.Fault{{Invariant: purchase.OneGroup, Class: "a", Have: 2, Most: 1}}}}
	o.Planned(s, p, 0)
	text := strings.Join(r.lines, "\n")
	if strings.Count(text, "boom") != 2 || strings.Count(text, "bang") != 1 {
		t.Errorf("told %s", text)
	}
	if got := testutil.ToFloat64(o.metrics.Breakdowns.Left.WithLabelValues("class")); got != 2 {
		t.Errorf("%v classes are shown", got)
	}
	if got := testutil.ToFloat64(o.metrics.Breakdowns.Faults.WithLabelValues(
		"each pod is in at most one group")); got != 1 {
		t.Errorf("%v faults are counted", got)
	}
}

// A plan that has not looked for orphans says nothing of them: what is shown stays, and an alert does not resolve by
// itself.
func TestOrphansStayShown(t *testing.T) {
	now := time.Now()
	o, _, _, _ := newObserver(&now)
	s := (&cluster.Snapshot{}).Seal()
	for _, c := range []struct {
		plan plan.Plan
		want float64
	}{
		{plan.Plan{Orphans: lifecycle.OrphanStatus{Orphans: 5, Held: 4}, OrphansChecked: true}, 4},
		{plan.Plan{}, 4},
		{plan.Plan{OrphansChecked: true}, 0},
	} {
		o.Planned(s, &c.plan, 0)
		if got := testutil.ToFloat64(o.metrics.HeldOrphans); got != c.want {
			t.Errorf("%v orphans are shown as held, want %v", got, c.want)
		}
	}
}

// A provider is often somebody else's: who reads the log must know whom to tell.
func TestWhoseMistakeIsTold(t *testing.T) {
	now := time.Now()
	o, _, _, logs := newObserver(&now)
	for step, want := range map[string]string{plan.StepCloud: "a mistake in the provider,",
		plan.StepMake: "a mistake in Tenon,"} {
		*logs = nil
		o.PlannerFailed(plan.PlannerFailure{Step: step, Panic: step})
		if len(*logs) != 1 || !strings.Contains((*logs)[0], want) {
			t.Errorf("%s: the log has %q, want %q", step, *logs, want)
		}
	}
}
