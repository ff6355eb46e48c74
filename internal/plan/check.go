package plan

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Check keeps the commands of a plan that still make sense in a newer snapshot. What it drops is not lost: the next
// plan is made from the newer snapshot anyway.
func Check(p Plan, s *cluster.Snapshot) Plan {
	k := &checker{Snapshot: s, admission: newAdmission(s), set: p.set, bound: make(map[string]resource.Vector), headroom: make(map[*cluster.Pool]*schedule.Headroom), clinic: disrupt.NewClinic(s, p.repair)}
	lost := newLosses()
	p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c command.Command) bool {
		if s.Busy[c.Key()] {
			lost.fence(c)
			return true
		}
		if k.holds(c) && k.stillSick(c) {
			return false
		}
		lost.fence(c)
		if d, ok := c.(command.DeleteClaim); ok && alive(s, d.Claim) != nil {
			lost.parties[d.Party] = true
		}
		return true
	})
	p.dropParts(lost)
	if p.demand == 0 || p.supply == 0 || p.demand != s.Demand || p.supply != s.Supply {
		lost.parties = p.cramped(s)
		p.dropParts(lost)
	}
	p.dropLonely(s)
	p.Begun, p.GivenUp = slices.Clone(p.Begun), slices.Clone(p.GivenUp)
	p.correct()
	return p
}

// checker looks at the commands of one plan.
type checker struct {
	*cluster.Snapshot
	set   disrupt.Settings
	judge *disrupt.Judge
	// clinic knows which nodes are beyond hope.
	clinic *disrupt.Clinic
	// bound is what pods need that the plan binds, by node.
	bound map[string]resource.Vector
	// admission is what every claim for pods has to pass.
	admission *admission
	// headroom is what the limits of pools leave.
	headroom map[*cluster.Pool]*schedule.Headroom
}

// affords reports whether a new claim is still within its pool's limits: others may have come since the plan was made, of a user
// or of another replica.
func (k *checker) affords(pool *cluster.Pool, c command.CreateClaim) bool {
	if !pool.Limits.Any() {
		return true
	}
	if k.headroom[pool] == nil {
		k.headroom[pool] = schedule.HeadroomOf(k.Snapshot, pool)
	}
	return k.headroom[pool].Take(schedule.Charge(k.Snapshot, pool, &cluster.Claim{Requirements: c.Requirements}))
}

// seats reports whether a node that is coming up still has room for a pod that is to be bound to it, and takes it.
func (k *checker) seats(n *cluster.Node, uid string) bool {
	room := n.Allocatable
	if claim := k.ClaimOf(n.Name); claim != nil {
		for dim := range room {
			if room[dim] <= 0 { // its kubelet has not spoken of it yet
				room[dim] = claim.Allocatable[dim]
			}
		}
	}
	need := k.bound[n.Name].Add(podOf(k.Snapshot, uid).Class.Requests)
	used := need
	for _, p := range k.PodsOn(n.Name) {
		used = used.Add(p.Class.Requests)
	}
	if !used.Fits(room) {
		return false
	}
	k.bound[n.Name] = need
	return true
}

// asks is who knows which nodes may go.
func (k *checker) asks() *disrupt.Judge {
	if k.judge == nil {
		k.judge = disrupt.NewJudge(k.Snapshot, k.set)
	}
	return k.judge
}

// cramped finds the parties of nodes whose pods no longer have room elsewhere. What is sick goes in any case, and in a static pool
// each node goes for another.
func (p *Plan) cramped(s *cluster.Snapshot) map[string]bool {
	parties := make(map[string][]string)
	for _, c := range p.Commands {
		d, ok := c.(command.DeleteClaim)
		if !ok || d.Party == "" || d.Reason == command.Unhealthy {
			continue
		}
		if pool := s.Pool(s.Claim(d.Claim).Pool); pool == nil || !pool.Static {
			parties[d.Party] = append(parties[d.Party], d.Node)
		}
	}
	if len(parties) == 0 {
		return nil
	}
	return disrupt.Cramped(s, p.set, &p.Placement, p.Commands, parties)
}

