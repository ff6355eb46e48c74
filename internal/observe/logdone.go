package observe

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/measure"
	"github.com/tenon-sh/tenon/internal/observe/search"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// logLine is where the log tells about one act: what it is about comes before what became of it.
type logLine struct {
	log   logr.Logger
	about []any
}

func (l *logLine) info(message string, more ...any) { l.log.Info(message, append(l.about, more...)...) }

// debug is for those who look closer.
func (l *logLine) debug(message string, more ...any) {
	l.log.V(1).Info(message, append(l.about, more...)...)
}

// logDone writes a line for each act that a person would ask about, with the object and the reason. What comes in
// hundreds, or only keeps a status up to date, is for those who look closer.
func (o *Observer) logDone(s *cluster.Snapshot, out command.Outcome, took time.Duration) {
	l := &logLine{o.log, object(out.Command)}
	switch c := out.Command.(type) {
	case command.CreateClaim, command.LaunchInstance, command.Register, command.Initialize, command.Adopt:
		l.beginning(s, out, took)
	case command.Fence:
		l.info("tainted node", inMove(c.Move)...)
	case command.Open:
		l.info("opened node", "reason", "the nodes whose place it takes go, or stay")
	case command.Unfence:
		l.info("opened node again", append([]any{"reason", openedReason(s, c)}, resting(c)...)...)
	case command.DeleteClaim:
		o.logCarriedOut(s, c)
		l.info("deleted nodeclaim")
	case command.DeleteNode:
		l.info("deleted node")
	case command.Terminate:
		if out.InstanceGone {
			l.info("instance is gone", "reason", goneReason(s, c))
		}
	case command.Release:
		l.info("released node", "reason", "the instance is gone")
	case command.Evict, command.Nominate, command.Bind:
		l.pod(s, out.Command)
	default:
		l.status(out.Command)
	}
}

// beginning tells about the first part of a node's life.
func (l *logLine) beginning(s *cluster.Snapshot, out command.Outcome, took time.Duration) {
	switch c := out.Command.(type) {
	case command.CreateClaim:
		l.about = append(l.about, inMove(c.Replaces)...)
		l.info("created nodeclaim", "pods", len(c.Pods), "requests", s.Names.String(c.Requests), "instance-types",
			len(typesOf(c)), "cheapest-price", c.Price)
	case command.LaunchInstance:
		if out.Refused {
			l.info("the cloud refused to launch an instance", "reason", out.Refusal.Reason, "cause",
				out.Refusal.Message, "offerings", out.Unavailable)
			return
		}
		if len(out.Unavailable) > 0 {
			l.info("the cloud refused some offerings before it sold one", "offerings", out.Unavailable)
		}
		l.info("launched nodeclaim", "reason", "it has no instance yet", "duration", took.String())
	case command.Register:
		l.info("registered nodeclaim", "reason", "its node has joined", "without-taint", c.Untainted)
	case command.Initialize:
		l.info("initialized nodeclaim", "reason", "its node is ready for pods")
	case command.Adopt:
		l.info("adopted nodeclaim", "reason", "it was created by somebody else")
	}
}

// pod tells what was done to a pod.
func (l *logLine) pod(s *cluster.Snapshot, c command.Command) {
	switch c := c.(type) {
	case command.Evict:
		if c.Delete {
			l.info("deleted pod", "grace-period", c.Grace.String(), "reason", "the time of its node is up")
			return
		}
		l.debug("evicted pod", "reason", series.DrainReason(s, c.Node))
	case command.Nominate:
		l.debug("nominated node for pod", "reason", "the node was planned for it")
	case command.Bind:
		l.debug("bound pod", "reason", "the node was planned for it")
	}
}

// status tells what was only written down.
func (l *logLine) status(c command.Command) {
	switch c := c.(type) {
	case command.SetClaim:
		l.debug("wrote nodeclaim status", "reason", "it has changed", "conditions", len(c.Conditions))
	case command.WritePoolHash:
		l.debug("wrote the hash of the template", "reason", "it has changed", "hash", c.Hash)
	case command.WriteClaimHash:
		l.debug("wrote the hash of the template", "reason", "the claim had none that can be compared", "hash", c.Hash)
	case command.SetPool:
		l.debug("wrote nodepool status", "reason", "it has changed", "nodes", c.Status.Nodes)
	}
}

// logCarriedOut writes that a move is carried out: what takes the place of its nodes is up, and it has been verified
// once more.
func (o *Observer) logCarriedOut(s *cluster.Snapshot, c command.DeleteClaim) {
	claim := s.Claim(c.Claim)
	if claim == nil || claim.Move == "" || !claim.Deleting.IsZero() {
		return
	}
	e := measure.ExecutedMoveOf(s, claim, c.Reason)
	if !e.First(claim) {
		return
	}
	var claims, made []string
	pods := 0
	for _, m := range e.Members {
		claims = append(claims, m.Name)
		if n := s.NodeOf(m.Name); n != nil {
			for _, p := range s.PodsOn(n.Name) {
				if p.IsReschedulable() {
					pods++
				}
			}
		}
	}
	for _, m := range e.Replacements {
		made = append(made, m.Name)
	}
	nodes, pools := search.NodesAndPools(s, claims)
	values := []any{"move", claim.Move, "command", e.Decision(), "reason", c.Reason, "nodepools", pools, "nodes",
		firstNames(nodes),
		"node-count", len(claims), "pods", pods, "replacements", len(made), "new", firstNames(made)}
	if series.Saves(c.Reason) {
		values = append(values, "saving-per-month", search.Rounded((e.Before-e.After)*search.HoursPerMonth))
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

// openedReason is why a node stays that was to go.
func openedReason(s *cluster.Snapshot, c command.Unfence) string {
	r := search.Block{BlockedNode: disrupt.BlockedNode{Reason: disrupt.BlockReason(c.BlockReason)}}
	if claim := s.Claim(c.Claim); claim != nil {
		r.Pool = claim.Pool
	}
	if text := search.Describe(r); text != "" {
		return search.LowerFirst(text)
	}
	return "the node is needed after all"
}

// goneReason is why an instance was ended.
func goneReason(s *cluster.Snapshot, c command.Terminate) string {
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
