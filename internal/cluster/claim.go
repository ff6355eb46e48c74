package cluster

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Claim is a NodeClaim: the wish for one node, and how far it has come.
type Claim struct {
	Name, UID string
	Pool      string
	Version   string // resource version
	Created   time.Time
	Deleting  time.Time // zero if not
	// FirstSeen is when this process first saw the claim that it had made, by its own clock; zero for claims that
	// others made, or that were there when it began. The clock of the API server, which Created goes by, may be
	// another.
	FirstSeen time.Time
	// Finalized says that our finalizer is on it, so that it can't vanish behind our back.
	Finalized bool

	ProviderID, NodeName string
	Labels               Labels
	Requirements         require.Set
	Taints               []Taint
	StartupTaints        []Taint
	Requests             resource.Vector
	// AwaitedResources are the dimensions of the extended resources that the node must show before it counts as
	// initialized.
	AwaitedResources      []int
	Capacity, Allocatable resource.Vector
	Conditions            []Condition
	Seats                 []Seat
	MadeFor               []MadeFor
	// Slot of a static pool that the claim fills.
	Slot Slot
	// MadeForUnread says that not all of its MadeFor could be read.
	MadeForUnread bool
	// DriftReplacement is what a claim says that was made in place of a drifted node.
	DriftReplacement DriftReplacement
	// Price per hour; Estimated if nobody has told it, and it is inferred from what other types cost.
	Price     float64
	Estimated bool
	// LastPodEvent is when a pod last came to or left the node; SavedPodEvent is what the status says about it.
	LastPodEvent, SavedPodEvent time.Time
	DoNotDisrupt                bool
	// HasTerminationGrace and TerminationGrace bound how long a drain may take.
	HasTerminationGrace bool
	TerminationGrace    time.Duration
	// ExpireAfter is how long the claim may live; Deadline is when its end must be over, whoever has not left by then:
	// what its termination annotation says, zero without one.
	ExpireAfter NillableDuration
	Deadline    time.Time
	// DoNotRepair keeps an unhealthy node from being replaced.
	DoNotRepair bool
	// Problems are what is wrong with the text of a claim that a person wrote.
	Problems []Problem
	// InstanceGone says that the cloud no longer knows the instance.
	InstanceGone bool
	// Hash of the pool's template that the claim was made from, and how it was computed.
	Hash, HashVersion string
	// DriftedFrom says how the instance differs from what its NodeClass asks for, in the cloud's word; empty if it does
	// not.
	DriftedFrom string
	// Move is the disruption that the node goes in, once it is fenced; Replaces is the one that the claim was made for.
	Move, Replaces string
	// RestUntil is when the node may be tried again after a disruption of it was given up; Rests is how often one was.
	RestUntil time.Time
	Rests     int
	// SavingRestUntil is when the node may be fenced to save money again after pods needed it while it was, or such a
	// move was given up; SavingRests is how often that was. It may go for other reasons meanwhile.
	SavingRestUntil time.Time
	SavingRests     int
	// Interruption is the end of the instance that the cloud has announced, if it has.
	Interruption Interruption
	// Expected marks a claim that we have asked for and the API server has not shown yet.
	Expected bool
}

// IsStandalone reports whether a person made the claim: it belongs to no pool.
func (c *Claim) IsStandalone() bool { return c.Pool == "" }

// staleAfter is by how much a deadline may lie before the deletion that it is for.
const staleAfter = time.Minute

// ExistsSince is when the claim came into being: no earlier than we have seen it, if it is our own. With a clock that
// is ahead of the API server's, each new claim would otherwise be too old at once, and be given up and made again
// without end.
func (c *Claim) ExistsSince() time.Time {
	if c.FirstSeen.After(c.Created) {
		return c.FirstSeen
	}
	return c.Created
}

