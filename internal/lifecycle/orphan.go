package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

const (
	// More orphans than minTooMany, and than one in tooManyShare of the instances known, are no accident: the claims
	// are lost rather than the instances.
	minTooMany   = 3
	tooManyShare = 10
	// endsCount is for how long an instance that was ended unasked counts: claims may also be lost one after the other.
	endsCount = time.Hour
	// confirmedFor is how long a person's word holds; a clock may be ahead of ours by clockSkew.
	confirmedFor = time.Hour
	clockSkew    = 5 * time.Minute
	// allSeenFor is how long no claim may have vanished before anything is ended for having none. Many that vanish
	// together are seen one after the other, and they must be counted together.
	allSeenFor = 10 * time.Second
)

// The reasons why instances are held: there are many, or nothing tells them from those of a cluster of the same name.
const (
	ManyOrphans     = cluster.ManyOrphans
	UnprovenOrphans = "UnprovenOrphans"
)

// OrphanStatus is how many instances nobody claims, and how many of them are left alone until a person says that they
// may go.
type OrphanStatus struct {
	// Orphans is how many there are; Known is how many instances the cloud runs, and MaxUnasked how many orphans are
	// ended unasked.
	Orphans, Known, MaxUnasked int
	// Ended is how many were ended unasked within the last hour.
	Ended int
	// Held is how many are left alone; Unproven is how many of these carry nothing that tells this cluster from a
	// namesake.
	Held, Unproven int
	// TooMany says that there are too many; it stays so until a person has looked or none is left. Undecided says that
	// it can't be told yet how many there are.
	TooMany, Undecided bool
	// Unknown says that no NodePool can remember how many there have been, so none is ended unasked.
	Unknown bool
	// nodes are those of our nodes among them that are being deleted.
	nodes map[string]bool
}

// IsHeld reports whether the node is being deleted, has lost its claim, and is neither drained nor ended until a person
// has looked.
func (os OrphanStatus) IsHeld(node string) bool { return os.nodes[node] }

// Reason is why instances are held.
func (os OrphanStatus) Reason() string {
	if os.TooMany {
		return ManyOrphans
	}
	return UnprovenOrphans
}

// Text tells people what is held and what to do; empty if nothing is.
func (os OrphanStatus) Text() reason.Text {
	if os.Held == 0 {
		return reason.Text{}
	}
	why := reason.Of(reason.AtMostUnasked, os.MaxUnasked)
	switch {
	case os.Reason() == UnprovenOrphans:
		why = reason.Of(reason.NoIdentityTag)
	case os.Unknown:
		why = reason.Of(reason.ManyBeforePools)
	case os.MaxUnasked == 0:
		why = reason.Of(reason.MoreBefore)
	case os.Ended > 0:
		why = reason.Of(reason.AtMostWithinHour, os.MaxUnasked, os.Ended)
	}
	return reason.Of(reason.OrphansHeld, os.Held, os.Known, why, cluster.EndOrphansAnnotation)
}

// orphan is an instance that no claim accounts for.
type orphan struct {
	id       string
	created  time.Time
	unproven bool
	// isSecond says that its claim is there and has another instance: it is certain to be nobody's.
	isSecond bool
	// terminate is how it ends; nil if it is ending already, is too young to be sure of, or may be a claim's that is
	// just being made.
	terminate command.Command
	// deletedNode is its node, if that is being deleted. Mostly nobody meant that: Kubernetes' garbage collector
	// deletes the nodes of claims that are gone.
	deletedNode string
}

// Orphans ends what the cloud runs and no claim accounts for. What has a node of ours goes by the deletion of that
// node, which drains it. If there are many, none is touched until a person has looked.
func Orphans(s *cluster.Snapshot) (Step, OrphanStatus) {
	var step Step
	list := append(orphanNodes(s, &step), orphanInstances(s)...)
	status := OrphanStatus{Orphans: len(list), Known: countInstances(s), nodes: make(map[string]bool)}
	due := s.ClaimLostAt.Add(allSeenFor)
	early := s.Now.Before(due)
	if early && len(list) > 0 {
		step.wake(due)
	}
	status.Undecided = early || s.Inventory == nil
	status.count(s, list)
	for _, o := range list {
		switch {
		case o.terminate == nil && o.deletedNode == "":
		case early:
			if o.deletedNode != "" {
				status.nodes[o.deletedNode] = true
			}
		case o.isSecond, isConfirmed(s, o), !o.unproven && !status.TooMany:
			if o.terminate != nil {
				step.emit(o.terminate)
			}
		default:
			status.leaveAlone(o)
		}
	}
	return step, status
}

