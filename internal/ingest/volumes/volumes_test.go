package volumes

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
)

func podMounting(uid string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)}}
	for _, name := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	return p
}

func claimBoundTo(name, pv string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Annotations: map[string]string{volume.AnnBindCompleted: "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv},
	}
}

func diskIn(name, zone string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelTopologyZone: zone}}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "disks", VolumeHandle: "handle-" + name}}}}
}

// What a pod asks for follows from its claim and the claim's volume, and the pod is known as long as it is there.
func TestNeedsFollowTheClaim(t *testing.T) {
	storage, mounts := NewStorage(), NewMounts()
	v := mounts.Read(podMounting("p", "data"), &podspec.Spec{})
	needs := func() *Needs {
		n := storage.NeedsOf(v)
		mounts.Apply(v, n)
		return n
	}
	if n := needs(); len(n.problems) != 1 || !slices.Equal(mounts.Unbound(), []string{"p"}) {
		t.Errorf("without a claim: %q, unbound %q", n.problems, mounts.Unbound())
	}
	storage.SetClaim(claimBoundTo("data", "pv"))
	storage.SetVolume(diskIn("pv", "a"))
	n := needs()
	if len(n.problems) > 0 || len(n.Places) != 1 || n.Places[0].Volume != "pv" || len(n.Attached) != 1 ||
		n.Attached[0] != (attachment{"disks", "handle-pv"}) {
		t.Errorf("bound: %+v", n)
	}
	if len(mounts.Unbound()) > 0 || !slices.Equal(mounts.DependingOn(storage.ClaimOf("pv")), []string{"p"}) {
		t.Error("the pod depends on its volume and on no other")
	}
	mounts.Drop("p")
	if mounts.Of("p") != nil || len(mounts.Users("default/data")) > 0 {
		t.Error("a pod that is gone is known still")
	}
}

// Many pods are left for later, once.
func TestManyVolumesAreLookedAtLater(t *testing.T) {
	mounts := NewMounts()
	var names, uids []string
	for range 10 {
		names = append(names, "claim")
	}
	for i := range refreshAtOnce/10 + 1 {
		uid := string(rune('a' + i))
		mounts.Read(podMounting(uid, names...), &podspec.Spec{})
		uids = append(uids, uid)
	}
	if mounts.Defer(uids[:3]) || !mounts.Defer(uids) {
		t.Error("few are looked at now, many are not")
	}
	if got := mounts.TakeDeferred(); !slices.Equal(got, slices.Sorted(slices.Values(uids))) {
		t.Errorf("later come %q", got)
	}
	if got := mounts.TakeDeferred(); len(got) > 0 {
		t.Errorf("twice come %q", got)
	}
}

func TestAttachmentsBearThePodsNames(t *testing.T) {
	storage, at := NewStorage(), NewAttachments()
	pv := "pv"
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}}
	if !at.Set(va) || at.Set(va) {
		t.Error("an attachment is news once")
	}
	staying := map[DiskOn]bool{}
	byNode := func() []string {
		return at.ByNode(storage.DiskName, func() map[DiskOn]bool { return staying })["n"]
	}
	if got := byNode(); !slices.Equal(got, []string{"pv"}) {
		t.Errorf("its volume is not known: %q", got)
	}
	storage.SetVolume(diskIn("pv", "a"))
	at.Recount()
	if got := byNode(); !slices.Equal(got, []string{"disks/handle-pv"}) {
		t.Errorf("its volume is known: %q", got)
	}
	staying[DiskOn{"n", "disks/handle-pv"}] = true
	at.Recount()
	if got := byNode(); got != nil {
		t.Errorf("it belongs to a pod that stays: %q", got)
	}
	if !at.Delete("x") || at.Delete("x") {
		t.Error("an attachment goes once")
	}
}

func TestTypesTellWhatNewNodesCanAttach(t *testing.T) {
	limits := NewAttachLimits()
	if types := map[string]map[string]int32{"m": {"disks": 26}}; !limits.SetTypes(types) || limits.SetTypes(types) {
		t.Error("a limit is news once")
	}
	labels := map[string]string{cluster.InstanceTypeLabel: "m"}
	n := &cluster.Node{Name: "n", Ours: true, Labels: cluster.LabelsOf(labels)}
	if got := limits.OfNode(n); !maps.Equal(got, map[string]int32{"disks": 26}) {
		t.Errorf("no driver has come up: %v", got)
	}
	limits.SetNode("n", map[string]int32{"disks": 20})
	if got := limits.OfNode(n); !maps.Equal(got, map[string]int32{"disks": 20}) {
		t.Errorf("its driver has come up: %v", got)
	}
	labels[cluster.InitializedLabel] = "true"
	n.Labels = cluster.LabelsOf(labels)
	limits.SetNode("n", nil)
	if got := limits.OfNode(n); len(got) > 0 {
		t.Errorf("all of its drivers have come up, and none has a limit: %v", got)
	}
}
