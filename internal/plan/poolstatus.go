package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/schedule"
)

func createClaim(s *cluster.Snapshot, b *schedule.Bin, nameTaken func(string) bool) command.CreateClaim {
	c := claimOf(s, b)
	c.Name = claimName(b, "", nameTaken)
	return c
}

// claimOf asks for a claim for a new node that has no name yet.
func claimOf(s *cluster.Snapshot, b *schedule.Bin) command.CreateClaim {
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
func claimName(b *schedule.Bin, move string, nameTaken func(string) bool) string {
	for try := 0; ; try++ {
		if name := nameFor(b, move, try); !nameTaken(name) {
			return name
		}
	}
}

func nameFor(b *schedule.Bin, move string, try int) string {
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
func poolStatus(s *cluster.Snapshot, p *cluster.Pool, policy Policy, rollouts *drift.Rollouts) cluster.PoolStatus {
	status := cluster.PoolStatus{ClassGeneration: p.NodeClass.Generation}
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Expected {
			continue
		}
		status.Resources = status.Resources.Add(schedule.Charge(s, p, c))
		if s.NodeOf(c.Name) != nil {
			status.Nodes++
		}
	}
	valid := condition(cluster.ValidationSucceeded, len(p.Problems) == 0, "ValidationFailed", problemTexts(p.Problems))
	class := condition(cluster.NodeClassReady, p.NodeClass.Ready, p.NodeClass.Reason, p.NodeClass.Message)
	if p.NodeClass.Pending {
		class.Status = cluster.Unknown
	}
	ready := readyCondition(valid, class)
	status.Conditions = []cluster.Condition{
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
func readyCondition(causes ...cluster.Condition) cluster.Condition {
	for _, c := range causes {
		if c.Status == cluster.False {
			return condition(cluster.Ready, false, "UnhealthyDependents", c.Type+": "+c.Message)
		}
	}
	for _, c := range causes {
		if c.Status == cluster.Unknown {
			return cluster.Condition{Type: cluster.Ready, Status: cluster.Unknown, Reason: "ReconcilingDependents",
				Message: c.Type + ": " + c.Message}
		}
	}
	return condition(cluster.Ready, true, "", "")
}

// tellOrphans adds that instances are left alone which nobody claims, and takes it away when that is over. The
// condition is also what remembers that there were many: while it can't be told whether any are left, it stays as it
// is.
func (p *Plan) tellOrphans(s *cluster.Snapshot, pool *cluster.Pool, status *cluster.PoolStatus) {
	at := slices.IndexFunc(pool.Status.Conditions, func(c cluster.Condition) bool {
		return c.Type == cluster.OrphansHeld
	})
	switch message := p.Orphans.Message(); {
	case message != "":
		status.Conditions = append(status.Conditions, cluster.Condition{Type: cluster.OrphansHeld, Status: cluster.True,
			Reason: p.Orphans.Reason(), Message: message, Generation: pool.Generation})
	case at >= 0 && (p.Orphans.TooMany || s.Quarantine.LeavesOut(cluster.Collecting)):
		status.Conditions = append(status.Conditions, pool.Status.Conditions[at])
	case at >= 0:
		status.Conditions = append(status.Conditions, cluster.Condition{Type: cluster.OrphansHeld,
			Status: cluster.Absent})
	}
}

// registrationCondition says whether the pool's latest launches have become nodes. It informs and does not feed Ready.
func registrationCondition(p *cluster.Pool) cluster.Condition {
	c := cluster.Condition{Type: cluster.RegistrationHealthy, Status: cluster.Unknown, Reason: "AwaitingReconciliation",
		Message: "no node has been launched since the pool or its NodeClass last changed"}
	switch p.RegistrationHealth {
	case cluster.True:
		return condition(cluster.RegistrationHealthy, true, "", "")
	case cluster.False:
		return condition(cluster.RegistrationHealthy, false, "RegistrationFailed", "at least half of the latest "+
			"launches did not become nodes; see the events of the pool's NodeClaims and the logs of its machines")
	}
	return c
}

// canLaunchCondition says whether the pool could make a node now; a pool that is Ready may still ask for what nobody
// sells.
func canLaunchCondition(s *cluster.Snapshot, p *cluster.Pool, static bool) cluster.Condition {
	no := func(reason, message string) cluster.Condition {
		return condition(cluster.CanLaunch, false, reason, message)
	}
	switch {
	case p.Deleting:
		return no("NodePoolDeleting", "the NodePool is being deleted")
	case p.Static && !static:
		return no("StaticCapacityDisabled", "spec.replicas makes the pool static; turn the feature gate "+
			"StaticCapacity on, or make another NodePool without the field to let pods decide")
	case len(p.Problems) > 0 || !p.NodeClass.Ready:
		return cluster.Condition{Type: cluster.CanLaunch, Status: cluster.Unknown, Reason: "NotReady",
			Message: "the NodePool is not ready"}
	}
	if reason := schedule.LimitsReason(p, s.Names); reason != "" {
		return no("LimitsAllowNoNode", reason)
	}
	switch {
	case p.InBackoff:
		return no("LaunchesRefused", backoffMessage(p))
	case p.Catalog == nil && p.CatalogError != "":
		return no("InstanceTypesUnknown", p.CatalogError)
	case p.Catalog == nil:
		return cluster.Condition{Type: cluster.CanLaunch, Status: cluster.Unknown, Reason: "InstanceTypesUnknown",
			Message: "the cloud has not said yet what it sells"}
	}
	if reason := schedule.NoTypesReason(p); reason != "" {
		return no("NoCompatibleInstanceTypes", strings.Join(append([]string{reason}, doubtTexts(p)...), "; "))
	}
	can := condition(cluster.CanLaunch, true, "", "")
	can.Message = strings.Join(append(doubtTexts(p), schedule.DescribeEstimated(p)...), "; ")
	return can
}

// maxNamedHeld is how many owners a condition names.
const maxNamedHeld = 3

// nodesUsableCondition says whether pods can use the nodes of the pool that are made for them. When the next try comes
// is not told: it would be written anew with each.
func nodesUsableCondition(s *cluster.Snapshot, p *cluster.Pool) cluster.Condition {
	var said []string
	for _, owner := range slices.Sorted(maps.Keys(s.WorkloadTries)) {
		b := s.WorkloadTries[owner]
		i := slices.IndexFunc(b.Failures, func(f cluster.UnusedNode) bool { return f.Pool == p.Name })
		if i >= 0 && b.HoldsPods() {
			said = append(said, strings.TrimSpace(b.Kind+" "+b.Name)+": "+schedule.DescribeCause(&b.Failures[i]))
		}
	}
	if lost := p.ShortLivedSlots(); p.Static && len(lost) > 0 {
		return condition(cluster.NodesUsable, false, "NodesEndTooSoon", static.DescribeShortLived(lost))
	}
	if len(said) == 0 {
		return condition(cluster.NodesUsable, true, "", "")
	}
	text := strings.Join(said[:min(len(said), maxNamedHeld)], "; ")
	if more := len(said) - maxNamedHeld; more > 0 {
		text += fmt.Sprintf("; and %d more workloads", more)
	}
	return condition(cluster.NodesUsable, false, "MadeInVain",
		"pods cannot run on the nodes created for them, so new nodes are tried less and less often: "+text)
}

// backoffMessage says what the cloud has said last. When the next try comes is not told: it would be written anew with
// each.
func backoffMessage(p *cluster.Pool) string {
	if p.BackoffCause == "" {
		return "the cloud has refused the pool's launches; see the events of its NodeClaims"
	}
	return "the pool's launches fail and are tried less and less often; the last answer: " + p.BackoffCause
}

func condition(kind string, ok bool, reason, message string) cluster.Condition {
	if ok {
		return cluster.Condition{Type: kind, Status: cluster.True, Reason: strings.TrimPrefix(kind, "tenon.sh/")}
	}
	return cluster.Condition{Type: kind, Status: cluster.False, Reason: reason, Message: message}
}

// doubtTexts is what is probably not meant in the pool; none if all is clear.
func doubtTexts(p *cluster.Pool) []string {
	if len(p.Warnings) == 0 {
		return nil
	}
	return []string{problemTexts(p.Warnings)}
}

func problemTexts(list []cluster.Problem) string {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = p.Field + ": " + p.Text
	}
	return strings.Join(parts, "; ")
}

func sameStatus(want, have *cluster.PoolStatus) bool {
	if want.Nodes != have.Nodes || want.Resources != have.Resources || want.ClassGeneration != have.ClassGeneration {
		return false
	}
	for _, w := range want.Conditions {
		same := slices.ContainsFunc(have.Conditions, func(h cluster.Condition) bool {
			h.Since = w.Since
			return h == w
		})
		if !same {
			return false
		}
	}
	return true
}
