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
	// Finalized says that our finalizer is on it, so that it can't vanish behind our back.
	Finalized bool

	ProviderID, NodeName string
	Labels               Labels
	Requirements         require.Set
	Taints               []Taint
	StartupTaints        []Taint
	Requests             resource.Vector
	// Wants are the dimensions of the extended resources that the node must show before it counts as initialized.
	Wants                 []int
	Capacity, Allocatable resource.Vector
	Conditions            []Condition
	Seats                 []Seat
	Price                 float64
	// LastPodEvent is when a pod last came to or left the node; SavedPodEvent is what the status says about it.
	LastPodEvent, SavedPodEvent time.Time
	DoNotDisrupt                bool
	// HasTerminationGrace and TerminationGrace bound how long a drain may take.
	HasTerminationGrace bool
	TerminationGrace    time.Duration
	// InstanceGone says that the cloud no longer knows the instance.
	InstanceGone bool
	// Foreign claims belong to a provider that is not ours: their nodes are there for pods, but nothing is done to them.
	Foreign bool
	// Expected marks a claim that we have asked for and the API server has not shown yet.
	Expected bool
}

// Seat keeps room on a claim for a number of pods of a class. It outlives a restart as an annotation, so that the pods a
// node was made for find it again.
type Seat struct {
	Class string // PodClass.Key
	Count int
}

// Condition finds a condition; an absent one is Unknown.
func (c *Claim) Condition(kind string) Condition {
	for _, cond := range c.Conditions {
		if cond.Type == kind {
			return cond
		}
	}
	return Condition{Type: kind, Status: Unknown}
}

// Is reports whether the condition is True.
func (c *Claim) Is(kind string) bool { return c.Condition(kind).Status == True }

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
	// Cordoned nodes take no new pods.
	Cordoned     bool
	Ready        bool
	DoNotDisrupt bool
	// Capacity and Allocatable as the kubelet reports them.
	Capacity, Allocatable resource.Vector
}

// HasTaint reports whether the node carries a taint with the key and effect, whatever its value.
func (n *Node) HasTaint(key string, effect Effect) bool {
	return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == key && t.Effect == effect })
}
