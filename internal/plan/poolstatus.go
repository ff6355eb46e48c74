package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

func createClaim(s *cluster.Snapshot, b *market.Bin, nameTaken func(string) bool) command.CreateClaim {
	c := claimOf(s, b)
	c.Name = claimName(b, "", nameTaken)
	return c
}

// claimOf asks for a claim for a new node that has no name yet.
func claimOf(s *cluster.Snapshot, b *market.Bin) command.CreateClaim {
	return command.CreateClaim{
		Pool: b.Pool.Name, PoolUID: b.Pool.UID, Generation: b.Pool.Generation, Template: b.Pool.Template,
		Labels: b.Labels, Requirements: b.Requirements, Requests: b.Requests, Seats: b.Seats,
		Pods: b.Pods, MadeFor: s.MadeFor(b.Pods), Reason: command.Provisioned, Relaxed: b.Relaxed, Price: b.Price,
		Estimated: b.Estimated,
	}
}

// claimName derives the claim's name from what it is for: the same pods, pool and choice of types give the same claim,
// so that asking again is the same act. A claim that failed for lack of capacity comes back with another choice and so
// with another name. If the name is taken, the claim that has it was made for these pods and others have taken their
// seats; they need one more.
//
// A claim that is made for a move has a name of its own: the pods of a node may be those for which it was made, and its
// name is not to come back right after it has gone.
func claimName(b *market.Bin, move string, nameTaken func(string) bool) string {
	for try := 0; ; try++ {
		if name := nameFor(b, move, try); !nameTaken(name) {
			return name
		}
	}
}

func nameFor(b *market.Bin, move string, try int) string {
	parts := []string{b.Pool.UID, b.Requirements.String(), strconv.Itoa(try)}
	first := len(parts)
	for _, p := range b.Pods {
		parts = append(parts, p.UID)
	}
	slices.Sort(parts[first:])
	if move != "" {
		parts = append(parts, move)
	}
	return command.ClaimName(b.Pool.Name, parts...)
}

// poolStatus is what a pool's status should say.
func poolStatus(s *cluster.Snapshot, p *cluster.Pool, policy Policy, rollouts *drift.Rollouts) command.PoolStatus {
	status := command.PoolStatus{ClassGeneration: p.NodeClass.Generation}
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Expected {
			continue
		}
		status.Resources = status.Resources.Add(market.ChargeOf(s, p, c))
		if s.NodeOf(c.Name) != nil {
			status.Nodes++
		}
	}
	valid := condition(cluster.ValidationSucceeded, len(p.Problems) == 0, "ValidationFailed",
		cluster.ProblemsText(p.Problems))
	class := condition(cluster.NodeClassReady, p.NodeClass.Ready, p.NodeClass.Reason, reason.Said(p.NodeClass.Message))
	if p.NodeClass.Pending {
		class.Status = cluster.Unknown
	}
	ready := readyCondition(valid, class)
	status.Conditions = []command.Condition{
		valid, class, ready, registrationCondition(p), canLaunchCondition(s, p, policy.StaticCapacity),
		nodesUsableCondition(s, p),
		disrupt.BudgetsCondition(p, status.Nodes), rollouts.DriftCondition(p),
	}
	for i := range status.Conditions {
		status.Conditions[i].Generation = p.Generation
	}
	return status
}

// readyCondition is the condition Ready: what is False counts before what is not known yet.
func readyCondition(causes ...command.Condition) command.Condition {
	for _, c := range causes {
		if c.Status == cluster.False {
			return condition(cluster.Ready, false, "UnhealthyDependents", reason.Of(reason.About, c.Type, c.Text))
		}
	}
	for _, c := range causes {
		if c.Status == cluster.Unknown {
			return unknown(cluster.Ready, "ReconcilingDependents", reason.Of(reason.About, c.Type, c.Text))
		}
	}
	return condition(cluster.Ready, true, "", reason.Text{})
}

// tellOrphans adds that instances are left alone which nobody claims, and takes it away when that is over. The
// condition is also what remembers that there were many: while it can't be told whether any are left, it stays as it
// is.
func (p *Plan) tellOrphans(s *cluster.Snapshot, pool *cluster.Pool, status *command.PoolStatus) {
	told := slices.ContainsFunc(pool.Status.Conditions, func(c cluster.Condition) bool {
		return c.Type == cluster.OrphansHeld
	})
	switch text := p.Orphans.Text(); {
	case !text.IsZero():
		status.Conditions = append(status.Conditions, command.Condition{Type: cluster.OrphansHeld, Status: cluster.True,
			Reason: p.Orphans.Reason(), Text: text, Generation: pool.Generation})
	case told && !p.Orphans.TooMany && !s.Quarantine.LeavesOut(cluster.Collecting):
		status.Conditions = append(status.Conditions, command.Condition{Type: cluster.OrphansHeld,
			Status: cluster.Absent})
	}
}

