package kwok

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Karpenter's own kwok provider keeps no records: its instance is the Node, whose provider ID is kwok:// and the Node's
// name. A cluster that Karpenter ran has such nodes, and they are instances here, too. Nothing is written on them until
// one is ended, so that Karpenter finds them unchanged.

const (
	// partitionLabelKey is on every Node that Karpenter's provider makes.
	partitionLabelKey = "kwok-partition"
	// EndedAnnotationKey marks a Node of Karpenter's provider whose machine was ended. The Node itself goes when its
	// finalizers let it.
	EndedAnnotationKey = "tenon.sh/kwok-ended"
)

// karpenterNodes are the instances that Karpenter's provider launched.
type karpenterNodes struct{ api API }

// get finds the Node of a provider ID; NotFound once its machine was ended.
func (s karpenterNodes) get(ctx context.Context, providerID string) (*corev1.Node, error) {
	name, simulated := strings.CutPrefix(providerID, providerIDPrefix)
	if !simulated || name == "" {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	found := &corev1.Node{}
	err := s.api.Get(ctx, types.NamespacedName{Name: name}, found)
	if apierrors.IsNotFound(err) || err == nil && !isKarpenters(found) {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	if err != nil {
		return nil, cloudError("getting node "+name, err)
	}
	return found, nil
}

// isKarpenters reports whether the Node is an instance of Karpenter's provider that runs.
func isKarpenters(n *corev1.Node) bool {
	return n.Labels[partitionLabelKey] != "" && n.Spec.ProviderID == providerIDPrefix+n.Name &&
		n.Annotations[EndedAnnotationKey] == ""
}

// list gives all instances.
func (s karpenterNodes) list(ctx context.Context) ([]*cloudprovider.Instance, error) {
	found := &corev1.NodeList{}
	if err := s.api.List(ctx, found, client.HasLabels{partitionLabelKey}); err != nil {
		return nil, cloudError("listing the nodes that Karpenter launched", err)
	}
	var out []*cloudprovider.Instance
	for i := range found.Items {
		if !isKarpenters(&found.Items[i]) {
			continue
		}
		instance, err := s.instance(ctx, &found.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, instance)
	}
	return out, nil
}

// instance is what the Node says of its machine.
func (s karpenterNodes) instance(ctx context.Context, n *corev1.Node) (*cloudprovider.Instance, error) {
	owner, err := s.ownerOf(ctx, n)
	if err != nil {
		return nil, err
	}
	price, err := strconv.ParseFloat(n.Labels[kwokv1alpha1.InstancePriceLabelKey], 64)
	if err != nil { // somebody has changed the label: only the price of the instance is unknown
		price = 0
	}
	return &cloudprovider.Instance{
		ProviderID: n.Spec.ProviderID, ClaimName: owner.ClaimName, ClaimUID: owner.ClaimUID,
		Type: n.Labels[corev1.LabelInstanceTypeStable], Labels: n.Labels, Capacity: n.Status.Capacity,
		Allocatable: n.Status.Allocatable,
		Price:       price, CreatedAt: n.CreationTimestamp.Time,
	}, nil
}

// ownerOf is the NodeClaim that the Node was launched for: its owner once it is registered. Before, its hostname is the
// name of the claim, which may be gone, or be another of the same name.
func (s karpenterNodes) ownerOf(ctx context.Context, n *corev1.Node) (cloudprovider.Owner, error) {
	for _, o := range n.OwnerReferences {
		if o.Kind == "NodeClaim" {
			return cloudprovider.Owner{ClaimName: o.Name, ClaimUID: string(o.UID)}, nil
		}
	}
	owner := cloudprovider.Owner{ClaimName: n.Labels[corev1.LabelHostname]}
	if owner.ClaimName == "" {
		return owner, nil
	}
	claim := &v1.NodeClaim{}
	err := s.api.Get(ctx, types.NamespacedName{Name: owner.ClaimName}, claim)
	switch {
	case apierrors.IsNotFound(err):
		return owner, nil
	case err != nil:
		return owner, cloudError("getting NodeClaim "+owner.ClaimName, err)
	case claim.Status.ProviderID == n.Spec.ProviderID:
		owner.ClaimUID = string(claim.UID)
	}
	return owner, nil
}

// end ends the machine of a Node. That it was ended is said last, so that an end which failed half way is repeated.
func (s karpenterNodes) end(ctx context.Context, n *corev1.Node, owner cloudprovider.Owner) error {
	launchedFor, err := s.ownerOf(ctx, n)
	if err != nil {
		return err
	}
	if !owner.Of(launchedFor.ClaimUID) {
		return &cloudprovider.NotOwnedError{ProviderID: n.Spec.ProviderID, Want: owner, Owner: launchedFor}
	}
	if n.DeletionTimestamp.IsZero() {
		err := s.api.Delete(ctx, n, client.Preconditions{UID: &n.UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return cloudError("deleting node "+n.Name, err)
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, n.UID, EndedAnnotationKey)
	err = s.api.Patch(ctx, n, client.RawPatch(types.MergePatchType, []byte(patch)))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return cloudError("noting that the machine of node "+n.Name+" was ended", err)
	}
	return nil
}
