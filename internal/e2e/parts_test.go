package e2e

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selectedNode is kube-scheduler's word to a volume driver: make the volume where this node can use it.
const selectedNode = "volume.kubernetes.io/selected-node"

// provisioner is the volume driver: it makes a volume in the zone of the node that kube-scheduler has chosen for the
// claim's first pod.
func (w *world) provisioner(ctx context.Context) error {
	var claims corev1.PersistentVolumeClaimList
	if err := w.c.List(ctx, &claims); err != nil {
		return fmt.Errorf("listing volume claims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Annotations[selectedNode] == "" || claim.Spec.VolumeName != "" {
			continue
		}
		var node corev1.Node
		if err := w.c.Get(ctx, client.ObjectKey{Name: claim.Annotations[selectedNode]}, &node); err != nil {
			return fmt.Errorf("looking up the node of volume claim %s: %w", claim.Name, err)
		}
		err := w.c.Create(ctx, madeFor(claim, node.Labels[corev1.LabelTopologyZone]))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the volume of %s: %w", claim.Name, err)
		}
	}
	return nil
}

func madeFor(claim *corev1.PersistentVolumeClaim, zone string) *corev1.PersistentVolume {
	name := "made-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests,
			AccessModes:                   claim.Spec.AccessModes,
			StorageClassName:              *claim.Spec.StorageClassName,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: name},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{
				Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone,
						Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
				}}},
			},
		},
	}
}

// starter is the agent that takes the startup taint away.
func (w *world) starter(ctx context.Context) error {
	var list corev1.NodeList
	if err := w.c.List(ctx, &list); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range list.Items {
		node := &list.Items[i]
		starting := func(t corev1.Taint) bool { return t.Key == "example.com/agent-starting" }
		if !slices.ContainsFunc(node.Spec.Taints, starting) {
			continue
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, starting)
		// Somebody else may have changed the node; the next look settles it.
		if err := w.c.Update(ctx, node); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("taking the startup taint off node %s: %w", node.Name, err)
		}
	}
	return nil
}
