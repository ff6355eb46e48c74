package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// PodClass is everything about a pod that matters to where it may run. Pods that are alike in it share one value, and
// a class is placed in bulk.
type PodClass struct {
	// Key is a hash of the content: the same after a restart and on another machine.
	Key string
	// NodeKey is a hash of Terms and Tolerations: classes with the same one ask the same of a node. Empty if nobody has
	// worked it out.
	NodeKey string
	// Requests of one pod, its slot in the pod count included.
	Requests resource.Vector
	// Terms are the alternatives of its node selector and required node affinity; one must hold. Never empty: a pod
	// without wishes has one empty term.
	Terms []require.Set
	// OwnTerms are Terms without what the pod's volumes add, if they add anything: topology spread counts the nodes
	// that the pod itself allows, wherever its volumes are.
	OwnTerms    []require.Set
	Tolerations []Toleration
	// Priority of the pod: the higher comes first where limits bind.
	Priority int32
	// Rules tie the pod to other pods; all must hold. They are sorted by key.
	Rules []*Rule
	// Preferences are what the pod would like, in the order in which it names them.
	Preferences []Preference
	// Ports of the host that the pod occupies.
	Ports []Port
	// Unsupported names what keeps the pod from being planned for: what the planner can't honour, or a volume that is
	// not to be had. Such a pod is never given a node, since the node might not help it.
	Unsupported []string
}

// OwnOrAllTerms is what the pod itself asks of a node, whatever its volumes add.
func (c *PodClass) OwnOrAllTerms() []require.Set {
	if c.OwnTerms != nil {
		return c.OwnTerms
	}
	return c.Terms
}

// IsTied reports whether other pods decide where the class's pods may go: by rules, or by ports that both need.
func (c *PodClass) IsTied() bool { return len(c.Rules)+len(c.Ports) > 0 }

// MatchesLabels reports whether some term of the class holds on the labels; key is a key that stood in the way of the
// first term if none does.
func (c *PodClass) MatchesLabels(label func(string) (string, bool)) (key string, ok bool) {
	for i, term := range c.Terms {
		miss, ok := term.FirstMiss(label)
		if ok {
			return "", true
		}
		if i == 0 {
			key = miss
		}
	}
	return key, false
}

// Owner is what made a pod and wants a number of them.
type Owner struct {
	// UID in a Snapshot is the key of the owner: see OwnerKey. So is Workload.
	UID  string
	Kind string
	// Name of the owner, in the namespace of its pods: for people.
	Name string
	// Workload is the workload that controls this one, if one does, with its kind and name; Namespace is that of both.
	Workload, WorkloadKind, WorkloadName, Namespace string
	// Known is false if nothing is known about how many pods the owner wants.
	Known bool
	// Desired is how many pods the owner wants at the same time. For an owner that makes one pod after the other
	// has become ready, waiting for more is unused and Desired is 0.
	Desired int
	// Since is when we learned that it wants so many; Created is when it was made.
	Since   time.Time
	Created time.Time
}

// Pod is one pod.
type Pod struct {
	UID, Namespace, Name string
	Class                *PodClass
	// Labels by which other pods' rules select it. Pods with equal labels share one value.
	Labels Labels
	// Volumes that it attaches; ExclusiveVolumes are the handles of those that only one pod in the cluster may use
	// (ReadWriteOncePod).
	Volumes          []Volume
	ExclusiveVolumes []string
	// VolumePlaces are where its volumes are, for people: what follows from that for its node is in its class.
	VolumePlaces []VolumePlace
	// UnboundClaims are claims whose volumes don't exist yet: each is made in the zone to which the first of its pods
	// goes, and the others must follow.
	UnboundClaims []string
	// Owner is the UID of its controller, if it has one.
	Owner string
	// Node is the name of the node it is bound to; Nominated that of the node which kube-scheduler has chosen and not
	// bound it to yet (it waits for a volume, or makes room there).
	Node, Nominated string
	// Binding says that we are binding it to Node, and the watch has not shown it there: it may be on another node by
	// now.
	Binding bool
	Created time.Time
	// FirstSeen is when we first saw it.
	FirstSeen time.Time

	// Unschedulable says that kube-scheduler has looked at the pod and found no place; UnschedulableSince is when we
	// learned it.
	Unschedulable      bool
	UnschedulableSince time.Time
	// SchedulerSeen says that kube-scheduler has looked at the pod at all.
	SchedulerSeen bool
	// OtherScheduler says that the pod names a scheduler of its own, which may want more than a node for it.
	OtherScheduler bool

	// Daemon pods come with a node, Mirror pods belong to a kubelet: neither is ever planned for.
	Daemon, Mirror bool
	// Finished pods have finished; they hold no resources.
	Finished bool
	// Deleting since this time; zero if not. Grace is how long it may take to end.
	Deleting time.Time
	Grace    time.Duration

	// DoNotDisrupt keeps its node from being disrupted; if that ends by itself, DoNotDisruptUntil is when.
	DoNotDisrupt      bool
	DoNotDisruptUntil time.Time
	// Started is when its kubelet took it on; Ready pods serve, and count as healthy for disruption budgets.
	Started time.Time
	Ready   bool
	// Phase and Limits are for people: no decision depends on them but one, since a Pending pod is protected by no
	// disruption budget. Pods with equal limits share one value; nil for none.
	Phase  string
	Limits *resource.Vector
	// Critical pods are drained after the others.
	Critical bool
	// StaysThroughDrain is set for pods that tolerate the disruption taint: a drain neither evicts nor awaits
	// them, and they end with their node.
	StaysThroughDrain bool
	// EvictionCost is what evicting the pod costs when nodes are compared: 1 for a pod that says nothing, between -10
	// and 10.
	EvictionCost float64
}

