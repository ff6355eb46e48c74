package plan

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Check keeps the commands of a plan that still make sense in a newer snapshot. What it drops is not lost: the next
// plan is made from the newer snapshot anyway.
func Check(p Plan, s *cluster.Snapshot) Plan {
	k := checker{Snapshot: s, bound: make(map[string]resource.Vector)}
	p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c command.Command) bool {
		return s.Busy[c.Key()] || !k.holds(c)
	})
	return p
}

// checker looks at the commands of one plan.
type checker struct {
	*cluster.Snapshot
	// bound is what pods need that the plan binds, by node.
	bound map[string]resource.Vector
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

// holds reports whether a command still makes sense.
func (k *checker) holds(c command.Command) bool {
	s := k.Snapshot
	switch c := c.(type) {
	case command.CreateClaim:
		pool := s.Pool(c.Pool)
		return pool != nil && pool.UID == c.PoolUID && pool.Generation == c.Generation && s.Claim(c.Name) == nil && (pool.Static && len(c.Pods) == 0 || pool.Usable() && anyNeedy(c.Pods, s))
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
		return c.Reason != command.Empty || stillEmpty(s, c.Claim)
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
		return awaits(s, c.UID) && n != nil && !n.Ready && k.seats(n, c.UID)
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
	switch c.Reason {
	case command.Empty:
		return stillEmpty(s, c.Claim)
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
