package observe

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// done counts an act. The snapshot is the one that the act was planned on: what it shows as done already was counted
// then and is not counted again.
func (m *metrics) done(s *cluster.Snapshot, out command.Outcome) {
	result := "ok"
	if out.Err != nil {
		result = "error"
	}
	m.commands.WithLabelValues(strings.ToLower(reflect.TypeOf(out.Command).Name()), result).Inc()
	if c, ok := out.Command.(command.Evict); ok && !c.Now { // a pod whose time is up is deleted, not evicted
		m.evictions.WithLabelValues(statusCode(out.Err)).Inc()
	}
	if out.Err != nil {
		return
	}
	switch c := out.Command.(type) {
	case command.CreateClaim:
		if created(s, c, out.Writes) {
			m.claimsCreated.WithLabelValues(string(c.Reason), c.Pool, "false").Inc()
		}
	case command.DeleteClaim:
		m.disrupted(s, c)
	case command.Register:
		if claim := s.Claim(c.Claim); claim != nil && !claim.Is(cluster.Registered) {
			m.nodesCreated.WithLabelValues(claim.Pool, label(claim.Labels, cluster.ZoneLabel)).Inc()
		}
	case command.Release:
		if claim := s.Claim(c.Claim); claim != nil && claim.Finalized {
			m.claimsTerminated.WithLabelValues(claim.Pool, label(claim.Labels, cluster.CapacityTypeLabel), label(claim.Labels, cluster.ZoneLabel)).Inc()
		}
		if n := s.Node(c.Node); n != nil && n.Finalized {
			m.nodesTerminated.WithLabelValues(label(n.Labels, cluster.PoolLabel), label(n.Labels, cluster.ZoneLabel)).Inc()
		}
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

// disrupted counts a claim that is deleted for a reason of ours; what somebody else asked for is no disruption.
func (m *metrics) disrupted(s *cluster.Snapshot, c command.DeleteClaim) {
	claim := s.Claim(c.Claim)
	if claim == nil || !claim.Deleting.IsZero() || c.Reason == command.Requested {
		return
	}
	policy := ""
	if p := s.Pool(claim.Pool); p != nil && c.Reason == command.Empty {
		policy = snakeCase(string(p.Policy))
	}
	m.claimsDisrupted.WithLabelValues(reasonLabel(c.Reason), claim.Pool, label(claim.Labels, cluster.CapacityTypeLabel), policy, terminationMode(claim)).Inc()
}

// reasonLabel is the contract's word for a reason in metrics.
func reasonLabel(r command.Reason) string {
	switch r {
	case command.ClassNotReady:
		return "nodeclass_not_ready"
	case command.NodeMissing:
		return "garbage_collected"
	}
	return snakeCase(string(r))
}

// terminationMode says how far a drain may go: as long as its pods like, until the grace period ends, or no time at all.
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

func label(labels cluster.Labels, key string) string {
	value, _ := labels.Get(key)
	return value
}

// snakeCase writes WhenEmpty as when_empty.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
