package e2e

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// holding is a finalizer with which a test keeps a volume from being detached.
const holding = "test.tenon.sh/holding"

// TestStatefulSetKeepsItsVolumes: each pod's volume is made in the zone of the node that was made for it. When a node
// is deleted, its machine ends only once the volume is detached, and the pod comes back in the zone of its volume.
func TestStatefulSetKeepsItsVolumes(t *testing.T) {
	w := newAWSWorld(t)
	w.create(ec2Class("default"), ec2Pool("default"))
	w.run()
	w.apply("aws/statefulset")
	w.eventually(w.allRunning(3))
	w.eventually(w.volumesAreWithPods)
	zones := map[string]string{}
	for _, p := range w.pods() {
		zones[w.node(p.Spec.NodeName).Labels[corev1.LabelTopologyZone]] = p.Name
	}
	if len(zones) != 3 {
		t.Fatalf("the pods are in %v: want one in each zone", zones)
	}
	w.step("three pods run with their volumes")

	var pod corev1.Pod
	w.must(w.c.Get(w.ctx, client.ObjectKey{Namespace: w.lab.Namespace(), Name: "db-1"}, &pod))
	left := w.node(pod.Spec.NodeName)
	w.holdVolumes(left.Name, true)
	w.must(w.c.Delete(w.ctx, &left))
	w.eventually(func() string { return w.waitsForVolumes(left.Name) })
	if w.node(left.Name).Name == "" || !slices.ContainsFunc(w.alive(), func(i cloud.Instance) bool {
		return i.PrivateDNS == left.Name
	}) {
		t.Error("the machine is gone although its volume is attached")
	}
	w.step("the machine waits for its volume")
	w.holdVolumes(left.Name, false)
	w.eventually(func() string {
		if w.node(left.Name).Name != "" {
			return "node " + left.Name + " is still there"
		}
		return w.allRunning(3)()
	})
	w.eventually(w.volumesAreWithPods)
	w.must(w.c.Get(w.ctx, client.ObjectKey{Namespace: w.lab.Namespace(), Name: "db-1"}, &pod))
	if was, is := left.Labels[corev1.LabelTopologyZone],
		w.node(pod.Spec.NodeName).Labels[corev1.LabelTopologyZone]; was != is {
		t.Errorf("db-1 was in %s and came back in %s", was, is)
	}
	w.step("the pod is back")

	w.must(w.c.Delete(w.ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(),
		Name: "db"}}))
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(w.lab.Namespace())))
	w.eventually(func() string {
		if n := len(w.volumes()); n > 0 {
			return fmt.Sprintf("%d volumes are left", n)
		}
		return w.nothingLeft()
	})
}

// node is empty if there is none of that name.
func (w *world) node(name string) corev1.Node {
	w.Helper()
	var n corev1.Node
	w.must(client.IgnoreNotFound(w.c.Get(w.ctx, client.ObjectKey{Name: name}, &n)))
	return n
}

func (w *world) volumes() []corev1.PersistentVolume {
	w.Helper()
	var list corev1.PersistentVolumeList
	w.must(w.c.List(w.ctx, &list))
	return list.Items
}

func (w *world) attachments() []storagev1.VolumeAttachment {
	w.Helper()
	var list storagev1.VolumeAttachmentList
	w.must(w.c.List(w.ctx, &list))
	return list.Items
}

// volumesAreWithPods says which pod's volume is not attached to its node, or is in another zone.
func (w *world) volumesAreWithPods() string {
	w.Helper()
	for _, p := range w.pods() {
		var claim corev1.PersistentVolumeClaim
		w.must(w.c.Get(w.ctx, client.ObjectKey{Namespace: p.Namespace, Name: "data-" + p.Name}, &claim))
		var pv corev1.PersistentVolume
		w.must(w.c.Get(w.ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &pv))
		zone := w.node(p.Spec.NodeName).Labels[corev1.LabelTopologyZone]
		if in := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values; !slices.Equal(in,
			[]string{zone}) {
			return fmt.Sprintf("pod %s is in %s, its volume in %v", p.Name, zone, in)
		}
		if !slices.ContainsFunc(w.attachments(), func(a storagev1.VolumeAttachment) bool {
			return a.Status.Attached && a.Spec.NodeName == p.Spec.NodeName &&
				*a.Spec.Source.PersistentVolumeName == pv.Name
		}) {
			return fmt.Sprintf("the volume of pod %s is not attached to %s", p.Name, p.Spec.NodeName)
		}
	}
	return ""
}

// holdVolumes keeps the volumes of a node attached, or lets them go.
func (w *world) holdVolumes(node string, hold bool) {
	w.Helper()
	for _, a := range w.attachments() {
		if a.Spec.NodeName != node {
			continue
		}
		before := a.DeepCopy()
		if hold {
			controllerutil.AddFinalizer(&a, holding)
		} else {
			controllerutil.RemoveFinalizer(&a, holding)
		}
		w.must(w.c.Patch(w.ctx, &a, client.MergeFrom(before)))
	}
}

// waitsForVolumes says what a node that is on its way out waits for, if it is not its volumes.
func (w *world) waitsForVolumes(node string) string {
	w.Helper()
	if !slices.ContainsFunc(w.attachments(), func(a storagev1.VolumeAttachment) bool {
		return a.Spec.NodeName == node && a.DeletionTimestamp != nil
	}) {
		return "no volume of " + node + " is being detached"
	}
	for _, c := range w.claims() {
		if c.Status.NodeName != node {
			continue
		}
		for _, condition := range c.Status.Conditions {
			if condition.Type == v1.ConditionTypeVolumesDetached && condition.Reason == "AwaitingVolumeDetachment" {
				return ""
			}
		}
		return fmt.Sprintf("the conditions of NodeClaim %s are %v", c.Name, c.Status.Conditions)
	}
	return "no NodeClaim has node " + node
}
