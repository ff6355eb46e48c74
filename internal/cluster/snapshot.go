// Package cluster is the world as values: what the API server and the cloud have told us, in the small form in which
// decisions are made.
//
// Floor 1: pure. A Snapshot never changes once it is made; everything in it may be shared freely.
package cluster

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/resource"
)

// Snapshot is the world at one moment. All slices are sorted by name (pods by UID, DaemonSets by priority first), so
// that whoever walks them gets the same answer each time.
type Snapshot struct {
	// Rev grows with every change; Now is the only clock that decisions know.
	Rev uint64
	Now time.Time
	// DemandRev and SupplyRev are the Rev of the last change to pods that need a place, and to anything else that a
	// placement depends on; RoomRev is that of the last change that may give room to a pod that found none. Two
	// snapshots with the same DemandRev and SupplyRev have the same placement. DisruptionRev is the Rev of the last
	// change to what matters to nobody but a search for cheaper nodes.
	DemandRev, SupplyRev, RoomRev, DisruptionRev uint64

	Names   *resource.Names
	Pools   []*Pool
	Claims  []*Claim
	Nodes   []*Node
	Pods    []*Pod
	Daemons []*Daemon        // the highest priority first, as by CompareDaemons
	Owners  map[string]Owner // by UID
	// Namespaces holds the labels of each namespace.
	Namespaces map[string]Labels
	// PDBs are the disruption budgets of pods, by namespace and name.
	PDBs []*PDB
	// Attached holds, by node, the handles of the volumes that are still attached to it, as pods name them.
	Attached map[string][]string
	// Inventory is what the cloud last said it runs; nil before its first answer.
	Inventory *Inventory
	// EvictedToSave counts, by owner UID, the pods that were evicted to save money within the last hour;
	// EvictionsDropAt is when the first of them is an hour ago.
	EvictedToSave   map[string]int
	EvictionsDropAt map[string]time.Time
	// WorkloadTries are the owners whose nodes were made in vain, by UID (see Workload).
	WorkloadTries map[string]*WorkloadTries
	// RemovedEarly is when consolidation first took a node from a workload before its pods had run there for
	// ProvenAfter, by the UID of the workload: within the last hour, and since pods of it have run on a new node for
	// that long.
	RemovedEarly map[string]time.Time
	// OtherPools are NodePools that another controller serves. Pools, Claims and the inventory have nothing of other
	// controllers: their nodes are there for pods, and nothing else is known of them.
	OtherPools []OtherPool
	// Notes are what should be told to people although no decision depends on it.
	Notes []Note

	// PlannedAt is when pods were last planned for: pods seen since then have not been in any plan.
	PlannedAt time.Time
	// LastBound is when a pod, daemons' aside, was last bound to a node.
	LastBound time.Time
	// SchedulerActivity is when kube-scheduler was last seen at work.
	SchedulerActivity SchedulerActivity
	// InstancesGone holds the provider ids of instances that the cloud has said it no longer knows.
	InstancesGone map[string]bool
	// EndOrphans is when a person said that instances which nobody claims may be ended; zero if nobody has. Cluster is
	// the cluster's identity: the UID of its namespace kube-system.
	EndOrphans time.Time
	Cluster    string
	// OrphansEnded is when the cloud was first asked to end an instance that no claim accounted for, by provider id:
	// those of the last hour.
	OrphansEnded map[string]time.Time
	// OrphansUnknown says that many orphans were held when the last NodePool was deleted, and that no other tells about
	// it yet.
	OrphansUnknown bool
	// ClaimLostAt is when a claim was last seen to vanish that was not being deleted, or when we began to look.
	ClaimLostAt time.Time
	// InFlight holds the keys of commands that are under way, or whose effect the watch has not shown yet.
	InFlight map[string]bool
	// Retry says, for commands that have failed, how often and when to try again.
	Retry map[string]Retry
	// Quarantine is what the planner has failed on.
	Quarantine Quarantine

	lookups *lookups
}

// SchedulerActivity is a rush of kube-scheduler's: it tries pod after pod, after a node has opened or something else
// has changed. Nobody says when it is done, but what it does shows. Began and Last are the first and the last sign of
// the latest rush.
type SchedulerActivity struct{ Began, Last time.Time }

// Retry is what is known of a command that failed.
type Retry struct {
	Attempts  int
	NotBefore time.Time
	Message   string
}

// Pool finds a pool by name, or nil.
func (s *Snapshot) Pool(name string) *Pool { return s.lookups.pool[name] }

// Claim finds a claim by name, or nil.
func (s *Snapshot) Claim(name string) *Claim { return s.lookups.claim[name] }

// Node finds a node by name, or nil.
func (s *Snapshot) Node(name string) *Node { return s.lookups.node[name] }

// NodeOf is the node that a claim has become, or nil.
func (s *Snapshot) NodeOf(claim string) *Node { return s.lookups.nodeOf[claim] }

// DuplicateNodes are the other nodes of ours that say they are the node's machine: its kubelet has joined once more
// under another name. Pods that are there end with it.
func (s *Snapshot) DuplicateNodes(n *Node) []*Node {
	var out []*Node
	for _, other := range s.lookups.duplicates[n.ProviderID] {
		if other != n && other.Ours {
			out = append(out, other)
		}
	}
	return out
}

// isDuplicate reports whether another node of the same machine is a claim's.
func (s *Snapshot) isDuplicate(n *Node) bool {
	return slices.ContainsFunc(s.lookups.duplicates[n.ProviderID], func(other *Node) bool {
		return other != n && s.ClaimOf(other.Name) != nil
	})
}

