package volumes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations in which Kubernetes and the drivers talk about claims.
const (
	// SelectedNode is kube-scheduler's word on where a claim's first pod goes.
	SelectedNode = "volume.kubernetes.io/selected-node"
	// StorageProvisioner is the controller manager's word on who makes the volume.
	StorageProvisioner = "volume.kubernetes.io/storage-provisioner"
	// ProvisionedBy says on a volume who has made it.
	ProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Wants tells whether a claim waits for a volume that the lab makes.
func Wants(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil && Ours(claim.Annotations[StorageProvisioner])
}

// IsLate tells whether the volumes of a class are made where their first pod goes.
func IsLate(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// AnyZone is the zone of a volume that nobody has chosen one for: the first that
// the class allows, or the first that has a node. Nodes are sorted by name.
func AnyZone(class *storagev1.StorageClass, nodes []*corev1.Node) string {
	for _, term := range class.AllowedTopologies {
		for _, e := range term.MatchLabelExpressions {
			if (e.Key == corev1.LabelTopologyZone || e.Key == EBSZoneLabel) && len(e.Values) > 0 {
				return e.Values[0]
			}
		}
	}
	for _, node := range nodes {
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			return zone
		}
	}
	return ""
}

// For is the volume of a claim. Volumes of EBS are in the zone; an empty zone,
// as of nodes without a zone label, lets every node use them.
func For(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, zone string) *corev1.PersistentVolume {
	driver := claim.Annotations[StorageProvisioner]
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: NameFor(claim), Annotations: map[string]string{ProvisionedBy: driver}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			AccessModes:      claim.Spec.AccessModes,
			VolumeMode:       claim.Spec.VolumeMode,
			MountOptions:     class.MountOptions,
			StorageClassName: class.Name,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handleFor(claim)},
			},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			VolumeAttributesClassName:     claim.Spec.VolumeAttributesClassName,
		},
	}
	if class.ReclaimPolicy != nil {
		pv.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
	}
	if driver == EBSDriver && zone != "" {
		pv.Spec.NodeAffinity = within(class, zone)
	}
	return pv
}

// NameFor is the name of a claim's volume: a second try finds the first.
func NameFor(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// handleFor has the form of the ids of EBS.
func handleFor(claim *corev1.PersistentVolumeClaim) string {
	digits := strings.ReplaceAll(string(claim.UID), "-", "")
	return "vol-0" + digits[:min(16, len(digits))]
}

func within(class *storagev1.StorageClass, zone string) *corev1.VolumeNodeAffinity {
	key := class.Parameters[TopologyKeyParameter]
	if key == "" {
		key = corev1.LabelTopologyZone
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn,
			Values: []string{zone}}},
	}}}}
}

// IsOver tells whether a volume is to be deleted: its claim is gone, nobody keeps
// it, and it is attached nowhere.
func IsOver(pv *corev1.PersistentVolume, attachments []*storagev1.VolumeAttachment) bool {
	if pv.DeletionTimestamp != nil || pv.Status.Phase != corev1.VolumeReleased ||
		!Ours(pv.Annotations[ProvisionedBy]) ||
		pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return false
	}
	for _, a := range attachments {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && *name == pv.Name {
			return false
		}
	}
	return true
}
