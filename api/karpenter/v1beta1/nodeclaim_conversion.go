package v1beta1

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/roundtrip"
)

var _ conversion.Convertible = &NodeClaim{}

// claimParts and hubClaimParts are what differs between the versions of a NodeClaim.
type (
	claimParts struct {
		Spec   NodeClaimSpec   `json:"spec"`
		Status NodeClaimStatus `json:"status"`
	}
	hubClaimParts struct {
		Spec   v1.NodeClaimSpec   `json:"spec"`
		Status v1.NodeClaimStatus `json:"status"`
	}
)

// ConvertTo makes a v1 NodeClaim of this one. In v1beta1 the pool says when its nodes expire, and in v1 the claim does.
// So expireAfter is not set unless it is known from v1: whoever knows the pool has to set it.
func (c *NodeClaim) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1.NodeClaim)
	if !ok {
		return fmt.Errorf("converting NodeClaim %s: %T is not a v1 NodeClaim", c.Name, hub)
	}
	in := c.DeepCopy()
	parts := claimToHub(&claimParts{in.Spec, in.Status})
	roundtrip.Restore(in.Annotations[roundtrip.V1OnlyAnnotationKey], parts)
	annotations := roundtrip.Annotate(in.Annotations, roundtrip.V1OnlyAnnotationKey, "")
	annotations = keepReference(annotations, in.Spec.NodeClassRef)
	annotations = keepKubelet(annotations, in.Spec.Kubelet)
	shown, _ := claimFromHub(parts, annotations)
	note, err := roundtrip.Note(shown, &claimParts{in.Spec, in.Status})
	if err != nil {
		return fmt.Errorf("converting NodeClaim %s to v1: %w", c.Name, err)
	}
	out.ObjectMeta = in.ObjectMeta
	out.Annotations = roundtrip.Annotate(annotations, roundtrip.V1Beta1OnlyAnnotationKey, note)
	out.Spec, out.Status = parts.Spec, parts.Status
	return nil
}

// ConvertFrom makes this NodeClaim of a v1 one.
func (c *NodeClaim) ConvertFrom(hub conversion.Hub) error {
	stored, ok := hub.(*v1.NodeClaim)
	if !ok {
		return fmt.Errorf("converting a NodeClaim: %T is not a v1 NodeClaim", hub)
	}
	in := stored.DeepCopy()
	parts, annotations := claimFromHub(&hubClaimParts{in.Spec, in.Status}, in.Annotations)
	roundtrip.Restore(in.Annotations[roundtrip.V1Beta1OnlyAnnotationKey], parts)
	note, err := roundtrip.Note(claimToHub(parts), &hubClaimParts{in.Spec, in.Status})
	if err != nil {
		return fmt.Errorf("converting NodeClaim %s to v1beta1: %w", in.Name, err)
	}
	c.ObjectMeta = in.ObjectMeta
	c.Annotations = roundtrip.Annotate(annotations, roundtrip.V1Beta1OnlyAnnotationKey, "")
	c.Annotations = roundtrip.Annotate(c.Annotations, roundtrip.V1OnlyAnnotationKey, note)
	c.Spec, c.Status = parts.Spec, parts.Status
	return nil
}

// claimToHub converts what v1 can say.
func claimToHub(in *claimParts) *hubClaimParts {
	ref := in.Spec.NodeClassRef
	if ref == nil {
		ref = &NodeClassReference{Name: DefaultNodeClassName}
	}
	return &hubClaimParts{
		Spec: v1.NodeClaimSpec{
			Taints: in.Spec.Taints, StartupTaints: in.Spec.StartupTaints, Requirements: in.Spec.Requirements,
			Resources: in.Spec.Resources, NodeClassRef: ref.toHub(),
		},
		Status: v1.NodeClaimStatus{
			NodeName: in.Status.NodeName, ProviderID: in.Status.ProviderID, ImageID: in.Status.ImageID,
			Capacity: in.Status.Capacity, Allocatable: in.Status.Allocatable, Conditions: in.Status.Conditions,
		},
	}
}

// claimFromHub converts what v1beta1 can say, and returns the annotations without those that it was taken from.
func claimFromHub(in *hubClaimParts, annotations map[string]string) (*claimParts, map[string]string) {
	kubelet, annotations := showKubelet(annotations)
	ref, annotations := showReference(annotations, in.Spec.NodeClassRef)
	return &claimParts{
		Spec: NodeClaimSpec{
			Taints: in.Spec.Taints, StartupTaints: in.Spec.StartupTaints, Requirements: in.Spec.Requirements,
			Resources: in.Spec.Resources, Kubelet: kubelet, NodeClassRef: ref,
		},
		Status: NodeClaimStatus{
			NodeName: in.Status.NodeName, ProviderID: in.Status.ProviderID, ImageID: in.Status.ImageID,
			Capacity: in.Status.Capacity, Allocatable: in.Status.Allocatable, Conditions: in.Status.Conditions,
		},
	}, annotations
}
