// Package cloudprovider is what a cloud implements so that Tenon can run nodes on it.
//
// It is public and speaks only in its own plain values and in the API types; nothing of Tenon's inside leaks through
// it. A provider is an edge: it launches, finds and ends instances and says what may be bought and at what price. It
// decides nothing. The conformance suite in the conformance folder states, as tests, what a provider must do;
// cloudprovider/fake is the smallest one that passes it. Package operator runs the controller with a provider,
// examples/provider is a module of its own that does so, and docs/tasks/provider.md walks through it.
package cloudprovider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Provider is the whole of a cloud, as Tenon needs it.
type Provider interface {
	// Name is a short lower-case word for logs and metrics, such as "kwok" or "aws".
	Name() string
	// NodeClasses lists the kinds of NodeClass that this provider understands.
	NodeClasses() []schema.GroupVersionKind

	Catalog
	Instances

	// Drifted says why the claim's instance no longer matches what its NodeClass asks for; empty if it matches.
	Drifted(ctx context.Context, claim *v1.NodeClaim) (DriftReason, error)
	// RepairPolicies lists node conditions that mean a node should be replaced, and for how long they may last.
	RepairPolicies() []RepairPolicy
}

// Catalog says what may be bought.
type Catalog interface {
	// InstanceTypes lists every type that the pool's NodeClass can launch, whether or not it is available right now
	// (Offering.Available says that). The order is by name. The caller must not change what it is given: the same
	// values may be handed out again.
	InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*InstanceType, error)
}

// Instances launches, finds and ends instances. All methods are safe for concurrent use.
type Instances interface {
	// Create launches one instance for the claim: the cheapest available offering that the claim's requirements
	// allow and whose allocatable resources hold the claim's requests. It is idempotent by the claim's UID: called
	// again, after a crash or a lost answer, it returns the instance that is there already. It returns as soon as
	// the cloud has accepted the launch and does not wait for the node to join.
	// Errors that callers act on: NoCapacity, NotReady, Throttled, Unauthorized.
	Create(ctx context.Context, claim *v1.NodeClaim) (*Instance, error)
	// Get finds one instance; NotFound once it is gone for good.
	Get(ctx context.Context, providerID string) (*Instance, error)
	// List finds every instance that Tenon launched and that is not gone yet.
	List(ctx context.Context) ([]*Instance, error)
	// Delete begins to end the instance and returns nil while it is ending; NotFound once it is gone for good, so
	// a caller repeats Delete until it sees NotFound. owner is whose instance the caller takes it for: if it is
	// another's by what the cloud shows, or another cluster's, nothing is ended and NotOwned says whose it is.
	Delete(ctx context.Context, providerID string, owner Owner) error
}

// Owner is the NodeClaim that an instance was launched for. Without a UID the instance is taken for nobody's: that is
// what List says of an instance whose claim can't be told.
type Owner struct{ ClaimName, ClaimUID string }

// Of reports whether the claim has the same identity. A name alone proves nothing: it may come back.
func (o Owner) Of(claimUID string) bool { return o.ClaimUID == claimUID }

func (o Owner) String() string {
	switch {
	case o.ClaimName == "" && o.ClaimUID == "":
		return "nobody that can be told"
	case o.ClaimUID == "":
		return fmt.Sprintf("a NodeClaim %s without a UID", o.ClaimName)
	case o.ClaimName == "":
		return fmt.Sprintf("the NodeClaim with UID %s", o.ClaimUID)
	}
	return fmt.Sprintf("NodeClaim %s (UID %s)", o.ClaimName, o.ClaimUID)
}

