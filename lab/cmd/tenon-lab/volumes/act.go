package volumes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	rules "github.com/tenon-sh/tenon/lab/internal/volumes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// provision makes the volume of a claim that waits for one.
func (p *player) provision(ctx context.Context, namespace, name string) error {
	claim, err := p.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil || !rules.Wants(claim) || claim.Spec.StorageClassName == nil {
		return err
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err // a class that comes later leads here again
	}
	zone, ready, err := p.zoneOf(ctx, claim, class)
	if err != nil || !ready {
		return err
	}
	_, err = p.api.CoreV1().PersistentVolumes().Create(ctx, rules.For(claim, class, zone), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the volume: %w", err)
	}
	return nil
}

// zoneOf finds out where a claim's volume is to be; ready is false as long as
// that is not known.
func (p *player) zoneOf(ctx context.Context, claim *corev1.PersistentVolumeClaim,
	class *storagev1.StorageClass) (zone string, ready bool, err error) {
	selected := claim.Annotations[rules.SelectedNode]
	if selected == "" {
		if rules.IsLate(class) {
			return "", false, nil
		}
		list, err := p.nodes.List(labels.Everything())
		if err != nil {
			return "", false, err
		}
		slices.SortFunc(list, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
		zone := rules.AnyZone(class, list)
		return zone, zone != "" || claim.Annotations[rules.StorageProvisioner] != rules.EBSDriver, nil
	}
	node, err := p.nodes.Get(selected)
	if apierrors.IsNotFound(err) {
		// The watch may be late: only the API server knows that the node is gone.
		node, err = p.api.CoreV1().Nodes().Get(ctx, selected, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return "", false, p.unselect(ctx, claim)
	}
	if err != nil {
		return "", false, err
	}
	return node.Labels[corev1.LabelTopologyZone], true, nil
}

// unselect asks kube-scheduler for another node: the one it chose is gone.
func (p *player) unselect(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:null}}}`, claim.ResourceVersion,
		rules.SelectedNode)
	_, err := p.api.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	return err
}

// release deletes a volume that nobody needs any more.
func (p *player) release(ctx context.Context, name string) error {
	pv, err := p.volumes.Get(name)
	if err != nil {
		return err
	}
	list, err := p.attachments.List(labels.Everything())
	if err != nil || !rules.IsOver(pv, list) {
		return err
	}
	return p.api.CoreV1().PersistentVolumes().Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pv.UID}})
}

// attach brings an attachment one step further; the change leads here again.
func (p *player) attach(ctx context.Context, name string) error {
	a, err := p.attachments.Get(name)
	if err != nil {
		return err
	}
	_, err = p.nodes.Get(a.Spec.NodeName)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	switch rules.Next(a, err == nil) {
	case rules.TakeHold:
		return p.setFinalizers(ctx, a, append(slices.Clone(a.Finalizers), rules.Hold(a.Spec.Attacher)))
	case rules.Attach:
		_, err := p.api.StorageV1().VolumeAttachments().Patch(ctx, name, types.MergePatchType,
			[]byte(`{"status":{"attached":true}}`), metav1.PatchOptions{}, "status")
		return err
	case rules.Detach:
		return p.setFinalizers(ctx, a, rules.WithoutHold(a))
	}
	return nil
}

func (p *player) setFinalizers(ctx context.Context, a *storagev1.VolumeAttachment, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": a.ResourceVersion,
		"finalizers": finalizers}})
	if err != nil {
		return fmt.Errorf("write the finalizers: %w", err)
	}
	_, err = p.api.StorageV1().VolumeAttachments().Patch(ctx, a.Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	return err
}

// describe says what a node can attach, as soon as it is there.
func (p *player) describe(ctx context.Context, name string) error {
	node, err := p.nodes.Get(name)
	if err != nil {
		return err
	}
	known, err := p.drivers.Get(name)
	switch {
	case err == nil && rules.IsOf(known, node):
		return nil
	case err == nil:
		return p.api.StorageV1().CSINodes().Delete(ctx, name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &known.UID}})
	case !apierrors.IsNotFound(err):
		return err
	}
	_, err = p.api.StorageV1().CSINodes().Create(ctx, rules.NodeDrivers(node), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // its change leads here again
	}
	return err
}

func (p *player) lookAtClaims() {
	list, err := p.claims.List(labels.Everything())
	if err != nil {
		return // a lister reads memory only
	}
	for _, c := range list {
		if rules.Wants(c) {
			p.queue.Add(key{claims, c.Namespace, c.Name})
		}
	}
}

func (p *player) lookAtVolumes() {
	list, err := p.volumes.List(labels.Everything())
	if err != nil {
		return
	}
	for _, pv := range list {
		if pv.Status.Phase == corev1.VolumeReleased {
			p.queue.Add(key{volumes, "", pv.Name})
		}
	}
}

func (p *player) lookAtAttachments() {
	list, err := p.attachments.List(labels.Everything())
	if err != nil {
		return
	}
	for _, a := range list {
		if !a.Status.Attached {
			p.queue.Add(key{attachments, "", a.Name})
		}
	}
}
