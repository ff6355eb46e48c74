package observe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// breakdowns counts what should never happen.
type breakdowns struct {
	panics, faults *prometheus.CounterVec
	left           *prometheus.GaugeVec
}

func newBreakdowns(mk maker) breakdowns {
	out := breakdowns{
		panics: mk.counter("tenon_planner_panics_total",
			"Failures that were contained, by the step that failed. Each is a mistake in Tenon.", "step"),
		faults: mk.counter("tenon_planner_faults_total",
			"Invariants of placements that were found violated. Each is a mistake in Tenon.", "invariant"),
		left: mk.gauge("tenon_planner_quarantined",
			"What plans leave out because the planner has failed on it, by kind: pod classes, claims, parts; "+
				"what only searches leave out.", "kind"),
	}
	// Prometheus sees no increase from a series that begins with 1.
	for _, step := range plan.Steps() {
		out.panics.WithLabelValues(step)
	}
	return out
}

// Broke tells that something has failed that should never fail, and what was done about it. It is written to the log
// with its stack, once in a while where it is always the same.
func (o *Observer) Broke(b plan.Breakdown) {
	o.metrics.breakdowns.panics.WithLabelValues(b.Step).Inc()
	err := errors.New(b.Panic)
	if !o.events.logged.learn("breakdown/"+b.Step, o.events.logged.hash(cmp.Or(b.Frames, b.Panic)+contained(b))) {
		o.log.V(1).Info("a step failed again and was contained", "step", b.Step, "reason", b.Panic)
		return
	}
	o.log.Error(err, "a step failed and was contained; this is a mistake in Tenon, please report it",
		"step", b.Step, "done", contained(b),
		"pod-classes", slices.Sorted(maps.Keys(b.Left.Classes)), "pods", b.Pods,
		"commands", b.Commands, "tries", b.Tries, "stack", b.Stack)
}

// contained says what was done about a failure.
func contained(b plan.Breakdown) string {
	switch q := &b.Left; {
	case b.Helpless:
		return "nothing can be planned, whatever is left out; it is tried again"
	case b.Bare:
		return "plans fail whatever is left out, so no pod gets a new node and no node is removed to save money; " +
			"NodeClaims that are there go on, and interrupted nodes are replaced"
	case len(q.Classes) > 0:
		return fmt.Sprintf("pods of %d classes are left without a place, everybody else is served", len(q.Classes))
	case len(q.Claims) > 0:
		return fmt.Sprintf("nothing is done to %d claims or nodes, everything else goes on", len(q.Claims))
	case len(q.SearchClasses)+len(q.SearchClaims) > 0:
		return fmt.Sprintf("searches for cheaper nodes leave out %d classes of pods and %d claims or nodes, "+
			"everything else goes on", len(q.SearchClasses), len(q.SearchClaims))
	case len(b.Commands) > 0:
		return fmt.Sprintf("%d commands are left out of this plan, all others begin", len(b.Commands))
	case b.Unchecked:
		return "the plan can't be checked, so it removes a node only if nothing has changed since it was made; " +
			"everything else goes on"
	case len(q.Parts) > 0:
		return fmt.Sprintf("left out of planning: %v; everything else goes on", slices.Sorted(maps.Keys(q.Parts)))
	}
	return "it is tried again, everything else goes on"
}

// Saved tells where a snapshot file was written that shows a failure.
func (o *Observer) Saved(path string, err error) {
	if path != "" {
		o.log.Info("wrote a snapshot file; look at it with: tenon replay FILE", "file", path)
	}
	if err != nil {
		o.log.Error(err, "could not keep a snapshot file")
	}
}

// leftOut shows what a snapshot leaves out.
func (b *breakdowns) leftOut(q *cluster.Quarantine) {
	b.left.WithLabelValues("class").Set(float64(len(q.Classes)))
	b.left.WithLabelValues("claim").Set(float64(len(q.Claims)))
	b.left.WithLabelValues("search-class").Set(float64(len(q.SearchClasses)))
	b.left.WithLabelValues("search-claim").Set(float64(len(q.SearchClaims)))
	b.left.WithLabelValues("part").Set(float64(len(q.Parts)))
}

// faulty tells the invariants that a placement has found violated.
func (o *Observer) faulty(faults []schedule.Fault) {
	for _, f := range faults {
		o.metrics.breakdowns.faults.WithLabelValues(f.Invariant).Inc()
		if o.events.logged.learn("fault/"+f.Class, o.events.logged.hash(f.String())) {
			o.log.Error(errors.New(f.String()), "a placement was wrong and was mended; this is a mistake in Tenon, please report it")
		}
	}
}
