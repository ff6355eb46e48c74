package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// A node is in vain for an owner if it was made for pods of the owner, none of them has run there for RanFor, it carries no workload,
// and either it can't take the pods that wait, or it is on its way out or gone while they wait. docs/concepts/bounds.md proves
// what follows from it.
const (
	// RanFor is how long a pod must have run on a node for the node not to be in vain.
	RanFor = time.Minute
	// SeemsWell is how long a pod must run on a new node for more nodes to be made before RanFor is over.
	SeemsWell = 10 * time.Second
	// firstRetry and lastRetry bound the time from one try to the next, which doubles; the second try comes at once, because
	// most troubles are accidents.
	firstRetry = 30 * time.Second
	lastRetry  = 5 * time.Minute
	// MayStand is how many nodes may stand in vain for an owner when another is tried: the one that shows what is wrong.
	MayStand = 1
	// mayClear is how long a new node stays that a taint or a cordon closes to the pods that it was made for. Agents of
	// networks and of storage put up a taint until they are ready, and not everybody declares it as a startup taint.
	mayClear = 30 * time.Second
)

// RetryAfter is how long after the claims of a failed try were made the next may follow. tries is how many have failed in a row.
func RetryAfter(tries int) time.Duration {
	if tries <= 1 {
		return 0
	}
	return min(firstRetry<<min(tries-2, 10), lastRetry)
}

// Setback is what is known of an owner whose nodes were made in vain.
type Setback struct {
	// Owner is the key of the workload, Kind and Name are for people; Name is namespace/name.
	Owner, Kind, Name string
	// Gone says that neither a pod of the workload is there nor, as far as that is known, the workload. It holds up
	// nobody, so that people are not told. The count goes on in case that it comes back.
	Gone bool
	// Tries is how many tries have failed in a row; 0 once pods have run again. Since is when the first of them failed.
	Tries int
	Since time.Time
	// Next is when the next try may be made. Soon is when pods that run on a node will have run for SeemsWell, or for
	// RanFor; zero if none does.
	Next, Soon time.Time
	// Well says that pods of the owner run on nodes that were made after the last failure, or with it.
	Well bool
	// Coming are claims that were made for the owner and of which it is not known yet whether they are in vain. Standing are those
	// that are in vain and still cost money, with their price per hour; Witness is the one of them that stays as long as pods wait.
	Coming   int
	Standing []string
	Price    float64
	Witness  string
	// Visited is how many nodes that are in vain carry pods of the owner now: they have yet to run there for RanFor,
	// and may have to leave again. Settling is how many others carry pods of the owner that seem well and have yet to
	// run for RanFor. Most is the most that there were at a time of Coming, Standing, Visited and Settling together.
	Visited, Settling, Most int
	// Failures are the last few, the newest first.
	Failures []VainNode
}

// VainNode is a node that was made in vain.
type VainNode struct {
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
	// CauseScheduler is for what nothing else explains: the node would do, and kube-scheduler does not put the pods there.
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
	// Resource of which there is too little; Need is what a pod asks for, Promised what the instance type was to leave for pods and
	// Left what there is. Takers are the pods that have taken the room.
	Resource, Need, Promised, Left string
	Takers                         string
	// Words are those of others, cut to a length: kube-scheduler's about the pods, or why a pod had to leave.
	Words string

	// Free is the room that there was for pods, Labels are those of the node, where they are the cause.
	Free   resource.Vector
	Labels Labels
}

// Same reports whether the causes would be told in the same words, but for names and amounts that differ from node to node.
func (c Cause) Same(d Cause) bool {
	return c.Kind == d.Kind && c.Taint == d.Taint && c.Label == d.Label && c.Is == d.Is && c.Resource == d.Resource
}

// Taken reports whether others have what the pods need.
func (c Cause) Taken() bool { return c.Kind == CauseRoom || c.Kind == CausePort }

