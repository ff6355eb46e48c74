package karpenter

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	peerv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	peer "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// cloud sells the types of a workload. Its nodes are of the kind of the peer's simulated cloud, whose labels the peer
// knows once that package is linked.
type cloud struct{ types []*peer.InstanceType }

// errNoCloud answers everything but questions about types: a scheduler asks for nothing else.
var errNoCloud = errors.New("there is no cloud behind the benchmark")

func newCloud(types []*cloudprovider.InstanceType) *cloud {
	c := &cloud{}
	for _, t := range types {
		c.types = append(c.types, typeOf(t))
	}
	return c
}

// typeOf gives an instance type as the peer's, with what it derives from it once computed already.
func typeOf(t *cloudprovider.InstanceType) *peer.InstanceType {
	zones, terms := make(map[string]bool), make(map[string]bool)
	out := &peer.InstanceType{
		Name: t.Name, Requirements: scheduling.NewRequirements(), Capacity: t.Capacity,
		Overhead: &peer.InstanceTypeOverhead{KubeReserved: t.Overhead},
	}
	for key, values := range t.Labels {
		out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...))
	}
	for _, o := range t.Offerings {
		out.Offerings = append(out.Offerings, &peer.Offering{Requirements: scheduling.NewLabelRequirements(o.Labels),
			Price: o.Price, Available: o.Available})
		if o.Available {
			zones[o.Labels[corev1.LabelTopologyZone]] = true
			terms[o.Labels[peerv1.CapacityTypeLabelKey]] = true
		}
	}
	out.Requirements.Add(
		scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn,
			slices.Sorted(maps.Keys(zones))...),
		scheduling.NewRequirement(peerv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn,
			slices.Sorted(maps.Keys(terms))...))
	out.Allocatable()
	return out
}

func (c *cloud) GetInstanceTypes(context.Context, *peerv1.NodePool) ([]*peer.InstanceType, error) {
	return c.types, nil
}

func (c *cloud) Create(context.Context, *peerv1.NodeClaim) (*peerv1.NodeClaim, error) {
	return nil, errNoCloud
}
func (c *cloud) Delete(context.Context, *peerv1.NodeClaim) error         { return errNoCloud }
func (c *cloud) Get(context.Context, string) (*peerv1.NodeClaim, error)  { return nil, errNoCloud }
func (c *cloud) List(context.Context) ([]*peerv1.NodeClaim, error)       { return nil, errNoCloud }
func (c *cloud) Reboot(context.Context, *peerv1.NodeClaim, string) error { return errNoCloud }
func (c *cloud) RepairPolicies() []peer.RepairPolicy                     { return nil }
func (c *cloud) Name() string                                            { return "bench" }
func (c *cloud) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.KWOKNodeClass{}}
}
func (c *cloud) IsDrifted(context.Context, *peerv1.NodeClaim) (peer.DriftReason, error) {
	return "", errNoCloud
}
