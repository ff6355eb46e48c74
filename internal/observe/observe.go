// Package observe turns plans and outcomes into what people and machines can see: logs, events and metrics. It is the
// only place where a reason becomes a sentence.
//
// Floor 3: it writes events and metrics and changes nothing else.
package observe

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Observer tells what happens.
type Observer struct {
	log     logr.Logger
	events  *events
	metrics *metrics
}

// New returns an observer that writes to the log, to the recorder and to the registry.
func New(log logr.Logger, recorder Recorder, registry Registerer, now func() time.Time) *Observer {
	return &Observer{log: log, events: newEvents(recorder, now), metrics: newMetrics(registry)}
}

// Planned tells about a plan that is about to be carried out.
func (o *Observer) Planned(s *cluster.Snapshot, p *plan.Plan, took time.Duration) {
	o.metrics.planned(s, p, took)
	if p.Provisioned {
		misfits := o.events.explain(p.Placement.Unplaced)
		o.logPlacement(p, misfits, took)
		o.events.unplaced(misfits)
		o.events.placed(p)
	}
}

func (o *Observer) logPlacement(p *plan.Plan, misfits []misfit, took time.Duration) {
	nodes, pods, price := 0, 0, 0.0
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			nodes, pods, price = nodes+1, pods+len(create.Pods), price+create.Price
		}
	}
	if nodes > 0 {
		o.log.Info("planned new nodes", "pods", pods, "nodes", nodes, "price-per-hour", price, "lower-bound", p.Placement.Bound, "duration", took.String())
	}
	for _, g := range o.events.groups(misfits) {
		o.log.Info("could not place pods", "pods", g.pods, "first", g.first.ID(), "reason", g.why)
	}
}

// Done tells what became of a command.
func (o *Observer) Done(s *cluster.Snapshot, out command.Outcome, took time.Duration) {
	o.metrics.done(s, out)
	if out.Err != nil {
		o.log.Error(out.Err, "command failed and will be tried again", "command", out.Command.Key())
		o.events.failed(s, out)
		return
	}
	o.events.done(s, out)
	o.logDone(s, out, took)
}

// logDone writes a line for each act that a person would ask about, with the object and the reason.
func (o *Observer) logDone(s *cluster.Snapshot, out command.Outcome, took time.Duration) {
	switch c := out.Command.(type) {
	case command.CreateClaim:
		o.log.Info("created nodeclaim", "NodeClaim", c.Name, "NodePool", c.Pool, "reason", c.Reason, "pods", len(c.Pods),
			"requests", s.Names.String(c.Requests), "instance-types", len(typesOf(c)), "cheapest-price", c.Price)
	case command.LaunchInstance:
		if out.Refused || len(out.Exhausted) > 0 {
			o.log.Info("the cloud refused to launch an instance", "NodeClaim", c.Claim, "offerings", out.Exhausted)
			return
		}
		o.log.Info("launched nodeclaim", "NodeClaim", c.Claim, "duration", took.String())
	case command.Register:
		o.log.Info("registered nodeclaim", "NodeClaim", c.Claim, "Node", c.Node)
	case command.Initialize:
		o.log.Info("initialized nodeclaim", "NodeClaim", c.Claim, "Node", c.Node)
	case command.Fence:
		o.log.Info("tainted node", "Node", c.Node, "NodeClaim", c.Claim, "reason", c.Reason)
	case command.Unfence:
		o.log.Info("opened node again", "Node", c.Node, "NodeClaim", c.Claim, "reason", "the node is needed after all")
	case command.DeleteClaim:
		o.log.Info("deleted nodeclaim", "NodeClaim", c.Claim, "Node", c.Node, "reason", c.Reason, "message", c.Message)
	case command.Evict:
		o.log.V(1).Info("evicted pod", "Pod", c.Pod, "Node", c.Node, "reason", "the node is being drained")
	case command.Terminate:
		if out.Gone {
			o.log.Info("instance is gone", "NodeClaim", c.Claim, "Node", c.Node, "provider-id", c.ProviderID)
		}
	case command.Release:
		o.log.Info("released node", "NodeClaim", c.Claim, "Node", c.Node, "reason", "the instance is gone")
	case command.SetPool:
		o.log.V(1).Info("wrote nodepool status", "NodePool", c.Pool, "nodes", c.Status.Nodes)
	}
}

func typesOf(c command.CreateClaim) []string {
	values, _ := c.Requirements.Get(cluster.InstanceTypeLabel)
	list, _ := values.Listed()
	return list
}