// touches reports whether the cause would keep pods of the class away.
func (f *VainNode) touches(class *PodClass) bool {
	switch f.Cause.Kind {
	case CauseTaint:
		_, off := Untolerated(class.Tolerations, []Taint{f.Cause.Taint})
		return off
	case CauseLabel:
		h := Host{Name: f.Node, Labels: f.Cause.Labels}
		return !h.Meets(class.Terms)
	case CauseShrunk, CauseRoom:
		return !class.Requests.Fits(f.Cause.Free)
	}
	return slices.ContainsFunc(f.Classes, func(had *PodClass) bool { return sameNeeds(had, class) })
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

// Touches reports whether what has kept pods of the owner away would keep away those of the class; the newest such failure is named.
func (b *Setback) Touches(class *PodClass) *VainNode {
	for i := range b.Failures {
		if b.Failures[i].touches(class) {
			return &b.Failures[i]
		}
	}
	return nil
}

// Free reports whether nodes may be made for the owner without any bound: nothing has failed since pods have last run, or they run
// again, and nothing but the witness stands in vain.
func (b *Setback) Free() bool { return (b.Tries == 0 || b.Well) && b.InVain() <= MayStand }

// HoldsUp reports whether the workload waits because of it, which is what people are told.
func (b *Setback) HoldsUp() bool { return !b.Gone && !b.Free() }

// InVain is how many nodes that are in vain are there, those included to which pods have come again.
func (b *Setback) InVain() int { return len(b.Standing) + b.Visited }

// MayTry reports whether one node may be made for an owner that is not Free.
func (b *Setback) MayTry(now time.Time) bool {
	if b.Coming > 0 {
		return false
	}
	if b.Tries == 0 || b.Well { // its nodes are of use again; as what stood in vain before goes, others take its place
		return b.InVain()+b.Settling < b.Most
	}
	return b.InVain() <= MayStand && !now.Before(b.Next)
}

// Again is when something may change by time alone; zero if nothing will.
func (b *Setback) Again(now time.Time) time.Time {
	var at time.Time
	if b.Next.After(now) {
		at = b.Next
	}
	if b.Soon.After(now) {
		at = Earlier(at, b.Soon)
	}
	return at
}

// HeldBy is the setback that keeps nodes from being made for the pod, with the failure that is the reason; nil if none does.
func (s *Snapshot) HeldBy(p *Pod) (*Setback, *VainNode) {
	if len(s.Setbacks) == 0 {
		return nil, nil
	}
	b := s.Setbacks[s.Root(p)]
	if b == nil || b.Free() {
		return nil, nil
	}
	if f := b.Touches(p.Class); f != nil {
		return b, f
	}
	return nil, nil
}

// Refuses says why a node that is up can't take one more pod of the class, if it can't. What a fence of ours keeps away is no reason.
func (s *Snapshot) Refuses(c *Claim, n *Node, class *PodClass) (cause Cause, refuses bool) {
	if n.Cordoned {
		return Cause{Kind: CauseCordon, By: n.CordonedBy}, true
	}
	taints := n.Taints
	if c.Is(DisruptionReason) {
		taints = without(taints, DisruptedTaint)
	}
	if taint, off := Untolerated(class.Tolerations, taints); off {
		return Cause{Kind: CauseTaint, Taint: taint, By: n.TaintedBy[taint.String()]}, true
	}
	h := (&Overlay{Base: s, plain: true}).hostOfNode(n, c)
	if !h.Meets(class.Terms) {
		key, _ := class.MatchesLabels(h.Label)
		was, _ := c.Labels.Get(key)
		is, _ := n.Labels.Get(key)
		return Cause{Kind: CauseLabel, Label: key, Was: was, Is: is, Labels: n.Labels}, true
	}
	if !class.Requests.Fits(h.Free) {
		return s.lackOf(c, n, class, h.Free), true
	}
	return s.portTaken(n, class)
}

// portTaken says which port of the host that pods of the class need is taken, if one is. Pods of the kubelet's own may do that on
// each new node, and no plan can know of them.
func (s *Snapshot) portTaken(n *Node, class *PodClass) (cause Cause, taken bool) {
	if len(class.Ports) == 0 {
		return Cause{}, false
	}
	wanted := make(map[int32][]Port, len(class.Ports))
	for _, want := range class.Ports {
		wanted[want.Number] = append(wanted[want.Number], want)
	}
	for _, p := range s.PodsOn(n.Name) {
		if !p.Holds() || !p.Deleting.IsZero() {
			continue
		}
		for _, has := range p.Class.Ports {
			if slices.ContainsFunc(wanted[has.Number], has.Conflicts) {
				return Cause{Kind: CausePort, Resource: fmt.Sprintf("%d/%s", has.Number, has.Protocol), Takers: p.ID()}, true
			}
		}
	}
	return Cause{}, false
}

// lackOf says of what a node has too little.
func (s *Snapshot) lackOf(c *Claim, n *Node, class *PodClass, free resource.Vector) Cause {
	cause := Cause{Kind: CauseRoom, Free: free}
	for dim := range free {
		if class.Requests[dim] <= max(free[dim], 0) {
			continue
		}
		cause.Resource = s.Names.Name(dim)
		cause.Need, cause.Left = resource.Format(dim, class.Requests[dim]), resource.Format(dim, max(free[dim], 0))
		if n.Allocatable[dim] < c.Allocatable[dim] {
			cause.Kind, cause.Promised, cause.Left = CauseShrunk, resource.Format(dim, c.Allocatable[dim]), resource.Format(dim, n.Allocatable[dim])
		}
		break
	}
	if cause.Kind == CauseRoom {
		cause.Takers = s.takers(n.Name)
	}
	return cause
}

// mostTakers is how many pods a cause names.
const mostTakers = 3

// takers names the largest pods on a node.
func (s *Snapshot) takers(node string) string {
	on := slices.Clone(s.PodsOn(node))
	slices.SortStableFunc(on, func(a, b *Pod) int {
		return int(b.Class.Requests[resource.CPU] - a.Class.Requests[resource.CPU])
	})
	var names []string
	for _, p := range on[:min(len(on), mostTakers)] {
		names = append(names, p.ID())
	}
	return strings.Join(names, ", ")
}

// MayClear is until when a claim in vain is kept because what closes its node to pods may go by itself: a taint or a cordon, shortly
// after the node has come up. It is zero if nothing is to be hoped for.
func (c *Claim) MayClear(n *Node) time.Time {
	if n == nil || !n.Cordoned && !slices.ContainsFunc(n.Taints, func(t Taint) bool { return c.foreignTaint(t) }) {
		return time.Time{}
	}
	return c.Condition(Initialized).Since.Add(mayClear)
}

// foreignTaint reports whether a taint keeps pods off the node that neither its claim has nor we put there.
func (c *Claim) foreignTaint(t Taint) bool {
	return t.Effect != PreferNoSchedule && t.Key != DisruptedTaint && !slices.Contains(c.Taints, t)
}

// TriedUntil is until when it shows what becomes of a node that was made as a try, or after another was taken
// early: pods that have come to it have to start, and to run for RanFor. It is zero for any other claim.
func (s *Snapshot) TriedUntil(c *Claim) time.Time {
	for _, m := range c.MadeFor {
		b, early := s.Setbacks[m.Owner], s.TakenEarly[m.Owner]
		tried := b != nil && b.Tries > 0 && !b.Gone && m.Try > 1
		if tried || !early.IsZero() && !c.Created.Before(early) {
			return Later(c.Condition(Initialized).Since, c.LastPodEvent).Add(2 * RanFor)
		}
	}
	return time.Time{}
}

// InVain lists the claims whose nodes stand in vain, with the setback that each is of, and says which of them are witnesses. One that is
// in vain for several owners is a witness if it is for one of them.
func (s *Snapshot) InVain() (standing map[string]*Setback, witnesses map[string]bool) {
	if len(s.Setbacks) == 0 {
		return nil, nil
	}
	standing, witnesses = make(map[string]*Setback), make(map[string]bool)
	for _, b := range s.Setbacks {
		for _, claim := range b.Standing {
			if had := standing[claim]; had == nil || b.Owner < had.Owner {
				standing[claim] = b
			}
		}
		if b.Witness != "" {
			witnesses[b.Witness] = true
		}
	}
	return standing, witnesses
}
