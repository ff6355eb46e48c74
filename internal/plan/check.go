package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/execute"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Check keeps the commands of a plan that still make sense in a newer snapshot. What it drops is not lost: the next
// plan is made from the newer snapshot anyway.
func Check(p Plan, s *cluster.Snapshot) Plan {
	ck := &checker{Snapshot: s, claimAdmission: newClaimAdmission(s), set: p.settings, staticCapacity: p.staticCapacity,
		boundNeeds: make(map[string]resource.Vector), headroom: make(map[*cluster.Pool]*market.Headroom),
		health: disrupt.NewNodeHealth(s, p.repair)}
	lost := newDroppedCommands()
	p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c command.Command) bool {
		if s.InFlight[c.Key()] {
			lost.fence(c)
			return true
		}
		if ck.stillHolds(c) && ck.stillUnhealthy(c) {
			return false
		}
		lost.fence(c)
		if d, ok := c.(command.DeleteClaim); ok && liveClaim(s, d.Claim) != nil {
			lost.departures[d.Departure] = true
		}
		return true
	})
	p.dropDependents(lost)
	p.dropBeyondBudgets(s)
	if p.demand == 0 || p.supply == 0 || p.demand != s.DemandRev || p.supply != s.SupplyRev {
		lost.departures = p.departuresWithoutRoom(s)
		p.dropDependents(lost)
	}
	p.dropNeedlessReplacements(s)
	p.Begun, p.GivenUp = slices.Clone(p.Begun), slices.Clone(p.GivenUp)
	p.correctMoves()
	return p
}

// checker looks at the commands of one plan.
type checker struct {
	*cluster.Snapshot
	set         disrupt.Settings
	eligibility *disrupt.Eligibility
	// staticCapacity says that static pools are served.
	staticCapacity bool
	// health knows which nodes are beyond hope.
	health *disrupt.NodeHealth
	// boundNeeds is what pods need that the plan binds, by node.
	boundNeeds map[string]resource.Vector
	// claimAdmission is what every claim for pods has to pass.
	claimAdmission *claimAdmission
	// headroom is what the limits of pools leave.
	headroom map[*cluster.Pool]*market.Headroom
}

// withinLimits reports whether a new claim is still within its pool's limits: others may have come since the plan was
// made, of a user or of another replica.
func (ck *checker) withinLimits(pool *cluster.Pool, c command.CreateClaim) bool {
	if !pool.Limits.Any() {
		return true
	}
	if ck.headroom[pool] == nil {
		ck.headroom[pool] = market.HeadroomOf(ck.Snapshot, pool)
	}
	return ck.headroom[pool].Take(market.ChargeOf(ck.Snapshot, pool, &cluster.Claim{Requirements: c.Requirements}))
}

// hasRoomToBind reports whether a node that is coming up still has room for a pod that is to be bound to it, and takes
// it.
func (ck *checker) hasRoomToBind(n *cluster.Node, uid string) bool {
	room := n.Allocatable
	if claim := ck.ClaimOf(n.Name); claim != nil {
		for dim := range room {
			if room[dim] <= 0 { // its kubelet has not spoken of it yet
				room[dim] = claim.Allocatable[dim]
			}
		}
	}
	need := ck.boundNeeds[n.Name].Add(podOf(ck.Snapshot, uid).Class.Requests)
	used := need
	for _, p := range ck.PodsOn(n.Name) {
		used = used.Add(p.Class.Requests)
	}
	if !used.Fits(room) {
		return false
	}
	ck.boundNeeds[n.Name] = need
	return true
}

// nodeEligibility is who knows which nodes may go.
func (ck *checker) nodeEligibility() *disrupt.Eligibility {
	if ck.eligibility == nil {
		ck.eligibility = disrupt.NewEligibility(ck.Snapshot, ck.set)
	}
	return ck.eligibility
}

