package observe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/render"
)

// PlannerFailed tells that something has failed that should never fail, and what was done about it. It is written to
// the log with its stack, once in a while where it is always the same.
func (o *Observer) PlannerFailed(failure plan.PlannerFailure) {
	o.metrics.Breakdowns.Panics.WithLabelValues(failure.Step).Inc()
	err := errors.New(failure.Panic)
	if !o.events.RecentLogs.Learn("breakdown/"+failure.Step, o.events.RecentLogs.Hash(cmp.Or(failure.Frames,
		failure.Panic)+describeHandling(failure))) {
		o.log.V(1).Info("a step failed again and was contained", "step", failure.Step, "reason", failure.Panic)
		return
	}
	o.log.Error(err, "a step failed and was contained; this is a mistake in "+failure.Whose()+", please report it",
		"step", failure.Step, "done", describeHandling(failure),
		"pod-classes", slices.Sorted(maps.Keys(failure.LeftOut.Classes)), "pods", failure.Pods,
		"commands", failure.Commands, "tries", failure.Tries, "stack", failure.Stack)
}

// describeHandling says what was done about a failure.
func describeHandling(failure plan.PlannerFailure) string {
	switch q := &failure.LeftOut; {
	case failure.MinimalFailed:
		return "nothing can be planned, whatever is left out; it is tried again"
	case failure.Minimal:
		return "plans fail whatever is left out, so no pod gets a new node and no node is removed to save money; " +
			"NodeClaims that are there go on, and interrupted nodes are replaced"
	case len(q.Classes) > 0:
		return fmt.Sprintf("pods of %d classes are left without a place, everybody else is served", len(q.Classes))
	case len(q.Claims) > 0:
		return fmt.Sprintf("nothing is done to %d claims or nodes, everything else goes on", len(q.Claims))
	case len(q.SearchClasses)+len(q.SearchClaims) > 0:
		return fmt.Sprintf("searches for cheaper nodes leave out %d classes of pods and %d claims or nodes, "+
			"everything else goes on", len(q.SearchClasses), len(q.SearchClaims))
	case len(failure.Commands) > 0:
		return fmt.Sprintf("%d commands are left out of this plan, all others begin", len(failure.Commands))
	case failure.Unchecked:
		return "the plan can't be checked, so it removes a node only if nothing has changed since it was made; " +
			"everything else goes on"
	case len(q.Parts) > 0:
		return fmt.Sprintf("left out of planning: %v; everything else goes on", slices.Sorted(maps.Keys(q.Parts)))
	}
	return "it is tried again, everything else goes on"
}

// SnapshotSaved tells where a snapshot file was written that shows a failure.
func (o *Observer) SnapshotSaved(path string, err error) {
	if path != "" {
		o.log.Info("wrote a snapshot file; look at it with: tenon replay FILE", "file", path)
	}
	if err != nil {
		o.log.Error(err, "could not keep a snapshot file")
	}
}

// tellFaults tells the invariants that a placement has found violated.
func (o *Observer) tellFaults(faults []purchase.Fault) {
	for _, f := range faults {
		o.metrics.Breakdowns.Faults.WithLabelValues(render.Invariant(f.Invariant)).Inc()
		if o.events.RecentLogs.Learn("fault/"+f.Class, o.events.RecentLogs.Hash(render.Fault(f))) {
			o.log.Error(errors.New(render.Fault(f)), "a placement was wrong and was mended; this is a mistake in "+
				"Tenon, "+
				"please report it")
		}
	}
}
