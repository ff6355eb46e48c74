package volumes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claimOf(driver string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data-db-0", UID: "0b2e7f1c-2f7b-4d3f-9d53-1f2f3c4d5e6f",
			Annotations: map[string]string{StorageProvisioner: driver},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("8Gi")},
			},
		},
	}
}

// affinity is the one place of a volume, as key=zone.
func affinity(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil {
		return ""
	}
	e := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	return e.Key + "=" + strings.Join(e.Values, ",")
}

func TestAClaimGetsAVolumeInTheZone(t *testing.T) {
	gp3, standard := Classes()[0], Classes()[1]
	old := gp3.DeepCopy()
	old.Parameters[TopologyKeyParameter] = EBSZoneLabel
	keep := corev1.PersistentVolumeReclaimRetain
	old.ReclaimPolicy = &keep
	for name, c := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		class  *storagev1.StorageClass
		zone   string
		where  string
		policy corev1.PersistentVolumeReclaimPolicy
	}{
		"of EBS": {claimOf(EBSDriver), gp3, "us-west-2b", "topology.kubernetes.io/zone=us-west-2b",
			corev1.PersistentVolumeReclaimDelete},
		"with the driver's label": {claimOf(EBSDriver), old, "us-west-2b", "topology.ebs.csi.aws.com/zone=us-west-2b",
			corev1.PersistentVolumeReclaimRetain},
		"nodes without a zone": {claimOf(EBSDriver), gp3, "", "", corev1.PersistentVolumeReclaimDelete},
		"plain": {claimOf(PlainDriver), standard, "us-west-2b", "",
			corev1.PersistentVolumeReclaimDelete},
	} {
		pv := For(c.claim, c.class, c.zone)
		if got := affinity(pv); got != c.where || pv.Spec.PersistentVolumeReclaimPolicy != c.policy {
			t.Errorf("%s: it is in %q and goes by %s, want %q and %s", name, got, pv.Spec.PersistentVolumeReclaimPolicy,
				c.where, c.policy)
		}
		if size := pv.Spec.Capacity[corev1.ResourceStorage]; size.String() != "8Gi" ||
			pv.Spec.ClaimRef.UID != c.claim.UID || pv.Spec.StorageClassName != c.class.Name {
			t.Errorf("%s: %+v is not the claim's volume", name, pv.Spec)
		}
		if h := pv.Spec.CSI.VolumeHandle; !strings.HasPrefix(h, "vol-0") || len(h) != len("vol-0123456789abcdef0") {
			t.Errorf("%s: the handle %s does not look like one of EBS", name, h)
		}
	}
}

func TestWhichClaimsWait(t *testing.T) {
	now := metav1.Now()
	bound, going := claimOf(EBSDriver), claimOf(EBSDriver)
	bound.Spec.VolumeName = "pv"
	going.DeletionTimestamp = &now
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"open": {claimOf(EBSDriver), true}, "of another driver": {claimOf("disk.example.com"), false},
		"bound": {bound, false}, "being deleted": {going, false},
	} {
		if got := Wants(c.claim); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAZoneThatNobodyChose(t *testing.T) {
	nodes := []*corev1.Node{
		{}, {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyZone: "b"}}},
	}
	class := &storagev1.StorageClass{}
	if got := AnyZone(class, nil); got != "" {
		t.Errorf("without nodes it is %q", got)
	}
	if got := AnyZone(class, nodes); got != "b" {
		t.Errorf("with a node in b it is %q", got)
	}
	class.AllowedTopologies = []corev1.TopologySelectorTerm{{
		MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: EBSZoneLabel, Values: []string{"c"}}},
	}}
	if got := AnyZone(class, nodes); got != "c" {
		t.Errorf("with a class that allows c it is %q", got)
	}
}

func TestWhenAVolumeGoes(t *testing.T) {
	pv := For(claimOf(EBSDriver), Classes()[0], "a")
	on := []*storagev1.VolumeAttachment{{
		Spec: storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}},
	}}
	if IsOver(pv, nil) {
		t.Error("it goes while its claim is there")
	}
	pv.Status.Phase = corev1.VolumeReleased
	if IsOver(pv, on) {
		t.Error("it goes while it is attached")
	}
	if !IsOver(pv, nil) {
		t.Error("it stays although its claim is gone")
	}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	if IsOver(pv, nil) {
		t.Error("it goes although it is to be kept")
	}
}

func TestTheLifeOfAnAttachment(t *testing.T) {
	now := metav1.Now()
	a := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{Attacher: EBSDriver}}
	expect := func(when string, nodeExists bool, want Step) {
		t.Helper()
		if got := Next(a, nodeExists); got != want {
			t.Errorf("%s: step %d, want %d", when, got, want)
		}
	}
	expect("new", true, TakeHold)
	expect("to a node that is not there", false, Nothing)
	a.Finalizers = []string{"example.com/other", "external-attacher/ebs-csi-aws-com"}
	expect("held", true, Attach)
	a.Status.Attached = true
	expect("attached", true, Nothing)
	a.DeletionTimestamp = &now
	expect("deleted, and its node too", false, Detach)
	if a.Finalizers = WithoutHold(a); len(a.Finalizers) != 1 || a.Finalizers[0] != "example.com/other" {
		t.Errorf("finalizers %v: another's is not ours to take", a.Finalizers)
	}
	expect("detached", true, Nothing)
	a = &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com"}}
	expect("of another driver", true, TakeHold)
}

func TestWhatANodeCanAttach(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}}
	count := func() int32 { return *NodeDrivers(node).Spec.Drivers[0].Allocatable.Count }
	if got := count(); got != 26 {
		t.Errorf("a usual node can attach %d", got)
	}
	node.Annotations = map[string]string{LimitName: "12"}
	if got := count(); got != 12 {
		t.Errorf("a machine that says 12 can attach %d", got)
	}
	node.Labels = map[string]string{LimitName: "2"}
	if got := count(); got != 2 {
		t.Errorf("with the label 2 it can attach %d", got)
	}
	node.Spec.ProviderID = "aws:///us-west-2a/i-0123"
	drivers := NodeDrivers(node)
	if id := drivers.Spec.Drivers[0].NodeID; id != "i-0123" {
		t.Errorf("the driver calls the node %s", id)
	}
	other := node.DeepCopy()
	other.UID = "2"
	if !IsOf(drivers, node) || IsOf(drivers, other) {
		t.Error("a CSINode is of the node that it was made for, and of no later one")
	}
}