// count finds out whether there are too many orphans: those that are there, and those that were ended within the last
// hour. Each counts once: the cloud's list may still have one that is ending.
func (os *OrphanStatus) count(s *cluster.Snapshot, list []orphan) {
	unsure := 0
	lately := endedUnasked(s)
	os.Ended = len(lately)
	for _, o := range list {
		if !o.isSecond && !o.unproven && !isConfirmed(s, o) {
			unsure++
			lately[o.id] = true
		}
	}
	os.MaxUnasked = max(minTooMany, os.Known/tooManyShare)
	os.TooMany = unsure > 0 && len(lately) > os.MaxUnasked
	if os.Unknown = s.OrphansUnknown; os.Unknown || manyHeld(s) {
		os.MaxUnasked, os.TooMany = 0, unsure > 0 || os.Undecided
	}
}

// leaveAlone leaves an orphan alone.
func (os *OrphanStatus) leaveAlone(o orphan) {
	os.Held++
	if o.deletedNode != "" {
		os.nodes[o.deletedNode] = true
	}
	if o.unproven {
		os.Unproven++
	}
}

// endedUnasked are the instances that were ended within the last hour because no claim accounted for them. What was
// ended before a person said that it may be, or within the hour for which that holds, does not count: somebody has
// looked. Nor does one that a claim has after all: then it was not ended.
func endedUnasked(s *cluster.Snapshot) map[string]bool {
	since := s.Now.Add(-endsCount)
	if heard := s.EndOrphans.Add(confirmedFor); !s.EndOrphans.IsZero() && heard.After(since) {
		since = heard
	}
	out := make(map[string]bool)
	for id, at := range s.OrphansEnded {
		if at.After(since) {
			out[id] = true
		}
	}
	if len(out) > 0 {
		for _, c := range s.Claims {
			delete(out, c.ProviderID)
		}
	}
	return out
}

// manyHeld reports whether many orphans are held. A few that are left of them are still those: some go by themselves,
// because their nodes were being deleted, and the others must not follow when they seem to be few. The pools' condition
// remembers it, also through a restart.
func manyHeld(s *cluster.Snapshot) bool {
	return slices.ContainsFunc(s.Pools, (*cluster.Pool).HasHeldOrphans)
}

// isConfirmed reports whether a person has said that the orphan may be ended: a while ago at the most, and after it was
// launched.
func isConfirmed(s *cluster.Snapshot, o orphan) bool {
	said := s.EndOrphans
	return !said.IsZero() && o.created.Before(said) && s.Now.Before(said.Add(confirmedFor)) &&
		!s.Now.Before(said.Add(-clockSkew))
}

// countInstances counts the instances that the cloud lists or that our nodes speak for.
func countInstances(s *cluster.Snapshot) int {
	count := 0
	if s.Inventory != nil {
		count = len(s.Inventory.Instances)
	}
	for _, n := range s.Nodes {
		if n.Ours && n.ProviderID != "" && (s.Inventory == nil || !s.Inventory.Has(n.ProviderID)) {
			count++
		}
	}
	return count
}

// orphanNodes finds nodes of ours that nobody claims any more. One that has never been registered is deleted only when
// its instance is gone: until then it may still find its claim. A node without a machine is deleted in any case.
func orphanNodes(s *cluster.Snapshot, step *Step) []orphan {
	var out []orphan
	for _, n := range s.Nodes {
		if !n.Ours || s.ClaimOf(n.Name) != nil || n.ProviderID == "" {
			continue
		}
		if owner := ownerOf(s, n); owner != "" {
			if n.Finalized && n.Deleting.IsZero() && s.NodeOf(owner) != nil {
				step.warn(duplicateNote(n, owner))
			}
			continue
		}
		if o, counts := orphanOf(s, n, step); counts {
			out = append(out, o)
		}
	}
	return out
}

// orphanOf says what is to become of a node that nobody claims; counts says whether it is one of those of which only
// some may end at once. A node whose instance is lost ends in any case.
func orphanOf(s *cluster.Snapshot, n *cluster.Node, step *Step) (o orphan, counts bool) {
	lost := s.InstancesGone[n.ProviderID] || isVanished(s, n)
	if !n.Deleting.IsZero() {
		return deletedNodeOrphan(s, n), n.Finalized && !lost
	}
	if !n.Finalized && !lost {
		return orphan{}, false
	}
	o = orphan{id: n.ProviderID, created: seenSince(s, n)}
	listed, isListed := listedInstance(s, n.ProviderID)
	if mayFindNode(s, n) {
		return o, isListed && isDoubtful(s, listed) // it may be somebody's
	}
	if due := o.created.Add(lagFor); s.Now.Before(due) {
		step.wake(due)
		return o, true // it may still find its claim
	}
	o.terminate = command.DeleteNode{Node: n.Name, UID: n.UID, Reason: command.ClaimMissing, ProviderID: n.ProviderID,
		Text: reason.Of(reason.InstanceUnclaimed, n.ProviderID)}
	if lost {
		step.emit(o.terminate)
		return orphan{}, false
	}
	if isListed {
		o.unproven, o.isSecond = listed.Unproven, isSecondInstance(claimByUID(s, listed.ClaimUID), listed)
	}
	return o, true
}

