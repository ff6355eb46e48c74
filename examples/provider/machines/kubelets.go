package machines

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Kubelets plays what real machines do by themselves: their kubelets make a Node of each. A provider of yours has
// nothing like it. On the lab kwok takes such a Node over from there.
type Kubelets struct {
	Fleet *Fleet
	API   client.Client
	// Node is the Node that a machine makes of itself.
	Node func(*Machine) *corev1.Node
}

// often is how often is looked.
const often = 200 * time.Millisecond

// Start looks again and again, until the context ends.
func (k *Kubelets) Start(ctx context.Context) error {
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the pretend kubelets are in trouble; trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(often):
		}
	}
}

// look makes the Nodes that are missing and deletes those whose machine is gone.
func (k *Kubelets) look(ctx context.Context) error {
	all, err := k.Fleet.List()
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := k.API.List(ctx, nodes); err != nil {
		return err
	}
	there, runs := map[string]bool{}, map[string]bool{}
	for i := range nodes.Items {
		there[nodes.Items[i].Spec.ProviderID] = true
	}
	for _, m := range all {
		node := k.Node(m)
		if node == nil {
			continue
		}
		runs[node.Spec.ProviderID] = true
		if there[node.Spec.ProviderID] {
			continue
		}
		if err := k.API.Create(ctx, asItBoots(node)); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Labels[pretend] != "true" || runs[node.Spec.ProviderID] || node.DeletionTimestamp != nil {
			continue
		}
		if err := k.API.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

const (
	// playedBy with the value "fake" tells kwok to play the kubelet of a Node.
	playedBy = "kwok.x-k8s.io/node"
	// pretend marks the Nodes of this fleet: the lab may have others.
	pretend = "fleet.example.com/pretend"
)

// asItBoots is the Node as a kubelet first makes it: it says that it is not ready yet.
func asItBoots(node *corev1.Node) *corev1.Node {
	node.Labels[playedBy], node.Labels[pretend] = "fake", "true"
	node.Annotations = map[string]string{playedBy: "fake"}
	node.Labels[corev1.LabelHostname] = node.Name
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
		Message:           "the machine is booting",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	return node
}
