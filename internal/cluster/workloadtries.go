package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// A node is unused for an owner if it was made for pods of the owner, none of them has run there for ProvenAfter, it
// carries no workload, and either it can't take the pods that wait, or it is on its way out or gone while they wait.
// docs/concepts/bounds.md proves what follows from it.
const (
	// ProvenAfter is how long a pod must have run on a node for the node not to be in vain.
	ProvenAfter = time.Minute
	// SeemsWellAfter is how long a pod must run on a new node for more nodes to be made before ProvenAfter is over.
	SeemsWellAfter = 10 * time.Second
	// firstTryWait and longestTryWait bound the time from one try to the next, which doubles; the second try comes at
	// once, because most troubles are accidents.
	firstTryWait   = 30 * time.Second
	longestTryWait = 5 * time.Minute
	// MaxUnused is how many nodes may stand unused for an owner when another is tried: the one that shows what is
	// wrong.
	MaxUnused = 1
	// mayClearFor is how long a new node stays that a taint or a cordon closes to the pods that it was made for. Agents
	// of networks and of storage put up a taint until they are ready, and not everybody declares it as a startup taint.
	mayClearFor = 30 * time.Second
)

// TryAfter is how long after the claims of a failed try were made the next may follow. tries is how many have failed in
// a row.
func TryAfter(tries int) time.Duration {
	if tries <= 1 {
		return 0
	}
	return min(firstTryWait<<min(tries-2, 10), longestTryWait)
}

// WorkloadTries is what is known of an owner whose nodes were made in vain.
type WorkloadTries struct {
	// Owner is the key of the workload, Kind and Name are for people; Name is namespace/name.
	Owner, Kind, Name string
	// WorkloadGone says that neither a pod of the workload is there nor, as far as that is known, the workload. It
	// holds up nobody, so that people are not told. The count goes on in case that it comes back.
	WorkloadGone bool
	// FailedTries is how many tries have failed in a row; 0 once pods have run again. Since is when the first of them
	// failed.
	FailedTries int
	Since       time.Time
	// NextTry is when the next try may be made. ProvenAt is when pods that run on a node will have run for
	// SeemsWellAfter, or for ProvenAfter; zero if none does.
	NextTry, ProvenAt time.Time
	// RunsAgain says that pods of the owner run on nodes that were made after the last failure, or with it.
	RunsAgain bool
	// ComingClaims are claims that were made for the owner and of which it is not known yet whether they are unused.
	// UnusedClaims are those that are unused and still cost money, with their price per hour; Retained is the one of
	// them that stays as long as pods wait.
	ComingClaims int
	UnusedClaims []string
	Price        float64
	Retained     string
	// UnusedWithPods is how many nodes that are unused carry pods of the owner now: they have yet to run there for
	// ProvenAfter, and may have to leave again. Unproven is how many others carry pods of the owner that seem well and
	// have yet to run for ProvenAfter. MostUnproven is the most that there were at a time of ComingClaims,
	// UnusedClaims, UnusedWithPods and Unproven together.
	UnusedWithPods, Unproven, MostUnproven int
	// Failures are the last few, the newest first.
	Failures []UnusedNode
}

// UnusedNode is a node that was made in vain.
type UnusedNode struct {
	Claim, Node, Pool string
	At                time.Time
	Cause             Cause
	// Classes are those that it was made for and that wait.
	Classes []*PodClass
}

// CauseKind is what keeps pods off a node that was made for them.
type CauseKind string

// The kinds of causes.
const (
	CauseTaint   CauseKind = "Taint"
	CauseCordon  CauseKind = "Cordoned"
	CauseLabel   CauseKind = "LabelChanged"
	CauseShrunk  CauseKind = "AllocatableShrank"
	CauseRoom    CauseKind = "RoomTaken"
	CauseDeleted CauseKind = "NodeDeleted"
	CauseEvicted CauseKind = "PodsEvicted"
	CausePort    CauseKind = "PortTaken"
	// CauseScheduler is for what nothing else explains: the node would do, and kube-scheduler does not put the pods
	// there.
	CauseScheduler CauseKind = "RefusedByScheduler"
)

// Cause is what keeps pods off a node that was made for them.
type Cause struct {
	Kind CauseKind
	// By is who did it, if that is known: the field manager that wrote it, or what ended the node.
	By string
	// Taint that the pods don't tolerate.
	Taint Taint
	// Label that changed, from Was to Is; empty for absent.
	Label, Was, Is string
	// Resource of which there is too little; Need is what a pod asks for, Promised what the instance type was to leave
	// for pods and Left what there is. TakenBy are the pods that have taken the room.
	Resource, Need, Promised, Left string
	TakenBy                        string
	// Message are those of others, cut to a length: kube-scheduler's about the pods, or why a pod had to leave.
	Message string

	// Free is the room that there was for pods, Labels are those of the node, where they are the cause.
	Free   resource.Vector
	Labels Labels
}