// deletedNodeOrphan is a node that is being deleted and has no claim. Once its end was asked for it goes on.
func deletedNodeOrphan(s *cluster.Snapshot, n *cluster.Node) orphan {
	o := orphan{id: n.ProviderID, created: seenSince(s, n)}
	i, listed := listedInstance(s, n.ProviderID)
	if !terminateAsked(s, command.Terminate{Node: n.Name, ProviderID: n.ProviderID}) && !(listed && i.Terminating) {
		o.deletedNode = n.Name
	}
	if listed {
		o.unproven, o.isSecond = i.Unproven, isSecondInstance(claimByUID(s, i.ClaimUID), i)
	}
	return o
}

// orphanInstances finds instances that no claim accounts for and that have no node of ours. A claim that says it has
// the instance accounts for it, for whomever it was launched: to end it would take the machine of a claim that is
// there.
func orphanInstances(s *cluster.Snapshot) []orphan {
	if s.Inventory == nil || len(s.Inventory.Instances) == 0 {
		return nil
	}
	claims, named := make(map[string]*cluster.Claim, len(s.Claims)), make(map[string]bool, len(s.Claims))
	for _, c := range s.Claims {
		claims[c.UID], named[c.ProviderID] = c, true
	}
	nodes := make(map[string]*cluster.Node, len(s.Nodes))
	for _, n := range s.Nodes {
		nodes[n.ProviderID] = n
	}
	var out []orphan
	for i := range s.Inventory.Instances {
		x := &s.Inventory.Instances[i]
		if s.InstancesGone[x.ProviderID] || x.Terminating || named[x.ProviderID] {
			continue
		}
		c := claims[x.ClaimUID]
		spare, doubt := isSecondInstance(c, x), c == nil && isDoubtful(s, x)
		if !spare && !doubt && (c != nil || isAccountedFor(s, x)) {
			continue
		}
		if n := nodes[x.ProviderID]; n != nil && (s.ClaimOf(n.Name) != nil || n.Ours && n.Finalized) {
			continue
		}
		o := orphan{id: x.ProviderID, created: x.Created, unproven: x.Unproven, isSecond: spare}
		if young := s.Inventory.At.Before(x.Created.Add(lagFor)); !young && !doubt {
			o.terminate = command.Terminate{UID: x.ClaimUID, ProviderID: x.ProviderID}
		}
		out = append(out, o)
	}
	return out
}

func claimByUID(s *cluster.Snapshot, uid string) *cluster.Claim {
	for _, c := range s.Claims {
		if c.UID == uid && uid != "" {
			return c
		}
	}
	return nil
}

// isSecondInstance reports whether the claim has another instance than this one.
func isSecondInstance(c *cluster.Claim, x *cluster.Instance) bool {
	return c != nil && c.Is(cluster.Launched) && c.ProviderID != "" && c.ProviderID != x.ProviderID
}

// isAccountedFor reports whether the instance is somebody's: its claim is there, or it may be.
func isAccountedFor(s *cluster.Snapshot, i *cluster.Instance) bool {
	c := s.Claim(i.Claim)
	return isDoubtful(s, i) || c != nil && (c.UID == i.ClaimUID || i.ClaimUID == "")
}

// isDoubtful reports whether the instance may be somebody's: a claim of its name is just being made, or launched and
// not in the snapshot, and its UID is not known. A claim of that name with another UID is another one: names come again
// when what they are derived from does.
func isDoubtful(s *cluster.Snapshot, i *cluster.Instance) bool {
	if c := s.Claim(i.Claim); c != nil {
		return c.Expected
	}
	return s.InFlight[command.LaunchInstance{Claim: i.Claim}.Key()]
}

// listedInstance finds what the cloud listed under the provider id.
func listedInstance(s *cluster.Snapshot, providerID string) (*cluster.Instance, bool) {
	if s.Inventory == nil {
		return nil, false
	}
	at, found := slices.BinarySearchFunc(s.Inventory.Instances, providerID, func(i cluster.Instance, id string) int {
		return strings.Compare(i.ProviderID, id)
	})
	if !found {
		return nil, false
	}
	return &s.Inventory.Instances[at], true
}
