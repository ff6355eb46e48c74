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
	events  *events
	metrics *metrics
	state   *stateMetrics
	starts  *podStarts
	changes *conditionChanges // nil if conditions are not shown
	others  otherPoolLog
}

// New returns an observer that writes to the log, to the recorder and to the registry.
func New(log logr.Logger, recorder Recorder, registry Registerer, now func() time.Time, options Options) *Observer {
	mk := maker{registry}
	o := &Observer{log: log, now: now, events: newEvents(recorder, now), metrics: newMetrics(mk),
		starts: newPodStarts(mk, now), others: newOtherPoolLog(log, options.Elsewhere)}
	o.state = newStateMetrics(options, now, o.starts)
	registry.MustRegister(o.state)
	addBuild(mk, options.Version, options.Commit)
	if options.ClusterState {
		o.changes = newConditionChanges(mk, o.state, now)
		o.changes.claimChanged, o.changes.poolChanged = o.events.tellClaimCondition, o.events.tellPoolCondition
	}
	return o
}

// Planning tells that a plan is about to be made. Planned ends it.
func (o *Observer) Planning() {
	now := o.now()
	o.state.planning.Store(&now)
}

// Planned tells about a plan that is about to be carried out.
func (o *Observer) Planned(s *cluster.Snapshot, p *plan.Plan, took time.Duration) {
	o.state.planning.Store(nil)
	o.state.latest.Store(&timedSnapshot{Snapshot: s, at: o.now()})
	o.metrics.planned(s, p, took)
	o.metrics.breakdowns.leftOut(&s.Quarantine)
	o.tellFaults(p.Placement.Faults)
	o.others.observe(s.OtherPools)
	notes := o.starts.observe(s, p)
	if o.changes != nil {
		o.changes.observe(s)
	}
	o.events.plannedPods.update(s, p)
	if p.Provisioned {
		unplaced := o.events.explainUnplaced(slices.Concat(p.Placement.Unplaced,
			refusedByScheduler(s, p.Placement.Assigned)))
		o.logPlacement(p, unplaced, took)
		o.events.tellUnplaced(unplaced)
		o.events.tellPlaced(p)
	}
	o.tellMoves(s, p)
	o.noteNotBegun(s, p.NotBegun)
	o.events.tellBlocked(s, o.state.search.Load())
	for _, news := range [][]cluster.Note{notes, s.Notes, p.Notes} {
		o.logNotes(o.events.tellNotes(news))
	}
}

// Done tells what became of a command.
func (o *Observer) Done(s *cluster.Snapshot, out command.Outcome, took time.Duration) {
	o.metrics.countDone(s, out, o.now())
	if out.Err != nil {
		o.logFailed(out)
		o.events.tellFailed(s, out)
		return
	}
	o.events.tellDone(s, out)
	o.logDone(s, out, took)
}
