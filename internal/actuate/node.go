package actuate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// excludeFromBalancers keeps load balancers from sending traffic to a node that is on its way out.
const excludeFromBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"

// register joins a node to its claim and opens it for pods: labels, annotations, taints, finalizer and owner are put in
// place, and the taint that kept pods off until then goes.
func (a *Actor) register(ctx context.Context, c command.Register) (result, error) {
	claim := &v1.NodeClaim{}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: c.Claim}, claim); err != nil {
		return result{}, client.IgnoreNotFound(err)
	}
	nodeWrites, err := a.editNode(ctx, c.Node, func(node *corev1.Node) {
		joinNode(node, claim)
		if c.KeepFor != "" {
			node.Spec.Unschedulable = true
			node.Annotations[cluster.KeptForAnnotation] = c.KeepFor
		}
	})
	if err != nil {
		return result{}, err
	}
	claimWrites, err := a.editClaimStatus(ctx, c.Claim, func(claim *v1.NodeClaim) {
		claim.Status.NodeName = c.Node
		setCondition(claim, isTrue(v1.ConditionTypeRegistered, v1.ConditionTypeRegistered))
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeInitialized) {
			writeCondition(claim, metav1.Condition{Type: v1.ConditionTypeInitialized, Status: metav1.ConditionUnknown,
				Reason: "NodeNotReady", Message: "the node is not ready for pods yet"})
		}
	})
	return result{writes: append(nodeWrites, claimWrites...)}, err
}

func joinNode(node *corev1.Node, claim *v1.NodeClaim) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	_, again := node.Labels[v1.NodeRegisteredLabelKey] // a try before this one got as far as the node
	maps.Copy(node.Labels, claim.Labels)
	if ref := claim.Spec.NodeClassRef; ref != nil { // whose node it is must be seen even if it loses its claim
		node.Labels[v1.NodeClassLabelKey(ref.Group, ref.Kind)] = ref.Name
	}
	node.Labels[v1.NodeRegisteredLabelKey] = "true"
	for key, value := range claim.Annotations {
		switch key {
		case cluster.SeatsAnnotation, cluster.MadeForAnnotation, cluster.MoveAnnotation, cluster.ReplacesAnnotation,
			cluster.RestAnnotation, cluster.SavingRestAnnotation, cloudprovider.InterruptionAnnotation,
			corev1.LastAppliedConfigAnnotation:
			// the claim's own
		default:
			node.Annotations[key] = value
		}
	}
	if node.Labels[v1.NodeDoNotSyncTaintsLabelKey] != "true" {
		for _, t := range v1.CoreTaints(claim.Spec.Taints) {
			addTaint(node, t)
		}
		// What a startup taint was waiting for may have happened since then: it is put on once.
		for _, t := range v1.CoreTaints(claim.Spec.StartupTaints) {
			if !again {
				addTaint(node, t)
			}
		}
	}
	removeTaint(node, v1.UnregisteredNoExecuteTaint())
	if !slices.Contains(node.Finalizers, v1.TerminationFinalizer) {
		node.Finalizers = append(node.Finalizers, v1.TerminationFinalizer)
	}
	if !slices.ContainsFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == claim.UID }) {
		blocks := true
		node.OwnerReferences = append(node.OwnerReferences, metav1.OwnerReference{
			APIVersion: v1.GroupVersion().String(), Kind: "NodeClaim", Name: claim.Name, UID: claim.UID,
			BlockOwnerDeletion: &blocks,
		})
	}
}

// openNode lets kube-scheduler use a node that was kept for a move. A node that is not marked was not closed by us.
func (a *Actor) openNode(ctx context.Context, c command.Open) (result, error) {
	writes, err := a.editNode(ctx, c.Node, func(node *corev1.Node) {
		if node.Annotations[cluster.KeptForAnnotation] != "" {
			delete(node.Annotations, cluster.KeptForAnnotation)
			node.Spec.Unschedulable = false
		}
	})
	return result{writes: writes}, err
}

// initialize marks a node that all its pods may use.
func (a *Actor) initialize(ctx context.Context, c command.Initialize) (result, error) {
	nodeWrites, err := a.editNode(ctx, c.Node, func(node *corev1.Node) {
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[v1.NodeInitializedLabelKey] = "true"
	})
	if err != nil {
		return result{}, err
	}
	claimWrites, err := a.editClaimStatus(ctx, c.Claim, func(claim *v1.NodeClaim) {
		setCondition(claim, isTrue(v1.ConditionTypeInitialized, v1.ConditionTypeInitialized))
		setUnlessFalse(claim, v1.ConditionTypeConsistentStateFound)
	})
	return result{writes: append(nodeWrites, claimWrites...)}, err
}

// deleteNode begins the end of a node that nobody claims; the UID keeps a namesake safe.
func (a *Actor) deleteNode(ctx context.Context, c command.DeleteNode) (result, error) {
	if err := mustBeUnclaimed(ctx, a.Live, c.ProviderID, cloudprovider.Owner{}); err != nil {
		return result{}, fmt.Errorf("deleting node %s: %w", c.Node, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Node}}
	uid := types.UID(c.UID)
	err := a.Client.Delete(ctx, node, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return result{}, fmt.Errorf("deleting node %s: %w", c.Node, err)
	}
	return result{writes: []command.Write{{Kind: command.KindNode, Name: c.Node}}}, nil
}

func addTaint(node *corev1.Node, t corev1.Taint) {
	if !slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) }) {
		node.Spec.Taints = append(node.Spec.Taints, t)
	}
}

func removeTaint(node *corev1.Node, t corev1.Taint) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) })
}
