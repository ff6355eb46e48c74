package observe

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

func (o *Observer) logPlacement(p *plan.Plan, unplaced []events.UnplacedPod, took time.Duration) {
	nodes, pods, price := 0, 0, 0.0
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			nodes, pods, price = nodes+1, pods+len(create.Pods), price+create.Price
		}
	}
	if nodes > 0 {
		o.log.Info("planned new nodes", "pods", pods, "nodes", nodes, "price-per-hour", price, "lower-bound",
			p.Placement.Bound, "duration", took.String())
	}
	for _, g := range o.events.GroupUnplaced(unplaced) {
		o.log.Info("could not place pods", "pods", g.Pods, "first", g.First.ID(), "reason", g.Reason)
	}
}

// logNotes writes what stands in the way of something. Notes come here once in a while, like the events that they
// became.
func (o *Observer) logNotes(notes []cluster.Note) {
	for _, n := range notes {
		name := n.Name
		if n.Namespace != "" {
			name = n.Namespace + "/" + n.Name
		}
		if n.Warning {
			o.log.Info("noted a problem", n.Kind, name, "reason", n.Reason, "detail", render.Text(n.Text))
		} else {
			o.log.V(1).Info("noted", n.Kind, name, "reason", n.Reason, "detail", render.Text(n.Text))
		}
	}
}

// logFailed writes that an act has failed. Two failures are everyday: a conflict says that somebody was faster, and a
// refused eviction that a disruption budget does its work. The latter is told once for each pod and cause.
func (o *Observer) logFailed(out command.Outcome) {
	if apierrors.IsConflict(out.Err) {
		o.log.V(1).Info("command met a conflict and will be tried again", "command", out.Command.Key(), "reason",
			out.Err.Error())
		return
	}
	if c, ok := out.Command.(command.Evict); ok && (out.Refused || refused(out.Err)) {
		reason := events.Answer(out.Err)
		if o.events.RecentLogs.Learn(c.UID, o.events.RecentLogs.Hash("evict"+reason)) {
			o.log.Info("eviction was refused and will be tried again", "Pod", c.Pod, "Node", c.Node, "reason", reason)
		}
		return
	}
	if !o.events.RecentLogs.Learn(out.Command.Key(), o.events.RecentLogs.Hash(events.Answer(out.Err))) {
		o.log.V(1).Info("command failed again", "command", out.Command.Key(), "reason", out.Err.Error())
		return
	}
	o.log.Error(out.Err, "command failed and will be tried again", append([]any{"command", out.Command.Key()},
		object(out.Command)...)...)
}

// refused reports whether the API server did not grant an eviction: its budget is used up, or there are several.
func refused(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// object names what a command is about, for the log.
func object(c command.Command) []any {
	switch c := c.(type) {
	case command.CreateClaim:
		return []any{"NodeClaim", c.Name, "NodePool", c.Pool, "reason", c.Reason}
	case command.LaunchInstance:
		return []any{"NodeClaim", c.Claim}
	case command.Register:
		return []any{"NodeClaim", c.Claim, "Node", c.Node}
	case command.Open:
		return []any{"NodeClaim", c.Claim, "Node", c.Node}
	case command.Initialize:
		return []any{"NodeClaim", c.Claim, "Node", c.Node}
	case command.Fence:
		return []any{"NodeClaim", c.Claim, "Node", c.Node, "reason", c.Reason}
	case command.Unfence:
		return []any{"NodeClaim", c.Claim, "Node", c.Node}
	case command.DeleteClaim:
		return []any{"NodeClaim", c.Claim, "Node", c.Node, "reason", c.Reason, "detail", render.Text(c.Text)}
	case command.DeleteNode:
		return []any{"Node", c.Node, "reason", c.Reason, "detail", render.Text(c.Text)}
	case command.Evict:
		return []any{"Pod", c.Pod, "Node", c.Node}
	case command.Nominate:
		return []any{"Pod", c.Pod, "Node", c.Node}
	case command.Bind:
		return []any{"Pod", c.Pod, "Node", c.Node}
	case command.Terminate:
		return []any{"NodeClaim", c.Claim, "Node", c.Node, "provider-id", c.ProviderID}
	case command.Release:
		return []any{"NodeClaim", c.Claim, "Node", c.Node}
	case command.Adopt:
		return []any{"NodeClaim", c.Claim}
	case command.SetClaim:
		return []any{"NodeClaim", c.Claim}
	case command.SetPool:
		return []any{"NodePool", c.Pool}
	case command.WritePoolHash:
		return []any{"NodePool", c.Pool}
	case command.WriteClaimHash:
		return []any{"NodeClaim", c.Claim}
	}
	return nil
}