// ClaimOf is the claim that a node came from, or nil if it is none of ours.
func (s *Snapshot) ClaimOf(node string) *Claim { return s.lookups.claimOf[node] }

// ClaimsOf lists a pool's claims.
func (s *Snapshot) ClaimsOf(pool string) []*Claim { return s.lookups.claimsOf[pool] }

// MoveClaims lists the claims whose nodes go in a move.
func (s *Snapshot) MoveClaims(move string) []*Claim { return s.lookups.members[move] }

// sameTry bounds how long before the first fence of a move its replacements may have been made: both are asked for at
// the same time, by clocks that need not agree.
const sameTry = 30 * time.Second

// IsReplacement reports whether the claim was made for a move that is under way. A move that is tried again has the
// same name as before: what is left of an earlier try is a node like any other.
func (s *Snapshot) IsReplacement(c *Claim) bool {
	if c.Replaces == "" {
		return false
	}
	members := s.MoveClaims(c.Replaces)
	var began time.Time
	for _, m := range members {
		began = Earlier(began, m.Condition(DisruptionReason).Since)
	}
	return len(members) > 0 && !c.Created.Before(began.Add(-sameTry))
}

// IsWaitingReplacement reports whether the claim was made for a move that is under way and none of whose nodes has gone
// yet.
func (s *Snapshot) IsWaitingReplacement(c *Claim) bool {
	return s.IsReplacement(c) && !slices.ContainsFunc(s.MoveClaims(c.Replaces), func(m *Claim) bool {
		return !m.Deleting.IsZero()
	})
}

// PodsOn lists the pods that take up room on a node.
func (s *Snapshot) PodsOn(node string) []*Pod {
	if t := s.lookups.podsOn[node]; t != nil {
		return t.pods
	}
	return nil
}

// LastGrowth is when the latest of the owners that lack pods began to want so many; zero if none lacks any.
func (s *Snapshot) LastGrowth() time.Time {
	var latest time.Time
	for uid, o := range s.Owners {
		if !o.Known || !o.Since.After(latest) {
			continue
		}
		if workloadClaims := s.lookups.byOwner[uid]; workloadClaims == nil && o.Desired > 0 || workloadClaims != nil &&
			workloadClaims.there < o.Desired {
			latest = o.Since
		}
	}
	return latest
}

// HasNominatedPod reports whether kube-scheduler has chosen the node for a pod that it has not bound yet.
func (s *Snapshot) HasNominatedPod(node string) bool { return s.lookups.nominated[node] }

// Pending lists the pods that kube-scheduler could not place, and those of the same class that it has not looked at
// yet.
func (s *Snapshot) Pending() []*Pod { return s.lookups.pendingPods }

// PodsBetweenNodes lists the pods that are between two nodes, beside those that are pending: pods that kube-scheduler
// has yet to look at and, of pods that are leaving nodes on their way out, those whose owners have not made another
// yet.
func (s *Snapshot) PodsBetweenNodes() []*Pod {
	var out []*Pod
	lacking := make(map[string]int)
	for _, p := range s.Pods {
		if s.IsQuarantined(p) {
			continue
		}
		if p.AwaitsScheduler() && p.Owner != "" && !s.lookups.isUnschedulable(p) {
			out = append(out, p)
			continue
		}
		if p.Deleting.IsZero() || p.Owner == "" || p.Daemon || p.Mirror || !p.UsesRoom() || !s.isLeaving(p.Node) {
			continue
		}
		left, known := lacking[p.Owner]
		if !known {
			left = s.missingPods(p.Owner)
		}
		lacking[p.Owner] = left - 1
		if left > 0 {
			out = append(out, p)
		}
	}
	return out
}

// isLeaving reports whether the node is on its way out.
func (s *Snapshot) isLeaving(node string) bool {
	n, c := s.lookups.node[node], s.lookups.claimOf[node]
	return n != nil && !n.Deleting.IsZero() || c != nil && !c.Deleting.IsZero()
}

// missingPods is how many pods the owner wants beyond those that are there.
func (s *Snapshot) missingPods(owner string) int {
	o, ok := s.Owners[owner]
	if !ok || !o.Known {
		return 0
	}
	if workloadClaims := s.lookups.byOwner[owner]; workloadClaims != nil {
		return o.Desired - workloadClaims.there
	}
	return o.Desired
}

// PendingSince is when a pending pod became something to plan for: when kube-scheduler gave up on it, or on one of its
// kind that it is planned for together with.
func (s *Snapshot) PendingSince(p *Pod) time.Time {
	if !p.UnschedulableSince.IsZero() {
		return p.UnschedulableSince
	}
	if since := s.lookups.unschedulable[p.Class]; since.After(p.FirstSeen) {
		return since
	}
	return p.FirstSeen
}

// IsComplete reports whether every pod that the owner wants has appeared and its end is known; known
// is false if that can't be told.
func (s *Snapshot) IsComplete(owner string) (complete, known bool) {
	workloadClaims := s.lookups.byOwner[owner]
	if workloadClaims == nil {
		workloadClaims = &ownerPods{}
	}
	if owner == "" {
		return workloadClaims.undecided == 0, true
	}
	o, ok := s.Owners[owner]
	if !ok || !o.Known {
		return false, false
	}
	return workloadClaims.undecided == 0 && workloadClaims.there >= o.Desired, true
}