// InstanceType is a shape of machine and all the ways to buy it.
type InstanceType struct {
	// Name is the value of the node.kubernetes.io/instance-type label.
	Name string
	// Labels are what a node of this type may carry, beyond what an offering decides. Most keys have one value; a
	// key with several (an operating system, say) means that the launch decides.
	Labels map[string][]string
	// Capacity is what the machine has; Overhead is what the kubelet, the system and eviction keep of it.
	Capacity corev1.ResourceList
	Overhead corev1.ResourceList
	// VolumeLimits is how many volumes a node of this type can attach, by the name of the CSI driver, as the driver
	// will report it in the node's CSINode. A driver that is not listed has no limit. Nil is fine: a node then shows
	// its limits only once it has joined.
	VolumeLimits map[string]int32
	// Offerings are the places and terms at which the type is sold.
	Offerings []Offering
}

// Allocatable is what pods may use of a node of this type.
func (t *InstanceType) Allocatable() corev1.ResourceList {
	out := t.Capacity.DeepCopy()
	for name, kept := range t.Overhead {
		if have, ok := out[name]; ok {
			have.Sub(kept)
			if have.Sign() < 0 {
				have.Set(0)
			}
			out[name] = have
		}
	}
	return out
}

// Offering is one way to buy an instance type.
type Offering struct {
	// Labels that follow from the choice: zone, capacity type, and what else the provider sells by.
	Labels map[string]string
	// Price in US dollars per hour.
	Price float64
	// PriceEstimated says that nobody has told the provider the price: it is inferred from what other types cost.
	PriceEstimated bool
	// Available is false while the cloud has no capacity for the offering.
	Available bool
	// ReservationCapacity is how many instances of a reserved offering are left; unused for others.
	ReservationCapacity int
	// ReservationID names the capacity that was paid for in advance; empty for offerings without bound. It must also be
	// the value of one of Labels, so that a claim can be pinned to it. Offerings that share a reservation share what is
	// left.
	ReservationID string
}

// Instance is a machine that the cloud runs for a claim.
type Instance struct {
	// ProviderID is what the node will carry in spec.providerID.
	ProviderID string
	// ClaimName and ClaimUID name the NodeClaim it was launched for, so that an orphan can be told from a node.
	ClaimName string
	ClaimUID  string
	// Type is the instance type's name; ImageID what it was booted from, if the provider has images.
	Type    string
	ImageID string
	// Labels the node will carry: those of its type and of its offering.
	Labels map[string]string
	// Annotations are what the provider wants to find on the claim later, such as which version of the NodeClass it was
	// launched from. Create fills them in; Get and List may leave them out.
	Annotations map[string]string
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	Price       float64
	// PriceEstimated is that of its offering.
	PriceEstimated bool
	CreatedAt      time.Time
	// Terminating is set from the first Delete until the instance is gone.
	Terminating bool
	// Unproven says that the instance carries the cluster's name, and nothing that tells the cluster from a namesake.
	// It is never ended unasked unless a claim accounts for it.
	Unproven bool
	// Refused are offerings that the cloud could not sell on the way to this one. Create may fill it in, so that the
	// next plan does not count on them.
	Refused []OfferingRef
}

// Owner is whose instance it is.
func (i *Instance) Owner() Owner { return Owner{ClaimName: i.ClaimName, ClaimUID: i.ClaimUID} }

// DeepCopy returns a copy that the caller may change.
func (i *Instance) DeepCopy() *Instance {
	out := *i
	out.Labels, out.Annotations, out.Refused = maps.Clone(i.Labels), maps.Clone(i.Annotations), slices.Clone(i.Refused)
	out.Capacity, out.Allocatable = i.Capacity.DeepCopy(), i.Allocatable.DeepCopy()
	return &out
}

// DriftReason is a CamelCase word for the Drifted condition, such as "AMIDrift". Empty means no drift.
type DriftReason string

// RepairPolicy names a node condition that, once it has held for Toleration, means the node is beyond repair.
type RepairPolicy struct {
	Type       corev1.NodeConditionType
	Status     corev1.ConditionStatus
	Toleration time.Duration
	// TerminationGracePeriod is how long the pods of such a node have to leave, at most, before they are made to: never
	// longer than the NodeClaim's own. Zero does not wait for them; nil leaves it to the NodeClaim.
	TerminationGracePeriod *time.Duration
}