// registrationCondition says whether the pool's latest launches have become nodes. It informs and does not feed Ready.
func registrationCondition(p *cluster.Pool) command.Condition {
	switch p.RegistrationHealth {
	case cluster.True:
		return condition(cluster.RegistrationHealthy, true, "", reason.Text{})
	case cluster.False:
		return condition(cluster.RegistrationHealthy, false, "RegistrationFailed", reason.Of(reason.LaunchesDidNotJoin))
	}
	return unknown(cluster.RegistrationHealthy, "AwaitingReconciliation", reason.Of(reason.NothingLaunchedYet))
}

// canLaunchCondition says whether the pool could make a node now; a pool that is Ready may still ask for what nobody
// sells.
func canLaunchCondition(s *cluster.Snapshot, p *cluster.Pool, static bool) command.Condition {
	no := func(why string, text reason.Text) command.Condition {
		return condition(cluster.CanLaunch, false, why, text)
	}
	switch {
	case p.Deleting:
		return no("NodePoolDeleting", reason.Of(reason.PoolIsDeleting))
	case p.Static && !static:
		return no("StaticCapacityDisabled", reason.Of(reason.StaticCapacityOff))
	case len(p.Problems) > 0 || !p.NodeClass.Ready:
		return unknown(cluster.CanLaunch, "NotReady", reason.Of(reason.PoolNotReady))
	}
	if why := schedule.LimitsReason(p, s.Names); !why.IsZero() {
		return no("LimitsAllowNoNode", why)
	}
	switch {
	case p.InBackoff:
		return no("LaunchesRefused", backoffText(p))
	case p.Catalog == nil && p.CatalogError != "":
		return no("InstanceTypesUnknown", reason.Said(p.CatalogError))
	case p.Catalog == nil:
		return unknown(cluster.CanLaunch, "InstanceTypesUnknown", reason.Of(reason.NotSoldYet))
	}
	doubts := cluster.ProblemsText(p.Warnings) // what is probably not meant
	if why := schedule.NoTypesReason(p); !why.IsZero() {
		return no("NoCompatibleInstanceTypes", reason.Join(why, doubts))
	}
	can := condition(cluster.CanLaunch, true, "", reason.Text{})
	can.Text = reason.Join(doubts, schedule.EstimatedPrices(p))
	return can
}

// maxNamedHeld is how many owners a condition names.
const maxNamedHeld = 3

// nodesUsableCondition says whether pods can use the nodes of the pool that are made for them. When the next try comes
// is not told: it would be written anew with each.
func nodesUsableCondition(s *cluster.Snapshot, p *cluster.Pool) command.Condition {
	var said []reason.Text
	for _, owner := range slices.Sorted(maps.Keys(s.WorkloadTries)) {
		b := s.WorkloadTries[owner]
		i := slices.IndexFunc(b.Failures, func(f cluster.UnusedNode) bool { return f.Pool == p.Name })
		if i >= 0 && b.HoldsPods() {
			said = append(said, reason.Of(reason.About, strings.TrimSpace(b.Kind+" "+b.Name), &b.Failures[i]))
		}
	}
	if lost := p.ShortLivedSlots(); p.Static && len(lost) > 0 {
		return condition(cluster.NodesUsable, false, "NodesEndTooSoon", static.DescribeShortLived(lost))
	}
	if len(said) == 0 {
		return condition(cluster.NodesUsable, true, "", reason.Text{})
	}
	if more := len(said) - maxNamedHeld; more > 0 {
		said = append(said[:maxNamedHeld], reason.Of(reason.MoreWorkloads, more))
	}
	return condition(cluster.NodesUsable, false, "MadeInVain", reason.Of(reason.MadeInVain, reason.Join(said...)))
}

// backoffText says what the cloud has said last. When the next try comes is not told: it would be written anew with
// each.
func backoffText(p *cluster.Pool) reason.Text {
	if p.BackoffCause == "" {
		return reason.Of(reason.LaunchesRefusedBefore)
	}
	return reason.Of(reason.LaunchesFail, p.BackoffCause)
}

func condition(kind string, ok bool, why string, text reason.Text) command.Condition {
	if ok {
		return command.Condition{Type: kind, Status: cluster.True, Reason: strings.TrimPrefix(kind, "tenon.sh/")}
	}
	return command.Condition{Type: kind, Status: cluster.False, Reason: why, Text: text}
}

func unknown(kind, why string, text reason.Text) command.Condition {
	return command.Condition{Type: kind, Status: cluster.Unknown, Reason: why, Text: text}
}

func sameStatus(want *command.PoolStatus, have *cluster.PoolStatus) bool {
	if want.Nodes != have.Nodes || want.Resources != have.Resources || want.ClassGeneration != have.ClassGeneration {
		return false
	}
	for _, w := range want.Conditions {
		same := slices.ContainsFunc(have.Conditions, func(h cluster.Condition) bool {
			return h.Type == w.Type && h.Generation == w.Generation && render.Says(h, w)
		})
		if !same {
			return false
		}
	}
	return true
}
