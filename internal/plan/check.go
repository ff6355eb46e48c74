package plan

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// Check keeps the commands of a plan that still make sense in a newer snapshot. What it drops is not lost: the next
// plan is made from the newer snapshot anyway.
func Check(p Plan, s *cluster.Snapshot) Plan {
	p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c command.Command) bool {
		return s.Busy[c.Key()] || !holds(c, s)
	})
	p.dropLonely(s)
	return p
}

// dropLonely drops the claims that were to replace nodes which don't go after all.
func (p *Plan) dropLonely(s *cluster.Snapshot) {
	begun := make(map[string]bool)
	for _, c := range p.Commands {
		if f, ok := c.(command.Fence); ok {
			begun[f.Move] = true
		}
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		create, ok := c.(command.CreateClaim)
		return ok && create.Replaces != "" && !begun[create.Replaces] && !awaited(s, create.Replaces)
	})
}

func holds(c command.Command, s *cluster.Snapshot) bool {
	switch c := c.(type) {
	case command.CreateClaim:
		pool := s.Pool(c.Pool)
		return pool != nil && pool.UID == c.PoolUID && pool.Generation == c.Generation && s.Claim(c.Name) == nil &&
			(pool.Static && len(c.Pods) == 0 || pool.Usable() && anyNeedy(c.Pods, s))
	case command.LaunchInstance:
		claim := alive(s, c.Claim)
		return claim != nil && claim.UID == c.UID && !claim.Is(cluster.Launched)
	case command.Register:
		return alive(s, c.Claim) != nil && s.NodeOf(c.Claim) != nil
	case command.Initialize:
		return alive(s, c.Claim) != nil && s.NodeOf(c.Claim) != nil
	case command.Adopt:
		return alive(s, c.Claim) != nil
	case command.Fence:
		return c.Reason == command.Requested || c.Move == "" && stillEmpty(s, c.Claim) || c.Move != "" && mayGo(s, c)
	case command.Unfence:
		return alive(s, c.Claim) != nil && s.Node(c.Node) != nil
	case command.DeleteClaim:
		claim := alive(s, c.Claim)
		return claim != nil && claim.UID == c.UID && stillDue(s, c)
	case command.Evict:
		return slices.ContainsFunc(s.PodsOn(c.Node), func(p *cluster.Pod) bool { return p.UID == c.UID })
	case command.Nominate:
		n := s.Node(c.Node)
		return awaits(s, c.UID) && (c.Node == "" || n != nil && n.Deleting.IsZero())
	case command.Bind:
		n := s.Node(c.Node) // once it is ready, kube-scheduler gives its room away as it likes
		return awaits(s, c.UID) && n != nil && !n.Ready
	case command.DeleteNode:
		n := s.Node(c.Node)
		return n != nil && n.UID == c.UID && n.Deleting.IsZero()
	case command.Terminate:
		if c.Claim == "" && c.Node == "" { // an orphan, unless somebody claims it by now
			return !slices.ContainsFunc(s.Claims, func(claim *cluster.Claim) bool { return claim.ProviderID == c.ProviderID })
		}
		return true // the claim or node is being deleted, and nothing takes that back
	case command.Release:
		return true // likewise
	case command.SetPool:
		return s.Pool(c.Pool) != nil
	case command.SetClaim:
		return s.Claim(c.Claim) != nil
	}
	return stampHolds(c, s)
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
func stillDue(s *cluster.Snapshot, c command.DeleteClaim) bool {
	n := s.NodeOf(c.Claim)
	claim := s.Claim(c.Claim)
	if c.Reason == command.Interrupted {
		return claim.Interrupted()
	}
	if over := claim.Created.Add(claim.Expire.For); c.Reason == command.Expired && !claim.Expire.Never && !s.Now.Before(over) {
		return true
	}
	if claim.Move != "" && disrupt.ReasonOf(claim.Move) == c.Reason {
		return mayStillGo(s, claim, n)
	}
	switch c.Reason {
	case command.Empty:
		return stillEmpty(s, c.Claim) || n == nil && claim.Replaces != "" && !claim.Is(cluster.Registered) && !awaited(s, claim.Replaces)
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

// mayGo reports whether a move may still begin with the node. What the pods on a sick node want is not asked.
func mayGo(s *cluster.Snapshot, c command.Fence) bool {
	claim := alive(s, c.Claim)
	if claim == nil || claim.UID != c.UID || s.NodeOf(c.Claim) == nil {
		return false
	}
	if c.Reason == command.Interrupted {
		return claim.Interrupted()
	}
	if claim.Move == c.Move { // its fence is put up once more
		return true
	}
	_, stay := disrupt.MayGo(s, disrupt.Settings{}, claim, c.Reason)
	return stay == nil || c.Reason == command.Unhealthy && claim.Move == "" && !claim.DoNotRepair
}

// mayStillGo reports whether a node that is fenced may go.
func mayStillGo(s *cluster.Snapshot, claim *cluster.Claim, n *cluster.Node) bool {
	reason := disrupt.ReasonOf(claim.Move)
	if n == nil || !disrupt.Fenced(claim, n) {
		return false
	}
	_, stay := disrupt.MayStillGo(s, disrupt.Settings{}, claim, reason)
	return stay == nil || reason == command.Unhealthy
}

// awaited reports whether some node of the move still waits to be replaced.
func awaited(s *cluster.Snapshot, move string) bool {
	return slices.ContainsFunc(s.Members(move), func(c *cluster.Claim) bool { return c.Deleting.IsZero() })
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