// VolumePlace is where a volume is: a node must have one of these values of the label.
type VolumePlace struct {
	Volume, Key string
	Values      []string
}

// Equal reports whether two places are the same.
func (p VolumePlace) Equal(other VolumePlace) bool {
	return p.Volume == other.Volume && p.Key == other.Key && slices.Equal(p.Values, other.Values)
}

// ID names the pod for people.
func (p *Pod) ID() string { return p.Namespace + "/" + p.Name }

// HasVolumes reports whether the pod attaches volumes, or claims some that don't exist yet.
func (p *Pod) HasVolumes() bool {
	return len(p.Volumes)+len(p.ExclusiveVolumes)+len(p.UnboundClaims) > 0
}

// IsTied reports whether anything but room and the node itself decides where the pod may go.
func (p *Pod) IsTied() bool { return p.Class.IsTied() || p.HasVolumes() }

// IsPending reports whether the pod waits for a place that only a new or another node can give.
func (p *Pod) IsPending() bool {
	return p.Unschedulable && p.Node == "" && p.Deleting.IsZero() && !p.Finished && !p.Daemon && !p.Mirror
}

// AwaitsScheduler reports whether kube-scheduler has yet to look at the pod.
func (p *Pod) AwaitsScheduler() bool {
	return !p.SchedulerSeen && p.Node == "" && p.Deleting.IsZero() && !p.Finished && !p.Daemon && !p.Mirror
}

// PendingSince is when the pod became something to plan for: when kube-scheduler gave up on it, or when it joined
// others of its kind on which it had.
func (p *Pod) PendingSince() time.Time {
	if p.UnschedulableSince.IsZero() {
		return p.FirstSeen
	}
	return p.UnschedulableSince
}

// UsesRoom reports whether the pod takes up resources of its node.
func (p *Pod) UsesRoom() bool { return p.Node != "" && !p.Finished }

// IsReschedulable reports whether the pod will need another place when its node goes. One that stays through the drain
// does, too: it ends with its node, and its controller makes it anew.
func (p *Pod) IsReschedulable() bool {
	return p.UsesRoom() && !p.Daemon && !p.Mirror && p.Deleting.IsZero() && p.Owner != ""
}

// NeedsNewPlace reports whether the pod will need another place when its node is drained: it is evicted, or it ends
// with the node, which does not wait for it.
func (p *Pod) NeedsNewPlace() bool {
	return p.IsReschedulable() && (!p.DoNotDisrupt || p.StaysThroughDrain)
}

// IsWorkload reports whether the pod is a reason to keep a node: neither a daemon's nor the kubelet's own, not finished
// and not on its way out.
func (p *Pod) IsWorkload() bool {
	return p.UsesRoom() && !p.Daemon && !p.Mirror && p.Deleting.IsZero()
}

// Daemon is what a DaemonSet puts on every node that it matches.
type Daemon struct {
	UID, Namespace, Name string
	Class                *PodClass
	// Labels that its pods will carry: other pods' rules may select them.
	Labels Labels
}

// CompareDaemons is the order in which DaemonSets get room on a node: kube-scheduler lets the higher priority in first,
// and preempts for it. Among equals it is up to chance: nothing may depend on their names, which only make the order
// the same each time.
func CompareDaemons(a, b *Daemon) int {
	return cmp.Or(
		cmp.Compare(b.Class.Priority, a.Class.Priority),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.UID, b.UID),
	)
}
