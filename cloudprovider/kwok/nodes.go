package kwok

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// nodes does to Node objects what kubelets and a cloud controller manager do on other clouds.
type nodes struct {
	api API
}

// node is the Node that the instance's kubelet would register. As every kubelet does, it says from the beginning that
// it is not ready: of a node that says nothing Kubernetes thinks well, and takes away the taint with which it was
// created.
func node(r *record) *corev1.Node {
	labels := maps.Clone(r.NodeLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, r.Labels)
	labels[corev1.LabelHostname] = hostname(r.nodeName())
	labels[kwokv1alpha1.KwokNodeLabelKey] = kwokv1alpha1.KwokNodeLabelValue
	labels[kwokv1alpha1.InstancePriceLabelKey] = fmt.Sprintf("%f", r.Price)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        r.nodeName(),
			Labels:      labels,
			Annotations: map[string]string{kwokv1alpha1.KwokNodeLabelKey: kwokv1alpha1.KwokNodeLabelValue},
		},
		Spec: corev1.NodeSpec{
			ProviderID: r.providerID(),
			Taints:     []corev1.Taint{v1.UnregisteredNoExecuteTaint()},
		},
		Status: corev1.NodeStatus{
			Capacity:    r.Capacity,
			Allocatable: r.Allocatable,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
				Message:           "the machine is booting",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
		},
	}
}

// hostname is the node's name as far as a label can hold it.
func hostname(name string) string {
	return strings.TrimRight(name[:min(len(name), 63)], "-.")
}

// add makes the instance's Node, unless it is there.
func (s nodes) add(ctx context.Context, r *record) error {
	err := s.api.Create(ctx, node(r))
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return cloudError("registering node "+r.nodeName(), err)
	}
	mine, err := s.get(ctx, r)
	if err == nil && mine == nil {
		err = fmt.Errorf("registering node %s: another machine's Node has the name; it must go first", r.nodeName())
	}
	return err
}

// get returns the instance's Node; nil if there is none.
func (s nodes) get(ctx context.Context, r *record) (*corev1.Node, error) {
	found := &corev1.Node{}
	err := s.api.Get(ctx, types.NamespacedName{Name: r.nodeName()}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, cloudError("getting node "+r.nodeName(), err)
	}
	if found.Spec.ProviderID != r.providerID() {
		return nil, nil
	}
	return found, nil
}

// remove asks for the deletion of the instance's Node, as a cloud controller manager does once the machine is gone.
// Finalizers may hold the Node a while longer.
func (s nodes) remove(ctx context.Context, r *record) error {
	found, err := s.get(ctx, r)
	if err != nil || found == nil || !found.DeletionTimestamp.IsZero() {
		return err
	}
	err = s.api.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return cloudError("deleting node "+r.nodeName(), err)
	}
	return nil
}

// silence takes the Node away from kwok, so that its heartbeats stop as those of a dead machine do.
func (s nodes) silence(ctx context.Context, r *record) error {
	found, err := s.get(ctx, r)
	if err != nil || found == nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%[1]q:null},"annotations":{%[1]q:null}}}`,
		kwokv1alpha1.KwokNodeLabelKey)
	err = s.api.Patch(ctx, found, client.RawPatch(types.MergePatchType, []byte(patch)))
	if err != nil && !apierrors.IsNotFound(err) {
		return cloudError("silencing node "+r.nodeName(), err)
	}
	return nil
}
