package measure

import (
	"errors"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// CountDone counts an act. The snapshot is the one that the act was planned on: what it shows as done already was
// counted then and is not counted again.
func (m *Metrics) CountDone(s *cluster.Snapshot, out command.Outcome, now time.Time) {
	result := "ok"
	if out.Err != nil {
		result = "error"
	}
	m.commands.WithLabelValues(out.Command.Label(), result).Inc()
	if c, ok := out.Command.(command.Evict); ok && !c.Delete { // a pod whose time is up is deleted, not evicted
		m.evictions.WithLabelValues(statusCode(out.Err)).Inc()
	}
	if out.Err != nil {
		if c, ok := out.Command.(command.DeleteClaim); ok && !apierrors.IsConflict(out.Err) {
			m.countNotDeleted(s, c)
		}
		return
	}
	switch c := out.Command.(type) {
	case command.CreateClaim:
		if created(s, c, out.Writes) {
			m.claimsCreated.WithLabelValues(series.ReasonLabel(c.Reason), c.Pool, series.Truth(c.Relaxed)).Inc()
		}
	case command.DeleteClaim:
		m.countDisrupted(s, c)
	case command.Unfence:
		m.countReopened(s, c)
	case command.Register:
		if claim := s.Claim(c.Claim); claim != nil && !claim.Is(cluster.Registered) {
			m.nodesCreated.WithLabelValues(claim.Pool, series.Label(claim.Labels, cluster.ZoneLabel)).Inc()
		}
	case command.SetClaim:
		m.countDrained(s, c)
	case command.Evict:
		m.countLeftPod(s, c)
	case command.Terminate:
		m.countDrainedAtOnce(s, c)
		m.measureTerminated(s, c, out.InstanceGone, now)
	case command.Release:
		m.countReleased(s, c, now)
	}
}

// created reports whether the claim is new: neither did the snapshot have it, nor did the API server say that it was
// there before.
func created(s *cluster.Snapshot, c command.CreateClaim, writes []command.Write) bool {
	if s.Claim(c.Name) != nil {
		return false
	}
	return len(writes) == 0 || slices.ContainsFunc(writes, func(w command.Write) bool { return w.Created })
}

// countNotDeleted counts a try to carry a decision out that failed.
func (m *Metrics) countNotDeleted(s *cluster.Snapshot, c command.DeleteClaim) {
	claim := s.Claim(c.Claim)
	if !voluntary(c.Reason, claim) {
		return
	}
	e := executedMove{reason: c.Reason}
	if claim != nil {
		e = ExecutedMoveOf(s, claim, c.Reason)
	}
	m.DecisionsFailed.WithLabelValues(e.Decision(), series.ReasonLabel(c.Reason), e.kind()).Inc()
}

// countLeftPod counts a pod that was made to leave its node.
func (m *Metrics) countLeftPod(s *cluster.Snapshot, c command.Evict) {
	reason := series.DrainReason(s, c.Node)
	m.podsDrained.WithLabelValues(reason).Inc()
	if claim := s.ClaimOf(c.Node); claim != nil && series.Saves(command.Reason(reason)) {
		m.savingEvictions.WithLabelValues(claim.Pool).Inc()
	}
}

// countDrained counts a node that has become free of pods.
func (m *Metrics) countDrained(s *cluster.Snapshot, c command.SetClaim) {
	claim := s.Claim(c.Claim)
	if claim == nil || claim.Is(cluster.Drained) {
		return
	}
	for _, cond := range c.Conditions {
		if cond.Type == cluster.Drained && cond.Status == cluster.True {
			m.nodesDrained.WithLabelValues(claim.Pool).Inc()
		}
	}
}

// countDrainedAtOnce counts a node whose pods had left before that was written down: the instance is ended for the
// first time.
func (m *Metrics) countDrainedAtOnce(s *cluster.Snapshot, c command.Terminate) {
	claim, n := s.Claim(c.Claim), s.NodeOf(c.Claim)
	if claim == nil || n == nil || claim.Is(cluster.Drained) || claim.Is(cluster.InstanceTerminating) {
		return
	}
	leaves := func(p *cluster.Pod) bool { return p.IsReschedulable() && !p.StaysThroughDrain }
	if !slices.ContainsFunc(s.PodsOn(n.Name), leaves) {
		m.nodesDrained.WithLabelValues(claim.Pool).Inc()
	}
}

// measureTerminated measures how long the cloud took to end an instance.
func (m *Metrics) measureTerminated(s *cluster.Snapshot, c command.Terminate, gone bool, now time.Time) {
	claim := s.Claim(c.Claim)
	if !gone || claim == nil || claim.InstanceGone || s.InstancesGone[c.ProviderID] {
		return
	}
	if ending := claim.Condition(cluster.InstanceTerminating); ending.Status == cluster.True && !ending.Since.IsZero() {
		m.instanceEnd.WithLabelValues(claim.Pool).Observe(series.Elapsed(ending.Since, now))
	}
}

// countReleased counts a claim and a node that are gone, and measures how long that took.
func (m *Metrics) countReleased(s *cluster.Snapshot, c command.Release, now time.Time) {
	if claim := s.Claim(c.Claim); claim != nil && claim.Finalized {
		m.claimsTerminated.WithLabelValues(claim.Pool, series.Label(claim.Labels, cluster.CapacityTypeLabel),
			series.Label(claim.Labels, cluster.ZoneLabel)).Inc()
		if !claim.Deleting.IsZero() {
			m.claimEnd.WithLabelValues(claim.Pool).Observe(series.Elapsed(claim.Deleting, now))
		}
	}
	if n := s.Node(c.Node); n != nil && n.Finalized {
		pool := series.Label(n.Labels, cluster.PoolLabel)
		m.nodesTerminated.WithLabelValues(pool, series.Label(n.Labels, cluster.ZoneLabel)).Inc()
		if !n.Deleting.IsZero() {
			m.nodeEnd.WithLabelValues(pool).Observe(series.Elapsed(n.Deleting, now))
		}
		if !n.Created.IsZero() {
			m.nodeLifetime.WithLabelValues(pool).Observe(series.Elapsed(n.Created, now))
		}
	}
}

// terminationMode says how far a drain may go: as long as its pods like, until the grace period ends, or no time at
// all.
func terminationMode(c *cluster.Claim) string {
	switch {
	case !c.HasTerminationGrace:
		return "graceful"
	case c.TerminationGrace <= 0:
		return "forceful"
	}
	return "eventual"
}

// statusCode is the status of the API server's answer to an eviction; "0" if there was none.
func statusCode(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "200"
	case errors.As(err, &status):
		return strconv.Itoa(int(status.Status().Code))
	}
	return "0"
}
