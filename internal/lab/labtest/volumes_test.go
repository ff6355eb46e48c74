package labtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attached lists the volumes that are attached, as node/volume.
func attached(t *testing.T, c client.Client) []string {
	t.Helper()
	var list storagev1.VolumeAttachmentList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range list.Items {
		if a.Status.Attached && a.Spec.Source.PersistentVolumeName != nil {
			out = append(out, a.Spec.NodeName+"/"+*a.Spec.Source.PersistentVolumeName)
		}
	}
	slices.Sort(out)
	return out
}

// places says where the volumes can be used: the label and the zones of each.
func places(t *testing.T, c client.Client) []string {
	t.Helper()
	var list corev1.PersistentVolumeList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, pv := range list.Items {
		if pv.Spec.NodeAffinity == nil {
			out = append(out, "everywhere")
			continue
		}
		e := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
		out = append(out, e.Key+"="+strings.Join(e.Values, ","))
	}
	slices.Sort(out)
	return out
}

func nodeOf(t *testing.T, c client.Client, namespace, pod string) string {
	t.Helper()
	var p corev1.Pod
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: pod}, &p); err != nil ||
		p.Status.Phase != corev1.PodRunning {
		return ""
	}
	return p.Spec.NodeName
}

// drain closes a node and deletes its pod, as kubectl drain does.
func drain(t *testing.T, c client.Client, node, namespace, pod string) {
	t.Helper()
	closed := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`))
	if err := c.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, closed); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: pod}}); err != nil {
		t.Fatal(err)
	}
}

// Volumes of EBS are made in the zone of their pod's node, are attached there, bring the pod back to the zone, and go
// with their claim.
func TestVolumesStayInTheirZone(t *testing.T) {
	l := New(t)
	c := l.Client(scheme.Scheme)
	create(t, c, zonedNode("a-1", "zone-a", 10), statefulSet(l.Namespace(), "db", "gp3", 1))
	within(t, time.Minute, "the pod and its volume", func() bool {
		return nodeOf(t, c, l.Namespace(), "db-0") == "a-1" && len(attached(t, c)) == 1
	})
	if got := strings.Join(places(t, c), " "); got != "topology.kubernetes.io/zone=zone-a" {
		t.Errorf("the volume is in %s", got)
	}
	// The node is drained; another zone has room, but not for this volume.
	create(t, c, zonedNode("b-1", "zone-b", 10))
	drain(t, c, "a-1", l.Namespace(), "db-0")
	within(t, time.Minute, "the volume to be detached", func() bool { return len(attached(t, c)) == 0 })
	if on := nodeOf(t, c, l.Namespace(), "db-0"); on != "" {
		t.Errorf("the pod runs on %s, where its volume is not", on)
	}
	if err := c.Delete(t.Context(), zonedNode("a-1", "zone-a", 10)); err != nil {
		t.Fatal(err)
	}
	create(t, c, zonedNode("a-2", "zone-a", 10))
	within(t, time.Minute, "the pod to come back to the zone of its volume", func() bool {
		on := attached(t, c)
		return nodeOf(t, c, l.Namespace(), "db-0") == "a-2" && len(on) == 1 && strings.HasPrefix(on[0], "a-2/")
	})
	if err := c.Delete(t.Context(), statefulSet(l.Namespace(), "db", "gp3", 1)); err != nil {
		t.Fatal(err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(), Name: "data-db-0"}}
	if err := c.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the volume to go with its claim", func() bool {
		return len(attached(t, c))+len(places(t, c)) == 0
	})
}

// A node takes no more volumes than its drivers say, and those of the default class count nowhere.
func TestNodesTakeSoManyVolumes(t *testing.T) {
	l := New(t)
	c := l.Client(scheme.Scheme)
	create(t, c, zonedNode("small", "zone-a", 2))
	within(t, time.Minute, "the drivers of the node", func() bool {
		var drivers storagev1.CSINode
		return c.Get(t.Context(), client.ObjectKey{Name: "small"}, &drivers) == nil &&
			*drivers.Spec.Drivers[0].Allocatable.Count == 2
	})
	old := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "as-older-drivers"}, Provisioner: "ebs.csi.aws.com",
		Parameters: map[string]string{"lab.tenon.sh/topology-key": "topology.ebs.csi.aws.com/zone"},
	}
	late := storagev1.VolumeBindingWaitForFirstConsumer
	old.VolumeBindingMode = &late
	create(t, c, old, statefulSet(l.Namespace(), "db", old.Name, 3), statefulSet(l.Namespace(), "web", "", 3))
	within(t, time.Minute, "the pods that the node takes", func() bool {
		return phases(t, c, l.Namespace(), "db")[corev1.PodRunning] == 2 && phases(t, c, l.Namespace(),
			"web")[corev1.PodRunning] == 3 && len(attached(t, c)) == 2
	})
	want := "everywhere everywhere everywhere topology.ebs.csi.aws.com/zone=zone-a topology.ebs.csi.aws.com/zone=zone-a"
	if got := strings.Join(places(t, c), " "); got != want {
		t.Errorf("the volumes are in %s, want %s", got, want)
	}
	create(t, c, zonedNode("next", "zone-a", 2))
	within(t, time.Minute, "the third pod on the next node", func() bool {
		return phases(t, c, l.Namespace(), "db")[corev1.PodRunning] == 3 && len(attached(t, c)) == 3
	})
}
