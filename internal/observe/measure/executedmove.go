package measure

import (
	"slices"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// executedMove is a disruption that is carried out now: the nodes that go together and what took their place, as the
// snapshot shows them.
type executedMove struct {
	reason       command.Reason
	Members      []*cluster.Claim // sorted by name
	Replacements []*cluster.Claim
	// Before and After are the prices per hour of what goes and of what came.
	Before, After float64
}

// ExecutedMoveOf finds what a claim goes together with.
func ExecutedMoveOf(s *cluster.Snapshot, c *cluster.Claim, reason command.Reason) executedMove {
	e := executedMove{reason: reason, Members: []*cluster.Claim{c}}
	if c.Move != "" {
		e.Members = s.MoveClaims(c.Move)
		for _, r := range s.Claims {
			if r.Replaces == c.Move {
				e.Replacements = append(e.Replacements, r)
				e.After += r.Price
			}
		}
	}
	for _, m := range e.Members {
		e.Before += m.Price
	}
	return e
}

// First reports whether the claim stands for its move: a move of several nodes is one decision.
func (e *executedMove) First(c *cluster.Claim) bool { return e.Members[0].Name == c.Name }

// firstOfPool reports whether the claim stands for its pool's part of the move.
func (e *executedMove) firstOfPool(c *cluster.Claim) bool {
	i := slices.IndexFunc(e.Members, func(m *cluster.Claim) bool { return m.Pool == c.Pool })
	return e.Members[i].Name == c.Name
}

// kind is the contract's word for the way in which it saves money; empty if that is not what it is for.
func (e *executedMove) kind() string { return series.Consolidation(e.reason, len(e.Members)) }

// Decision is the contract's word for what was done.
func (e *executedMove) Decision() string { return series.Decision(len(e.Replacements) > 0) }

// saving is the claim's part of what the whole saves per hour.
func (e *executedMove) saving(c *cluster.Claim) float64 {
	if e.Before <= 0 {
		return 0
	}
	return max(0, c.Price-e.After*c.Price/e.Before)
}

// countDisrupted counts a claim that is deleted for a reason of ours, and the pods that have to move for it; what
// somebody else asked for is no disruption.
func (m *Metrics) countDisrupted(s *cluster.Snapshot, c command.DeleteClaim) {
	claim := s.Claim(c.Claim)
	if claim == nil || !claim.Deleting.IsZero() || c.Reason == command.Requested {
		return
	}
	e, policy := ExecutedMoveOf(s, claim, c.Reason), ""
	if p := s.Pool(claim.Pool); p != nil && e.kind() != "" {
		policy = series.SnakeCase(string(p.Policy))
	}
	reason, capacity, mode := series.ReasonLabel(c.Reason), series.Label(claim.Labels, cluster.CapacityTypeLabel),
		terminationMode(claim)
	switch i := claim.Interruption; {
	case c.Reason == command.Interrupted && !i.Deadline.IsZero() && !i.Force:
		mode = "eventual"
	case !c.Deadline.IsZero(): // its time is up whatever it says
		mode = "forceful"
	}
	if c.Reason == command.Interrupted {
		reason = interruptionLabel(claim.Interruption.Kind)
	}
	m.claimsDisrupted.WithLabelValues(reason, claim.Pool, capacity, policy, mode).Inc()
	if c.Reason == command.Unhealthy {
		m.claimsUnhealthy.WithLabelValues(series.SnakeCase(c.Condition), claim.Pool, capacity, "", mode).Inc()
	}
	moving := 0
	if n := s.NodeOf(c.Claim); n != nil {
		for _, p := range s.PodsOn(n.Name) {
			if p.IsReschedulable() {
				moving++
			}
		}
	}
	m.podsDisrupted.WithLabelValues(reason, claim.Pool, capacity, policy, mode).Add(float64(moving))
	m.countExecuted(&e, claim, reason)
}

// interruptionLabel is the contract's word for a kind of interruption. It has the past tense for what has happened.
func interruptionLabel(kind string) string {
	switch kind {
	case cloudprovider.SpotInterruption:
		return "spot_interrupted"
	case cloudprovider.ReservationInterruption:
		return "capacity_reservation_interrupted"
	case cloudprovider.InstanceStopping:
		return "instance_stopped"
	case cloudprovider.InstanceTerminating:
		return "instance_terminated"
	}
	return series.SnakeCase(kind)
}

// countExecuted counts the decision that is behind a deletion, and what it saves.
func (m *Metrics) countExecuted(e *executedMove, claim *cluster.Claim, reason string) {
	if !voluntary(e.reason, claim) {
		return
	}
	if e.First(claim) {
		m.decisions.WithLabelValues(e.Decision(), reason, e.kind()).Inc()
		if claim.Move != "" {
			m.Moves.WithLabelValues(reason, "carried_out", "").Inc()
		}
	}
	if e.firstOfPool(claim) {
		m.decisionsByPool.WithLabelValues(claim.Pool, e.Decision(), reason, e.kind()).Inc()
	}
	if series.Saves(e.reason) {
		m.saved.WithLabelValues(claim.Pool, reason).Add(e.saving(claim))
	}
}

// countReopened counts a node that was chosen to save money and is needed after all.
func (m *Metrics) countReopened(s *cluster.Snapshot, c command.Unfence) {
	claim := s.Claim(c.Claim)
	switch {
	case claim == nil:
	case claim.Move != "":
		if reason := disrupt.MoveReason(claim.Move); series.Saves(reason) {
			m.invalid.WithLabelValues(series.Consolidation(reason, len(s.MoveClaims(claim.Move)))).Inc()
		}
	case c.RestUntil.IsZero() || c.ForSaving: // a rest of a move is written on nodes that were never fenced, too
		m.invalid.WithLabelValues(series.Consolidation(command.Empty, 1)).Inc()
	}
}

// voluntary reports whether the contract counts the disruption among those that a budget may hold back.
func voluntary(r command.Reason, c *cluster.Claim) bool {
	switch r {
	case command.Empty, command.Underutilized, command.Drifted, command.Unhealthy:
		return true
	case command.Interrupted: // nobody has a choice
		return false
	}
	return c != nil && c.Move != "" // the end of a node's life, where that is done gently
}