// stillSick reports whether a node that is to go for its health is still beyond hope; true for all other commands.
func (k *checker) stillSick(c command.Command) bool {
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
	claim := k.Claim(name)
	return claim != nil && k.clinic.StillSick(claim)
}

// holds reports whether a command still makes sense.
func (k *checker) holds(c command.Command) bool {
	s := k.Snapshot
	switch c := c.(type) {
	case command.CreateClaim:
		pool := s.Pool(c.Pool)
		return pool != nil && pool.UID == c.PoolUID && pool.Generation == c.Generation && s.Claim(c.Name) == nil &&
			(pool.Static && len(c.Pods) == 0 || pool.Usable() && anyNeedy(c.Pods, s) && k.admission.admit(c.Pods)) && k.affords(pool, c)
	case command.LaunchInstance:
		claim := alive(s, c.Claim)
		return claim != nil && claim.UID == c.UID && !claim.Is(cluster.Launched)
	case command.Register:
		return alive(s, c.Claim) != nil && s.NodeOf(c.Claim) != nil
	case command.Initialize:
		return alive(s, c.Claim) != nil && s.NodeOf(c.Claim) != nil
	case command.Open:
		n := s.Node(c.Node)
		return n != nil && n.KeptFor != ""
	case command.Adopt:
		return alive(s, c.Claim) != nil
	case command.Fence:
		return s.Node(c.Node) != nil && (c.Reason == command.Requested || c.Move == "" && stillEmpty(s, c.Claim) || c.Move != "" && k.mayGo(c))
	case command.Unfence:
		return alive(s, c.Claim) != nil && s.Node(c.Node) != nil
	case command.DeleteClaim:
		claim := alive(s, c.Claim)
		return claim != nil && claim.UID == c.UID && k.stillDue(c)
	case command.Evict:
		return slices.ContainsFunc(s.PodsOn(c.Node), func(p *cluster.Pod) bool { return p.UID == c.UID })
	case command.Nominate:
		n := s.Node(c.Node)
		return awaits(s, c.UID) && (c.Node == "" || n != nil && n.Deleting.IsZero())
	case command.Bind:
		n := s.Node(c.Node) // once it is ready, kube-scheduler gives its room away as it likes
		return awaits(s, c.UID) && n != nil && !n.Ready && k.seats(n, c.UID)
	case command.DeleteNode:
		n := s.Node(c.Node)
		return n != nil && n.UID == c.UID && n.Deleting.IsZero() && !claimsIt(s, c.ProviderID)
	case command.Terminate:
		return stillEnds(s, c)
	case command.Release:
		return true // nothing takes back the deletion of a claim
	case command.SetPool:
		return s.Pool(c.Pool) != nil
	case command.SetClaim:
		return s.Claim(c.Claim) != nil
	}
	return stampHolds(c, s)
}

// stillEnds reports whether an instance is still to be ended: a pod may have shown up on its node, and an orphan may be somebody's by
// now.
func stillEnds(s *cluster.Snapshot, c command.Terminate) bool {
	if c.Claim == "" {
		return !claimsIt(s, c.ProviderID)
	}
	claim := s.Claim(c.Claim)
	return claim == nil || claim.UID != c.UID || lifecycle.Ends(s, claim, c.ProviderID)
}

// claimsIt reports whether a claim says that the instance is its own.
func claimsIt(s *cluster.Snapshot, providerID string) bool {
	return slices.ContainsFunc(s.Claims, func(claim *cluster.Claim) bool { return claim.ProviderID == providerID })
}

// stampHolds reports whether a hash is still to be written.
func stampHolds(c command.Command, s *cluster.Snapshot) bool {
	switch c := c.(type) {
	case command.StampPool:
		p := s.Pool(c.Pool)
		return p != nil && p.UID == c.UID && p.Hash == c.Hash && p.HashVersion == c.Version
	case command.StampClaim:
		claim := alive(s, c.Claim)
		return claim != nil && claim.UID == c.UID && (claim.Hash == "" || claim.HashVersion != c.Version)
	}
	return false
}