// departuresWithoutRoom finds the departures whose pods no longer have room elsewhere. What is unhealthy goes in any
// case, and in a static pool each node goes for another, whatever runs there.
func (p *Plan) departuresWithoutRoom(s *cluster.Snapshot) map[string]bool {
	parties := make(map[string][]string)
	for _, c := range p.Commands {
		d, ok := c.(command.DeleteClaim)
		if !ok || d.Departure == "" || d.Reason == command.Unhealthy {
			continue
		}
		if pool := s.Pool(s.Claim(d.Claim).Pool); pool == nil || !pool.Static || !p.staticCapacity {
			parties[d.Departure] = append(parties[d.Departure], d.Node)
		}
	}
	if len(parties) == 0 {
		return nil
	}
	return destination.DeparturesWithoutRoom(s, p.settings, &p.Placement, p.Commands, parties)
}

// stillUnhealthy reports whether a node that is to go for its health is still beyond hope; true for all other commands.
func (ck *checker) stillUnhealthy(c command.Command) bool {
	name, reason := "", command.Reason("")
	switch c := c.(type) {
	case command.Fence:
		name, reason = c.Claim, c.Reason
	case command.DeleteClaim:
		name, reason = c.Claim, c.Reason
	}
	if reason != command.Unhealthy {
		return true
	}
	claim := ck.Claim(name)
	return claim != nil && ck.health.StillUnhealthy(claim)
}

// stillHolds reports whether a command still makes sense. It knows every command: one that it forgot would be dropped
// from every plan.
func (ck *checker) stillHolds(c command.Command) bool {
	s := ck.Snapshot
	switch c := c.(type) {
	case command.CreateClaim:
		return ck.mayCreate(c)
	case command.LaunchInstance:
		return ck.mayLaunch(c)
	case command.Register:
		return joins(s, c.Claim)
	case command.Initialize:
		return joins(s, c.Claim)
	case command.Open:
		return isKept(s, c.Node)
	case command.Adopt:
		return liveClaim(s, c.Claim) != nil
	case command.Fence:
		return ck.mayFence(c)
	case command.Unfence:
		return isThere(s, c)
	case command.DeleteClaim:
		return ck.mayDelete(c)
	case command.Evict:
		return slices.ContainsFunc(s.PodsOn(c.Node), func(p *cluster.Pod) bool { return p.UID == c.UID })
	case command.Nominate:
		return mayNominate(s, c)
	case command.Bind:
		return ck.mayBind(c)
	case command.DeleteNode:
		return mayDeleteNode(s, c)
	case command.Terminate:
		return stillEnds(s, c)
	case command.Release:
		return true // nothing takes back the deletion of a claim
	case command.SetPool:
		return s.Pool(c.Pool) != nil
	case command.SetClaim:
		return s.Claim(c.Claim) != nil
	case command.WritePoolHash:
		return hasHash(s.Pool(c.Pool), c)
	case command.WriteClaimHash:
		return needsHash(s, c)
	}
	panic(fmt.Sprintf("no check of %T", c))
}

// mayCreate reports whether a claim is still to be made.
func (ck *checker) mayCreate(c command.CreateClaim) bool {
	pool := ck.Pool(c.Pool)
	if pool == nil || pool.UID != c.PoolUID || pool.Generation != c.Generation || ck.Claim(c.Name) != nil {
		return false
	}
	isForNobody := pool.Static && len(c.Pods) == 0
	return (isForNobody || pool.IsUsable() && anyNeedsPlace(c.Pods, ck.Snapshot) && ck.claimAdmission.admit(c.Pods)) &&
		ck.withinLimits(pool, c)
}

// mayLaunch reports whether an instance is still to be launched for a claim.
func (ck *checker) mayLaunch(c command.LaunchInstance) bool {
	claim := liveClaim(ck.Snapshot, c.Claim)
	return claim != nil && claim.UID == c.UID && !claim.Is(cluster.Launched)
}

// mayFence reports whether a node is still to be fenced: on request, because it is empty, or for a move.
func (ck *checker) mayFence(c command.Fence) bool {
	switch {
	case ck.Node(c.Node) == nil:
		return false
	case c.Reason == command.Requested:
		return true
	case c.Move == "":
		return stillEmpty(ck.Snapshot, c.Claim)
	}
	return ck.mayBegin(c)
}

// mayDelete reports whether a claim is still to be deleted.
func (ck *checker) mayDelete(c command.DeleteClaim) bool {
	claim := liveClaim(ck.Snapshot, c.Claim)
	return claim != nil && claim.UID == c.UID && ck.stillDue(c) && ck.stillReplaced(c)
}

