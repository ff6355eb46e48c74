package observe

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

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

// logNotes writes what stands in the way of something. Notes come here once in a while, like the events that they became.
func (o *Observer) logNotes(notes []cluster.Note) {
	for _, n := range notes {
		name := n.Name
		if n.Namespace != "" {
			name = n.Namespace + "/" + n.Name
		}
		if n.Warning {
			o.log.Info("noted a problem", n.Kind, name, "reason", n.Reason, "detail", n.Message)
		} else {
			o.log.V(1).Info("noted", n.Kind, name, "reason", n.Reason, "detail", n.Message)
		}
	}
}

// logFailed writes that an act has failed. Two failures are everyday: a conflict says that somebody was faster, and a
// refused eviction that a disruption budget does its work. The latter is told once for each pod and cause.
func (o *Observer) logFailed(out command.Outcome) {
	if apierrors.IsConflict(out.Err) {
		o.log.V(1).Info("command met a conflict and will be tried again", "command", out.Command.Key(), "reason", out.Err.Error())
		return
	}
	if c, ok := out.Command.(command.Evict); ok && (out.Refused || refused(out.Err)) {
		why := answer(out.Err)
		if o.events.logged.learn(c.UID, o.events.logged.hash("evict"+why)) {
			o.log.Info("eviction was refused and will be tried again", "Pod", c.Pod, "Node", c.Node, "reason", why)
		}
		return
	}
	if !o.events.logged.learn(out.Command.Key(), o.events.logged.hash(answer(out.Err))) {
		o.log.V(1).Info("command failed again", "command", out.Command.Key(), "reason", out.Err.Error())
		return
	}
	o.log.Error(out.Err, "command failed and will be tried again", append([]any{"command", out.Command.Key()}, object(out.Command)...)...)
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
	case command.Initialize:
		return []any{"NodeClaim", c.Claim, "Node", c.Node}
	case command.Fence:
		return []any{"NodeClaim", c.Claim, "Node", c.Node, "reason", c.Reason}
	case command.Unfence:
		return []any{"NodeClaim", c.Claim, "Node", c.Node}
	case command.DeleteClaim:
		return []any{"NodeClaim", c.Claim, "Node", c.Node, "reason", c.Reason, "detail", c.Message}
	case command.DeleteNode:
		return []any{"Node", c.Node, "reason", c.Reason, "detail", c.Message}
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
	case command.StampPool:
		return []any{"NodePool", c.Pool}
	case command.StampClaim:
		return []any{"NodeClaim", c.Claim}
	}
	return nil
}

// logDone writes a line for each act that a person would ask about, with the object and the reason. What comes in
// hundreds, or only keeps a status up to date, is for those who look closer.
func (o *Observer) logDone(s *cluster.Snapshot, out command.Outcome, took time.Duration) {
	about := object(out.Command)
	info := func(message string, more ...any) { o.log.Info(message, append(about, more...)...) }
	closer := func(message string, more ...any) { o.log.V(1).Info(message, append(about, more...)...) }
	switch c := out.Command.(type) {
	case command.CreateClaim:
		if c.Replaces != "" {
			about = append(about, "move", c.Replaces)
		}
		info("created nodeclaim", "pods", len(c.Pods), "requests", s.Names.String(c.Requests), "instance-types", len(typesOf(c)), "cheapest-price", c.Price)
	case command.LaunchInstance:
		if out.Refused || len(out.Exhausted) > 0 {
			info("the cloud refused to launch an instance", "reason", command.InsufficientCapacity, "offerings", out.Exhausted)
			return
		}
		info("launched nodeclaim", "reason", "it has no instance yet", "duration", took.String())
	case command.Register:
		info("registered nodeclaim", "reason", "its node has joined", "without-taint", c.Bare)
	case command.Initialize:
		info("initialized nodeclaim", "reason", "its node is ready for pods")
	case command.Fence:
		info("tainted node", inMove(c.Move)...)
	case command.Unfence:
		info("opened node again", append([]any{"reason", "the node is needed after all"}, resting(c)...)...)
	case command.DeleteClaim:
		o.logCarriedOut(s, c)
		info("deleted nodeclaim")
	case command.DeleteNode:
		info("deleted node")
	case command.Evict:
		if c.Now {
			info("deleted pod", "grace-period", c.Grace.String(), "reason", "the time of its node is up")
			return
		}
		closer("evicted pod", "reason", drainReason(s, c.Node))
	case command.Nominate:
		closer("nominated node for pod", "reason", "the node was planned for it")
	case command.Bind:
		closer("bound pod", "reason", "the node was planned for it")
	case command.Terminate:
		if out.Gone {
			info("instance is gone", "reason", whyGone(s, c))
		}
	case command.Release:
		info("released node", "reason", "the instance is gone")
	case command.Adopt:
		info("adopted nodeclaim", "reason", "it was created by somebody else")
	case command.SetClaim:
		closer("wrote nodeclaim status", "reason", "it has changed", "conditions", len(c.Conditions))
	case command.StampPool:
		closer("wrote the hash of the template", "reason", "it has changed", "hash", c.Hash)
	case command.StampClaim:
		closer("wrote the hash of the template", "reason", "the claim had none that can be compared", "hash", c.Hash)
	case command.SetPool:
		closer("wrote nodepool status", "reason", "it has changed", "nodes", c.Status.Nodes)
	}
}

// logCarriedOut writes that a move is carried out: what takes the place of its nodes is up, and it has been verified once more.
func (o *Observer) logCarriedOut(s *cluster.Snapshot, c command.DeleteClaim) {
	claim := s.Claim(c.Claim)
	if claim == nil || claim.Move == "" || !claim.Deleting.IsZero() {
		return
	}
	e := endingOf(s, claim, c.Reason)
	if !e.first(claim) {
		return
	}
	var claims, made []string
	pods := 0
	for _, m := range e.members {
		claims = append(claims, m.Name)
		if n := s.NodeOf(m.Name); n != nil {
			for _, p := range s.PodsOn(n.Name) {
				if p.Reschedulable() {
					pods++
				}
			}
		}
	}
	for _, m := range e.made {
		made = append(made, m.Name)
	}
	nodes, pools := whoGoes(s, claims)
	values := []any{"move", claim.Move, "command", e.decision(), "reason", c.Reason, "nodepools", pools, "nodes", named(nodes),
		"node-count", len(claims), "pods", pods, "replacements", len(made), "new", named(made)}
	if saves(c.Reason) {
		values = append(values, "saving-per-month", rounded((e.before-e.after)*hoursPerMonth))
	}
	o.log.Info("disruption is carried out", values...)
}

func inMove(move string) []any {
	if move == "" {
		return nil
	}
	return []any{"move", move}
}

func resting(c command.Unfence) []any {
	if c.RestUntil.IsZero() {
		return nil
	}
	return []any{"rests-until", c.RestUntil.UTC().Format(time.RFC3339)}
}

// whyGone is why an instance was ended.
func whyGone(s *cluster.Snapshot, c command.Terminate) string {
	switch claim := s.Claim(c.Claim); {
	case claim != nil && claim.Is(cluster.DisruptionReason):
		return claim.Condition(cluster.DisruptionReason).Reason
	case claim == nil && s.Node(c.Node) == nil:
		return string(command.ClaimMissing)
	}
	return string(command.Requested)
}

func typesOf(c command.CreateClaim) []string {
	values, _ := c.Requirements.Get(cluster.InstanceTypeLabel)
	list, _ := values.Listed()
	return list
}