func alive(s *cluster.Snapshot, name string) *cluster.Claim {
	if c := s.Claim(name); c != nil && c.Deleting.IsZero() {
		return c
	}
	return nil
}

// stillDue reports whether the reason for which a claim is deleted still holds.
func (k *checker) stillDue(c command.DeleteClaim) bool {
	s := k.Snapshot
	n := s.NodeOf(c.Claim)
	claim := s.Claim(c.Claim)
	if c.Reason == command.Interrupted { // whether there is room for its pods is asked for all that go
		if c.Party == "" {
			return disrupt.HasToGo(s, k.set, claim)
		}
		return claim.Interrupted() && (claim.Interruption.Urgent() || k.mayStillGo(claim, n))
	}
	if over := claim.Created.Add(claim.Expire.For); c.Reason == command.Expired && !claim.Expire.Never && !s.Now.Before(over) {
		return true
	}
	if claim.Move != "" && disrupt.ReasonOf(claim.Move) == c.Reason {
		return k.mayStillGo(claim, n)
	}
	switch c.Reason {
	case command.Empty:
		if claim.Replaces != "" && !claim.Is(cluster.Initialized) && awaited(s, claim.Replaces) {
			return false
		}
		return stillEmpty(s, c.Claim) || n == nil && claim.Replaces != "" && !claim.Is(cluster.Registered)
	case command.Underutilized, command.Drifted, command.Expired: // what goes in no move any more has been opened again
		return false
	case command.NodeMissing:
		return n == nil
	case command.InstanceMissing:
		return n == nil || !n.Ready
	}
	return true
}

func stillEmpty(s *cluster.Snapshot, claim string) bool {
	c, n := alive(s, claim), s.NodeOf(claim)
	return c != nil && n != nil && disrupt.IsEmpty(s, c, n)
}

// mayGo reports whether a move may still begin with the node.
func (k *checker) mayGo(c command.Fence) bool {
	s := k.Snapshot
	claim := alive(s, c.Claim)
	if claim == nil || claim.UID != c.UID || s.NodeOf(c.Claim) == nil {
		return false
	}
	if c.Reason == command.Interrupted && (!claim.Interrupted() || claim.Interruption.Urgent()) {
		return claim.Interrupted()
	}
	if claim.Move == c.Move { // its fence is put up once more
		return true
	}
	_, stay := k.asks().MayGo(claim, c.Reason)
	return stay == nil || c.Reason == command.Unhealthy && claim.Move == "" && !claim.DoNotRepair && k.forces(claim, stay)
}

// mayStillGo reports whether a node that is fenced may go.
func (k *checker) mayStillGo(claim *cluster.Claim, n *cluster.Node) bool {
	reason := disrupt.ReasonOf(claim.Move)
	if n == nil || !disrupt.Fenced(claim, n) {
		return false
	}
	_, stay := k.asks().MayStillGo(claim, reason)
	return stay == nil || reason == command.Unhealthy && k.forces(claim, stay)
}

// forces reports whether a sick node goes although something speaks for its staying: pods do only if no time is set by which they have
// to leave.
func (k *checker) forces(claim *cluster.Claim, stay *disrupt.Stay) bool {
	return !stay.ByPods() || k.clinic.Bounded(claim)
}

// awaits reports whether the pod still has no node.
func awaits(s *cluster.Snapshot, uid string) bool {
	p := podOf(s, uid)
	return p != nil && p.Node == "" && p.Deleting.IsZero() && !p.Done
}

// anyNeedy reports whether some pod that the node was meant for still needs a place.
func anyNeedy(pods []*cluster.Pod, s *cluster.Snapshot) bool {
	for _, p := range pods {
		if q := podOf(s, p.UID); q != nil && (q.Pending() || q.Waiting() || q.Reschedulable()) {
			return true
		}
	}
	return false
}

func podOf(s *cluster.Snapshot, uid string) *cluster.Pod {
	i, found := slices.BinarySearchFunc(s.Pods, uid, func(q *cluster.Pod, uid string) int { return strings.Compare(q.UID, uid) })
	if !found {
		return nil
	}
	return s.Pods[i]
}