// IsSame reports whether the causes would be told in the same words, but for names and amounts that differ from node to
// node.
func (c Cause) IsSame(d Cause) bool {
	return c.Kind == d.Kind && c.Taint == d.Taint && c.Label == d.Label && c.Is == d.Is && c.Resource == d.Resource
}

// IsTaken reports whether others have what the pods need.
func (c Cause) IsTaken() bool { return c.Kind == CauseRoom || c.Kind == CausePort }

// keepsAway reports whether the cause would keep pods of the class away.
func (n *UnusedNode) keepsAway(class *PodClass) bool {
	switch n.Cause.Kind {
	case CauseTaint:
		_, off := Untolerated(class.Tolerations, []Taint{n.Cause.Taint})
		return off
	case CauseLabel:
		h := Host{Name: n.Node, Labels: n.Cause.Labels}
		return !h.Meets(class.Terms)
	case CauseShrunk, CauseRoom:
		return !class.Requests.Fits(n.Cause.Free)
	}
	return slices.ContainsFunc(n.Classes, func(had *PodClass) bool { return sameNeeds(had, class) })
}

// sameNeeds reports whether pods of both classes ask the same of a node.
func sameNeeds(a, b *PodClass) bool {
	switch {
	case a == b:
		return true
	case a.Requests != b.Requests:
		return false
	case a.NodeKey != "" && b.NodeKey != "": // terms may be very long, and many classes are compared
		return a.NodeKey == b.NodeKey
	}
	return slices.Equal(a.Tolerations, b.Tolerations) &&
		slices.EqualFunc(a.Terms, b.Terms, func(x, y require.Set) bool { return x.String() == y.String() })
}

// ConcernsClass reports whether what has kept pods of the owner away would keep away those of the class; the newest
// such failure is named.
func (t *WorkloadTries) ConcernsClass(class *PodClass) *UnusedNode {
	for i := range t.Failures {
		if t.Failures[i].keepsAway(class) {
			return &t.Failures[i]
		}
	}
	return nil
}

// IsFree reports whether nodes may be made for the owner without any bound: nothing has failed since pods have last
// run, or they run again, and nothing but the retained node stands unused.
func (t *WorkloadTries) IsFree() bool {
	return (t.FailedTries == 0 || t.RunsAgain) && t.CountUnused() <= MaxUnused
}

// HoldsPods reports whether the workload waits because of it, which is what people are told.
func (t *WorkloadTries) HoldsPods() bool { return !t.WorkloadGone && !t.IsFree() }

// CountUnused is how many nodes that are unused are there, those included to which pods have come again.
func (t *WorkloadTries) CountUnused() int { return len(t.UnusedClaims) + t.UnusedWithPods }

// MayTry reports whether one node may be made for an owner that is not Free.
func (t *WorkloadTries) MayTry(now time.Time) bool {
	if t.ComingClaims > 0 {
		return false
	}
	if t.FailedTries == 0 || t.RunsAgain {
		// its nodes are of use again; as what stood unused before goes, others take its place
		return t.CountUnused()+t.Unproven < t.MostUnproven
	}
	return t.CountUnused() <= MaxUnused && !now.Before(t.NextTry)
}

// ChangesAt is when something may change by time alone; zero if nothing will.
func (t *WorkloadTries) ChangesAt(now time.Time) time.Time {
	var at time.Time
	if t.NextTry.After(now) {
		at = t.NextTry
	}
	if t.ProvenAt.After(now) {
		at = Earlier(at, t.ProvenAt)
	}
	return at
}

// TriesHolding is the tries that keeps nodes from being made for the pod, with the failure that is the reason; nil if
// none does.
func (s *Snapshot) TriesHolding(p *Pod) (*WorkloadTries, *UnusedNode) {
	if len(s.WorkloadTries) == 0 {
		return nil, nil
	}
	tries := s.WorkloadTries[s.Workload(p)]
	if tries == nil || tries.IsFree() {
		return nil, nil
	}
	if unused := tries.ConcernsClass(p.Class); unused != nil {
		return tries, unused
	}
	return nil, nil
}

// RefusalCause says why a node that is up can't take one more pod of the class, if it can't. What a fence of ours keeps
// away is no reason.
func (s *Snapshot) RefusalCause(c *Claim, n *Node, class *PodClass) (cause Cause, refuses bool) {
	if n.Cordoned {
		return Cause{Kind: CauseCordon, By: n.CordonedBy}, true
	}
	taints := n.Taints
	if c.Is(DisruptionReason) {
		taints = withoutTaint(taints, DisruptedTaint)
	}
	if taint, off := Untolerated(class.Tolerations, taints); off {
		return Cause{Kind: CauseTaint, Taint: taint, By: n.TaintedBy[taint.String()]}, true
	}
	h := (&Overlay{Base: s, schedulerView: true}).hostOfNode(n, c)
	if !h.Meets(class.Terms) {
		key, _ := class.MatchesLabels(h.Label)
		was, _ := c.Labels.Get(key)
		is, _ := n.Labels.Get(key)
		return Cause{Kind: CauseLabel, Label: key, Was: was, Is: is, Labels: n.Labels}, true
	}
	if !class.Requests.Fits(h.Free) {
		return s.shortageCause(c, n, class, h.Free), true
	}
	return s.portTaken(n, class)
}

