package ingest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// claimEntry keeps the resource lists beside the claim, to measure them again when a new resource is asked for.
type claimEntry struct {
	claim                 *cluster.Claim
	capacity, allocatable corev1.ResourceList
}

// SetClaim takes in a NodeClaim as the API server shows it.
func (b *Book) SetClaim(claim *v1.NodeClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &cluster.Claim{
		Name: claim.Name, UID: string(claim.UID), Version: claim.ResourceVersion, Pool: claim.Labels[v1.NodePoolLabelKey],
		Created: claim.CreationTimestamp.Time, Deleting: when(claim.DeletionTimestamp),
		Finalized:  slices.Contains(claim.Finalizers, v1.TerminationFinalizer),
		ProviderID: claim.Status.ProviderID, NodeName: claim.Status.NodeName,
		Labels: cluster.LabelsOf(claim.Labels), Requirements: requirementsOf(claim.Spec.Requirements),
		Taints: taintsOf(claim.Spec.Taints), StartupTaints: taintsOf(claim.Spec.StartupTaints),
		Capacity: b.measure(claim.Status.Capacity), Allocatable: b.measure(claim.Status.Allocatable),
		Conditions:   conditionsOf(claim.Status.Conditions),
		LastPodEvent: claim.Status.LastPodEventTime.Time, SavedPodEvent: claim.Status.LastPodEventTime.Time,
		DoNotDisrupt: claim.Annotations[v1.DoNotDisruptAnnotationKey] == "true",
	}
	if ref := claim.Spec.NodeClassRef; ref != nil {
		c.Foreign = !b.kinds[cluster.ClassRef{Group: ref.Group, Kind: ref.Kind}]
	}
	c.Requests, _ = b.demand(claim.Spec.Resources.Requests, nil)
	for dim := resource.Pods + 1; dim < resource.Size; dim++ {
		if c.Requests[dim] > 0 {
			c.Wants = append(c.Wants, dim)
		}
	}
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		c.HasTerminationGrace, c.TerminationGrace = true, grace.Duration
	}
	// Seats that can't be read reserve nothing; the pods then find the node's room like any other pod.
	c.Seats, _ = cluster.ParseSeats(claim.Annotations[cluster.SeatsAnnotation])
	b.claims[c.Name] = &claimEntry{claim: c, capacity: claim.Status.Capacity, allocatable: claim.Status.Allocatable}
	b.settle(command.KindClaim, c.Name)
	b.touch()
}

// DeleteClaim takes in that a claim is gone.
func (b *Book) DeleteClaim(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.claims, name)
	b.settle(command.KindClaim, name)
	b.touch()
}

// requirementsOf intersects the items of an API list, key by key.
func requirementsOf(list []v1.NodeSelectorRequirementWithMinValues) require.Set {
	var set require.Set
	for _, r := range list {
		values, ok := require.Make(require.Operator(r.Operator), r.Values)
		if !ok {
			values = require.Values{} // validation has refused it; nothing may slip through
		}
		key := validate.NormalizeKey(r.Key)
		set = set.With(key, values)
		if r.MinValues != nil {
			set = set.WithMin(key, *r.MinValues)
		}
	}
	return set
}

func taintsOf(list []v1.Taint) []cluster.Taint {
	var out []cluster.Taint
	for _, t := range list {
		out = append(out, cluster.Taint{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	return out
}

func conditionsOf(list []metav1.Condition) []cluster.Condition {
	var out []cluster.Condition
	for _, c := range list {
		out = append(out, cluster.Condition{
			Type: c.Type, Status: cluster.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			Since: c.LastTransitionTime.Time, Generation: c.ObservedGeneration,
		})
	}
	return out
}