// mayBind reports whether a pod is still to be bound. Once the node is ready, kube-scheduler gives its room away as it
// likes.
func (ck *checker) mayBind(c command.Bind) bool {
	n := ck.Node(c.Node)
	return stillPending(ck.Snapshot, c.UID) && n != nil && !n.Ready && ck.hasRoomToBind(n, c.UID)
}

// joins reports whether a claim and its node are there.
func joins(s *cluster.Snapshot, claim string) bool {
	return liveClaim(s, claim) != nil && s.NodeOf(claim) != nil
}

// isThere reports whether a claim and the node that is to be opened again are there.
func isThere(s *cluster.Snapshot, c command.Unfence) bool {
	return liveClaim(s, c.Claim) != nil && s.Node(c.Node) != nil
}

// isKept reports whether a node is kept for a move.
func isKept(s *cluster.Snapshot, node string) bool {
	n := s.Node(node)
	return n != nil && n.KeptFor != ""
}

// mayNominate reports whether a pod is still to be told where it is expected.
func mayNominate(s *cluster.Snapshot, c command.Nominate) bool {
	n := s.Node(c.Node)
	return stillPending(s, c.UID) && (c.Node == "" || n != nil && n.Deleting.IsZero())
}

// mayDeleteNode reports whether a node without a claim is still to be deleted.
func mayDeleteNode(s *cluster.Snapshot, c command.DeleteNode) bool {
	n := s.Node(c.Node)
	return n != nil && n.UID == c.UID && n.Deleting.IsZero() && !isClaimed(s, c.ProviderID)
}

// hasHash reports whether the pool still has the template that the hash is of.
func hasHash(p *cluster.Pool, c command.WritePoolHash) bool {
	return p != nil && p.UID == c.UID && p.Hash == c.Hash && p.HashVersion == c.Version
}

// needsHash reports whether a claim still lacks the hash, or has one that was computed in another way.
func needsHash(s *cluster.Snapshot, c command.WriteClaimHash) bool {
	claim := liveClaim(s, c.Claim)
	return claim != nil && claim.UID == c.UID && (claim.Hash == "" || claim.HashVersion != c.Version)
}

// stillEnds reports whether an instance is still to be ended: a pod may have shown up on its node, and an orphan may be
// somebody's by now.
func stillEnds(s *cluster.Snapshot, c command.Terminate) bool {
	if c.Claim == "" {
		return !isClaimed(s, c.ProviderID)
	}
	claim := s.Claim(c.Claim)
	return claim == nil || claim.UID != c.UID || lifecycle.ShouldTerminate(s, claim, c.ProviderID)
}

// isClaimed reports whether a claim says that the instance is its own.
func isClaimed(s *cluster.Snapshot, providerID string) bool {
	return slices.ContainsFunc(s.Claims, func(claim *cluster.Claim) bool { return claim.ProviderID == providerID })
}

func liveClaim(s *cluster.Snapshot, name string) *cluster.Claim {
	if c := s.Claim(name); c != nil && c.Deleting.IsZero() {
		return c
	}
	return nil
}

// stillDue reports whether the reason for which a claim is deleted still holds.
func (ck *checker) stillDue(c command.DeleteClaim) bool {
	s := ck.Snapshot
	n, claim := s.NodeOf(c.Claim), s.Claim(c.Claim)
	switch {
	case c.Reason == command.Interrupted && c.Departure == "":
		return execute.MustGoNow(s, ck.set, claim)
	case c.Reason == command.Interrupted: // whether there is room for its pods is asked for all that go
		return claim.IsInterrupted() && (claim.Interruption.IsUrgent() || ck.mayStillGo(claim, n))
	case c.Reason == command.Expired && isOver(s, claim):
		return true
	case claim.Move != "" && disrupt.MoveReason(claim.Move) == c.Reason:
		return ck.mayStillGo(claim, n)
	}
	switch c.Reason {
	case command.Empty:
		return isUnused(s, claim, n)
	case command.Underutilized, command.Drifted, command.Expired: // what goes in no move any more has been opened again
		return false
	case command.NodeMissing:
		return n == nil
	case command.InstanceMissing:
		return n == nil || !n.Ready
	}
	return true
}

