package v1beta1

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/roundtrip"
)

var _ conversion.Convertible = &NodePool{}

// poolParts and hubPoolParts are what differs between the versions of a NodePool.
type (
	poolParts struct {
		Spec   NodePoolSpec   `json:"spec"`
		Status NodePoolStatus `json:"status"`
	}
	hubPoolParts struct {
		Spec   v1.NodePoolSpec   `json:"spec"`
		Status v1.NodePoolStatus `json:"status"`
	}
)

// ConvertTo makes a v1 NodePool of this one.
func (p *NodePool) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1.NodePool)
	if !ok {
		return fmt.Errorf("converting NodePool %s: %T is not a v1 NodePool", p.Name, hub)
	}
	in := p.DeepCopy()
	parts := poolToHub(&poolParts{in.Spec, in.Status})
	roundtrip.Restore(in.Annotations[roundtrip.V1OnlyAnnotationKey], parts)
	annotations := roundtrip.Annotate(in.Annotations, roundtrip.V1OnlyAnnotationKey, "")
	annotations = keepReference(annotations, in.Spec.Template.Spec.NodeClassRef)
	annotations = keepKubelet(annotations, in.Spec.Template.Spec.Kubelet)
	shown, _ := poolFromHub(parts, annotations)
	note, err := roundtrip.Note(shown, &poolParts{in.Spec, in.Status})
	if err != nil {
		return fmt.Errorf("converting NodePool %s to v1: %w", p.Name, err)
	}
	out.ObjectMeta = in.ObjectMeta
	out.Annotations = roundtrip.Annotate(annotations, roundtrip.V1Beta1OnlyAnnotationKey, note)
	out.Spec, out.Status = parts.Spec, parts.Status
	return nil
}

// ConvertFrom makes this NodePool of a v1 one.
func (p *NodePool) ConvertFrom(hub conversion.Hub) error {
	stored, ok := hub.(*v1.NodePool)
	if !ok {
		return fmt.Errorf("converting a NodePool: %T is not a v1 NodePool", hub)
	}
	in := stored.DeepCopy()
	parts, annotations := poolFromHub(&hubPoolParts{in.Spec, in.Status}, in.Annotations)
	roundtrip.Restore(in.Annotations[roundtrip.V1Beta1OnlyAnnotationKey], parts)
	if parts.Spec.Template.Spec.NodeClassRef != nil {
		// The reference was changed in v1. It is shown where it belongs, and nowhere else.
		parts.Spec.NodeClassRef = nil
	}
	note, err := roundtrip.Note(poolToHub(parts), &hubPoolParts{in.Spec, in.Status})
	if err != nil {
		return fmt.Errorf("converting NodePool %s to v1beta1: %w", in.Name, err)
	}
	p.ObjectMeta = in.ObjectMeta
	p.Annotations = roundtrip.Annotate(annotations, roundtrip.V1Beta1OnlyAnnotationKey, "")
	p.Annotations = roundtrip.Annotate(p.Annotations, roundtrip.V1OnlyAnnotationKey, note)
	p.Spec, p.Status = parts.Spec, parts.Status
	return nil
}

// poolToHub converts what v1 can say.
func poolToHub(in *poolParts) *hubPoolParts {
	from := &in.Spec.Template.Spec
	ref := from.NodeClassRef
	if ref == nil {
		ref = in.Spec.NodeClassRef
	}
	if ref == nil {
		ref = &NodeClassReference{Name: DefaultNodeClassName}
	}
	out := &hubPoolParts{
		Spec: v1.NodePoolSpec{
			Template: v1.NodeClaimTemplate{
				ObjectMeta: in.Spec.Template.ObjectMeta,
				Spec: v1.NodeClaimTemplateSpec{
					Taints: from.Taints, StartupTaints: from.StartupTaints, Requirements: from.Requirements,
					NodeClassRef: ref.toHub(), ExpireAfter: in.Spec.Disruption.ExpireAfter,
				},
			},
			Disruption: disruptionToHub(in.Spec.Disruption),
			Limits:     in.Spec.Limits, Weight: in.Spec.Weight,
		},
		Status: v1.NodePoolStatus{Resources: in.Status.Resources, Conditions: in.Status.Conditions},
	}
	if out.Spec.Template.Spec.ExpireAfter.IsZero() {
		out.Spec.Template.Spec.ExpireAfter = defaultExpiry()
	}
	return out
}

// poolFromHub converts what v1beta1 can say, and returns the annotations without those that it was taken from.
func poolFromHub(in *hubPoolParts, annotations map[string]string) (*poolParts, map[string]string) {
	from := &in.Spec.Template.Spec
	kubelet, annotations := showKubelet(annotations)
	ref, annotations := showReference(annotations, from.NodeClassRef)
	disruption := disruptionFromHub(in.Spec.Disruption)
	disruption.ExpireAfter = from.ExpireAfter
	return &poolParts{
		Spec: NodePoolSpec{
			Template: NodeClaimTemplate{
				ObjectMeta: in.Spec.Template.ObjectMeta,
				Spec: NodeClaimTemplateSpec{
					Taints: from.Taints, StartupTaints: from.StartupTaints, Requirements: from.Requirements,
					Kubelet: kubelet, NodeClassRef: ref,
				},
			},
			Disruption: disruption,
			Limits:     in.Spec.Limits, Weight: in.Spec.Weight,
		},
		Status: NodePoolStatus{Resources: in.Status.Resources, Conditions: in.Status.Conditions},
	}, annotations
}

// defaultExpiry is what both versions take for an expireAfter that is not set. The API server fills it in; a manifest
// that is converted elsewhere may lack it.
func defaultExpiry() v1.NillableDuration {
	return v1.NillableDuration{Duration: new(720 * time.Hour), Raw: "720h"}
}

// disruptionToHub converts the settings of disruption but for the expiry, which v1 has in the template.
func disruptionToHub(in Disruption) v1.Disruption {
	out := v1.Disruption{ConsolidateAfter: in.ConsolidateAfter, Budgets: in.Budgets}
	switch in.ConsolidationPolicy {
	case ConsolidationPolicyWhenUnderutilized, "":
		out.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
	case ConsolidationPolicyWhenIdle:
		out.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmpty
	default:
		out.ConsolidationPolicy = v1.ConsolidationPolicy(in.ConsolidationPolicy)
	}
	if out.ConsolidateAfter.IsZero() {
		out.ConsolidateAfter = atOnce()
	}
	return out
}

// disruptionFromHub is disruptionToHub the other way round. Balanced looks for savings, too, so that is what it shows
// as.
func disruptionFromHub(in v1.Disruption) Disruption {
	out := Disruption{ConsolidateAfter: in.ConsolidateAfter, Budgets: in.Budgets}
	switch in.ConsolidationPolicy {
	case v1.ConsolidationPolicyWhenEmptyOrUnderutilized, v1.ConsolidationPolicyBalanced:
		out.ConsolidationPolicy = ConsolidationPolicyWhenUnderutilized
		if in.ConsolidateAfter.String() == atOnce().String() {
			// Older clients refuse a wait beside WhenUnderutilized.
			out.ConsolidateAfter = v1.NillableDuration{}
		}
	default:
		out.ConsolidationPolicy = ConsolidationPolicy(in.ConsolidationPolicy)
	}
	return out
}

// atOnce is the wait of a pool that sets none.
func atOnce() v1.NillableDuration {
	return v1.NillableDuration{Duration: new(time.Duration(0)), Raw: "0s"}
}