// EndsBy is when a claim that is being deleted must be gone; has is false if it may take as long as its pods like.
// Whatever else holds, it must be before the cloud takes the instance away.
func (c *Claim) EndsBy() (at time.Time, has bool) {
	at, has = c.endsByPlan()
	if cut, hurried := c.Interruption.endsBy(c.Deleting); hurried && !c.Deleting.IsZero() && (!has || cut.Before(at)) {
		return cut, true
	}
	return at, has
}

// endsByPlan is End without interruptions. A deadline from long before the deletion was written for another one, which
// did not come about.
func (c *Claim) endsByPlan() (at time.Time, has bool) {
	switch {
	case !c.Deadline.IsZero() && !c.Deadline.Before(c.Deleting.Add(-staleAfter)):
		return c.Deadline, true
	case c.HasTerminationGrace && !c.Deleting.IsZero():
		return c.Deleting.Add(c.TerminationGrace), true
	}
	return time.Time{}, false
}

// Seat keeps room on a claim for a number of pods of a class. It outlives a restart as an annotation, so that the pods
// a node was made for find it again.
type Seat struct {
	Class string // PodClass.Key
	Count int
}

// Condition finds a condition; an absent one is Unknown.
func (c *Claim) Condition(kind string) Condition {
	for i := range c.Conditions {
		if c.Conditions[i].Type == kind {
			return c.Conditions[i]
		}
	}
	return Condition{Type: kind, Status: Unknown}
}

// Is reports whether the condition is True.
func (c *Claim) Is(kind string) bool {
	for i := range c.Conditions { // asked of every claim many times over, so nothing is copied
		if c.Conditions[i].Type == kind {
			return c.Conditions[i].Status == True
		}
	}
	return false
}

// NodeLag is for how long after its registration a node that is not there may be one that our watch has yet to show.
// Meanwhile it is counted on: two nodes would be made for the same pods otherwise, and one after another if somebody
// removes each as it joins.
const NodeLag = 30 * time.Second

// NodeMayCome reports whether a claim of which no node is there may get one.
func (c *Claim) NodeMayCome(now time.Time) bool {
	return !c.Is(Registered) || now.Before(c.Condition(Registered).Since.Add(NodeLag))
}

// HasLabels reports whether the claim says what it has become. Its labels may be seen a moment after its status says
// that it has been launched; what a node has joined with may be less than it will have in the end.
func (c *Claim) HasLabels() bool {
	_, known := c.Labels.Get(InstanceTypeLabel)
	return c.Is(Launched) && known || c.Is(Registered)
}

// Types returns the instance types that the claim may become.
func (c *Claim) Types() []string {
	values, _ := c.Requirements.Get(InstanceTypeLabel)
	list, finite := values.Listed()
	if !finite {
		return nil
	}
	return list
}

// Node is a Kubernetes node.
type Node struct {
	Name, UID  string
	Version    string
	ProviderID string
	Created    time.Time
	Deleting   time.Time
	Finalized  bool
	Labels     Labels
	Taints     []Taint
	// Ours says that the node was launched for a NodeClass of our provider.
	Ours bool
	// Cordoned nodes take no new pods. KeptFor is the move for which we keep a node: such a node is closed to
	// kube-scheduler, too, but not Cordoned.
	Cordoned bool
	KeptFor  string
	// CordonedBy and TaintedBy are who has done that, as far as it is known: the field managers.
	CordonedBy string
	TaintedBy  map[string]string // by the taint's text
	Ready      bool
	// ReadySince is when we saw that change last; zero if it is not known.
	ReadySince   time.Time
	DoNotDisrupt bool
	DoNotRepair  bool
	// Conditions are those that some repair policy names.
	Conditions []NodeCondition
	// Capacity and Allocatable as the kubelet reports them.
	Capacity, Allocatable resource.Vector
}

// NodeCondition is a condition of a node's health.
type NodeCondition struct {
	Type, Status string
	// Since is when the status last changed.
	Since time.Time
}

// HasTaint reports whether the node carries a taint with the key and effect, whatever its value.
func (n *Node) HasTaint(key string, effect Effect) bool {
	return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == key && t.Effect == effect })
}
