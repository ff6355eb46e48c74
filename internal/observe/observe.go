// Package observe turns plans and outcomes into what people and machines can see: logs, events and metrics. It is the
// only place where a reason becomes a sentence.
//
// Floor 3: it writes events and metrics and changes nothing else.
package observe

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/observe/measure"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/observe/state"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Options say what is shown.
type Options struct {
	// ClusterState shows every pod, every node and every condition as series of their own. Without it there are only
	// sums.
	ClusterState bool
	// Version and Commit that the program was built from.
	Version, Commit string
	// NodeClasses are the kinds of the provider: series about nodes and claims name theirs.
	NodeClasses []schema.GroupVersionKind
	// Elsewhere says, by kinds of NodeClass that another provider of ours has, how this controller would come to use
	// that one.
	Elsewhere map[cluster.ClassRef]string
	// NodeLabels are labels of nodes that the provider decides, beside those that all do: series about nodes carry
	// them.
	NodeLabels []string
}

// Observer tells what happens.
type Observer struct {
	log     logr.Logger
	now     func() time.Time
	events  *events.Teller
	metrics *measure.Metrics
	state   *state.Collector
	starts  *state.PodStarts
	changes *state.ConditionChanges // nil if conditions are not shown
	others  otherPoolLog
}

// New returns an observer that writes to the log, to the recorder and to the registry.
func New(log logr.Logger, recorder events.Recorder, registry series.Registerer, now func() time.Time,
	options Options) *Observer {
	mk := series.Maker{Registry: registry}
	o := &Observer{log: log, now: now, events: events.New(recorder, now), metrics: measure.New(mk),
		starts: state.NewPodStarts(mk, now), others: newOtherPoolLog(log, options.Elsewhere)}
	o.state = state.New(state.Shown{PerObject: options.ClusterState, NodeClasses: options.NodeClasses,
		NodeLabels: options.NodeLabels}, now, o.starts)
	registry.MustRegister(o.state)
	measure.AddBuild(mk, options.Version, options.Commit)
	if options.ClusterState {
		o.changes = state.NewConditionChanges(mk, o.state, now)
		o.changes.ClaimChanged, o.changes.PoolChanged = o.events.TellClaimCondition, o.events.TellPoolCondition
	}
	return o
}

// Planning tells that a plan is about to be made. Planned ends it.
func (o *Observer) Planning() {
	now := o.now()
	o.state.Planning.Store(&now)
}

// Planned tells about a plan that is about to be carried out.
func (o *Observer) Planned(s *cluster.Snapshot, p *plan.Plan, took time.Duration) {
	o.state.Planning.Store(nil)
	o.state.Latest.Store(&state.TimedSnapshot{Snapshot: s, At: o.now()})
	o.metrics.Planned(s, p, took)
	o.metrics.Breakdowns.LeftOut(&s.Quarantine)
	o.tellFaults(p.Placement.Faults)
	o.others.observe(s.OtherPools)
	notes := o.starts.Observe(s, p)
	if o.changes != nil {
		o.changes.Observe(s)
	}
	o.events.PlannedPods.Update(s, p)
	if p.Provisioned {
		unplaced := o.events.ExplainUnplaced(slices.Concat(p.Placement.Unplaced,
			events.RefusedByScheduler(s, p.Placement.Assigned)))
		o.logPlacement(p, unplaced, took)
		o.events.TellUnplaced(unplaced)
		o.events.TellPlaced(p)
	}
	o.tellMoves(s, p)
	o.noteNotBegun(s, p.NotBegun)
	o.events.TellBlocked(s, o.state.Search.Load())
	for _, news := range [][]cluster.Note{notes, s.Notes, p.Notes} {
		o.logNotes(o.events.TellNotes(news))
	}
}

// Done tells what became of a command.
func (o *Observer) Done(s *cluster.Snapshot, out command.Outcome, took time.Duration) {
	o.metrics.CountDone(s, out, o.now())
	if out.Err != nil {
		o.logFailed(out)
		o.events.TellFailed(s, out)
		return
	}
	o.events.TellDone(s, out)
	o.logDone(s, out, took)
}