// portTaken says which port of the host that pods of the class need is taken, if one is. Pods of the kubelet's own may
// do that on each new node, and no plan can know of them.
func (s *Snapshot) portTaken(n *Node, class *PodClass) (cause Cause, taken bool) {
	if len(class.Ports) == 0 {
		return Cause{}, false
	}
	wanted := make(map[int32][]Port, len(class.Ports))
	for _, want := range class.Ports {
		wanted[want.Number] = append(wanted[want.Number], want)
	}
	for _, p := range s.PodsOn(n.Name) {
		if !p.UsesRoom() || !p.Deleting.IsZero() {
			continue
		}
		for _, has := range p.Class.Ports {
			if slices.ContainsFunc(wanted[has.Number], has.Conflicts) {
				return Cause{Kind: CausePort, Resource: fmt.Sprintf("%d/%s", has.Number, has.Protocol),
					TakenBy: p.ID()}, true
			}
		}
	}
	return Cause{}, false
}

// shortageCause says of what a node has too little.
func (s *Snapshot) shortageCause(c *Claim, n *Node, class *PodClass, free resource.Vector) Cause {
	cause := Cause{Kind: CauseRoom, Free: free}
	for dim := range free {
		if class.Requests[dim] <= max(free[dim], 0) {
			continue
		}
		cause.Resource = s.Names.Name(dim)
		cause.Need, cause.Left = resource.Format(dim, class.Requests[dim]), resource.Format(dim, max(free[dim], 0))
		if n.Allocatable[dim] < c.Allocatable[dim] {
			cause.Kind, cause.Promised, cause.Left = CauseShrunk, resource.Format(dim, c.Allocatable[dim]),
				resource.Format(dim, n.Allocatable[dim])
		}
		break
	}
	if cause.Kind == CauseRoom {
		cause.TakenBy = s.largestPods(n.Name)
	}
	return cause
}

// maxTakenBy is how many pods a cause names.
const maxTakenBy = 3

// largestPods names the largest pods on a node.
func (s *Snapshot) largestPods(node string) string {
	on := slices.Clone(s.PodsOn(node))
	slices.SortStableFunc(on, func(a, b *Pod) int {
		return int(b.Class.Requests[resource.CPU] - a.Class.Requests[resource.CPU])
	})
	var names []string
	for _, p := range on[:min(len(on), maxTakenBy)] {
		names = append(names, p.ID())
	}
	return strings.Join(names, ", ")
}

// MayClearUntil is until when a claim in vain is kept because what closes its node to pods may go by itself: a taint or
// a cordon, shortly after the node has come up. It is zero if nothing is to be hoped for.
func (c *Claim) MayClearUntil(n *Node) time.Time {
	if n == nil || !n.Cordoned && !slices.ContainsFunc(n.Taints, func(t Taint) bool { return c.foreignTaint(t) }) {
		return time.Time{}
	}
	return c.Condition(Initialized).Since.Add(mayClearFor)
}

// foreignTaint reports whether a taint keeps pods off the node that neither its claim has nor we put there.
func (c *Claim) foreignTaint(t Taint) bool {
	return t.Effect != PreferNoSchedule && t.Key != DisruptedTaint && !slices.Contains(c.Taints, t)
}

// ObservedUntil is until when it shows what becomes of a node that was made as a try, or after another was taken
// early: pods that have come to it have to start, and to run for ProvenAfter. It is zero for any other claim.
func (s *Snapshot) ObservedUntil(c *Claim) time.Time {
	for _, m := range c.MadeFor {
		tries, early := s.WorkloadTries[m.Owner], s.RemovedEarly[m.Owner]
		tried := tries != nil && tries.FailedTries > 0 && !tries.WorkloadGone && m.Try > 1
		if tried || !early.IsZero() && !c.Created.Before(early) {
			return Later(c.Condition(Initialized).Since, c.LastPodEvent).Add(2 * ProvenAfter)
		}
	}
	return time.Time{}
}

// UnusedNodes lists the claims whose nodes stand unused, with the tries that each is of, and says which of them are
// retained. One that is unused for several owners is retained if it is for one of them.
func (s *Snapshot) UnusedNodes() (standing map[string]*WorkloadTries, witnesses map[string]bool) {
	if len(s.WorkloadTries) == 0 {
		return nil, nil
	}
	standing, witnesses = make(map[string]*WorkloadTries), make(map[string]bool)
	for _, tries := range s.WorkloadTries {
		for _, claim := range tries.UnusedClaims {
			if had := standing[claim]; had == nil || tries.Owner < had.Owner {
				standing[claim] = tries
			}
		}
		if tries.Retained != "" {
			witnesses[tries.Retained] = true
		}
	}
	return standing, witnesses
}
