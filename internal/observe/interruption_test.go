package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// The end of an interrupted node is told with the contract's word, counted by the kind of the interruption, and is
// nobody's decision.
func TestInterruptionIsTold(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		i      cluster.Interruption
		reason string
		mode   string
	}{
		{cluster.Interruption{Kind: "SpotInterruption", Deadline: now.Add(time.Minute)}, "spot_interrupted",
			"eventual"},
		{cluster.Interruption{Kind: "InstanceUnhealthy", Force: true}, "instance_unhealthy", "forceful"},
		{cluster.Interruption{Kind: "InstanceStatus", Force: true}, "instance_status", "forceful"},
		{cluster.Interruption{Kind: "SystemStatus", Force: true}, "system_status", "forceful"},
		{cluster.Interruption{Kind: "EventStatus", Deadline: now.Add(time.Minute)}, "event_status", "eventual"},
		{cluster.Interruption{Kind: "ScheduledChange", Deadline: now.Add(time.Minute)}, "scheduled_change", "eventual"},
		{cluster.Interruption{Kind: "ReservationInterruption", Deadline: now.Add(time.Minute)},
			"capacity_reservation_interrupted", "eventual"},
		{cluster.Interruption{Kind: "InstanceStopping", Deadline: now.Add(time.Minute)}, "instance_stopped",
			"eventual"},
		{cluster.Interruption{Kind: "InstanceTerminating", Deadline: now.Add(time.Minute)}, "instance_terminated",
			"eventual"},
		{cluster.Interruption{Kind: "RebalanceRecommendation"}, "rebalance_recommendation", "graceful"},
	} {
		o, r, registry, _ := newObserver(&now)
		s := leavingWorld(now, func(claim *cluster.Claim) {
			claim.Deleting, claim.Interruption, claim.Move = time.Time{}, c.i, "interrupted-x"
		})
		out := command.DeleteClaim{Claim: "a", UID: "uid-a", Node: "a", Reason: command.Interrupted,
			Text:     reason.Said("why"),
			Deadline: c.i.Deadline}
		if c.i.Force {
			out.Deadline = now
		}
		o.Done(s, command.Outcome{Command: out}, 0)
		got := gathered(t, registry, "karpenter_")
		want := "karpenter_nodeclaims_disrupted_total{capacity_type=spot,consolidation_policy=,nodepool=default," +
			"reason=" + c.reason + ",termination_mode=" + c.mode + "} 1"
		if !strings.Contains(got, want) || strings.Contains(got, "decisions_total{") {
			t.Errorf("%s: no %s, or a decision, in\n%s", c.i.Kind, want, got)
		}
		if told := r.lines; !slices.Contains(told, "Warning NodeClaim/a TerminatingOnInterruption: Interrupted, why") ||
			!slices.Contains(told, "Warning Node/a TerminatingOnInterruption: Interrupted, why") {
			t.Errorf("%s: events %q", c.i.Kind, told)
		}
	}
}