// isOver reports whether a claim has reached the age at which it expires.
func isOver(s *cluster.Snapshot, claim *cluster.Claim) bool {
	return !claim.ExpireAfter.Never && !s.Now.Before(claim.Created.Add(claim.ExpireAfter.For))
}

// isUnused reports whether a node that goes because it is empty still is, or was made for a move that needs it no more.
func isUnused(s *cluster.Snapshot, claim *cluster.Claim, n *cluster.Node) bool {
	if claim.Replaces == "" {
		return stillEmpty(s, claim.Name)
	}
	if !claim.Is(cluster.Initialized) && awaitsReplacement(s, claim.Replaces) {
		return false
	}
	return stillEmpty(s, claim.Name) || n == nil && !claim.Is(cluster.Registered)
}

// stillReplaced reports whether what was made in place of a static pool's node is still up, if the node goes for that;
// true for all others.
func (ck *checker) stillReplaced(c command.DeleteClaim) bool {
	pool := ck.Pool(ck.Claim(c.Claim).Pool)
	if c.Departure == "" || pool == nil || !pool.Static || !ck.staticCapacity {
		return true
	}
	return static.HasReplacement(ck.Snapshot, pool, c.Departure)
}

func stillEmpty(s *cluster.Snapshot, claim string) bool {
	c, n := liveClaim(s, claim), s.NodeOf(claim)
	return c != nil && n != nil && disrupt.IsEmpty(s, c, n)
}

// mayBegin reports whether a move may still begin with the node.
func (ck *checker) mayBegin(c command.Fence) bool {
	s := ck.Snapshot
	claim := liveClaim(s, c.Claim)
	if claim == nil || claim.UID != c.UID || s.NodeOf(c.Claim) == nil {
		return false
	}
	if c.Reason == command.Interrupted && (!claim.IsInterrupted() || claim.Interruption.IsUrgent()) {
		return claim.IsInterrupted()
	}
	if claim.Move == c.Move { // its fence is put up once more
		return true
	}
	_, blocked := ck.nodeEligibility().MayDisrupt(claim, c.Reason)
	return blocked == nil || c.Reason == command.Unhealthy && claim.Move == "" && !claim.DoNotRepair &&
		ck.forcesUnhealthy(claim, blocked)
}

// mayStillGo reports whether a node that is fenced may go.
func (ck *checker) mayStillGo(claim *cluster.Claim, n *cluster.Node) bool {
	reason := disrupt.MoveReason(claim.Move)
	if n == nil || !disrupt.Fenced(claim, n) {
		return false
	}
	_, blocked := ck.nodeEligibility().MayStillDisrupt(claim, reason)
	return blocked == nil || reason == command.Unhealthy && ck.forcesUnhealthy(claim, blocked)
}

// forcesUnhealthy reports whether an unhealthy node goes although something speaks for its staying: pods do only if no
// time is set by which they have to leave.
func (ck *checker) forcesUnhealthy(claim *cluster.Claim, blocked *disrupt.BlockedNode) bool {
	return !blocked.ByPod() || ck.health.HasForcedEnd(claim)
}

// stillPending reports whether the pod still has no node.
func stillPending(s *cluster.Snapshot, uid string) bool {
	p := podOf(s, uid)
	return p != nil && p.Node == "" && p.Deleting.IsZero() && !p.Finished
}

// anyNeedsPlace reports whether some pod that the node was meant for still needs a place.
func anyNeedsPlace(pods []*cluster.Pod, s *cluster.Snapshot) bool {
	for _, p := range pods {
		if q := podOf(s, p.UID); q != nil && (q.IsPending() || q.AwaitsScheduler() || q.IsReschedulable()) {
			return true
		}
	}
	return false
}

func podOf(s *cluster.Snapshot, uid string) *cluster.Pod {
	i, found := slices.BinarySearchFunc(s.Pods, uid, func(q *cluster.Pod, uid string) int {
		return strings.Compare(q.UID, uid)
	})
	if !found {
		return nil
	}
	return s.Pods[i]
}
