package decode

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tooLongLabel is what a claim's selector asks for instead of something that was too long to be kept. No volume has it.
const tooLongLabel = "tenon.sh/too-long"

// stripStorage reduces what volumes are about; it reports whether the object is of such a kind.
func stripStorage(o client.Object) bool {
	switch w := o.(type) {
	case *corev1.PersistentVolumeClaim:
		stripVolumeClaim(w)
	case *corev1.PersistentVolume:
		stripVolume(w)
	case *storagev1.StorageClass:
		*w = storagev1.StorageClass{
			ObjectMeta:        metaOf(&w.ObjectMeta),
			Provisioner:       w.Provisioner,
			VolumeBindingMode: w.VolumeBindingMode,
			AllowedTopologies: w.AllowedTopologies,
		}
	case *storagev1.CSINode:
		drivers := keptDrivers(w.Spec.Drivers)
		*w = storagev1.CSINode{ObjectMeta: metaOf(&w.ObjectMeta), Spec: storagev1.CSINodeSpec{Drivers: drivers}}
	case *storagev1.VolumeAttachment:
		stripAttachment(w)
	default:
		return false
	}
	return true
}

// stripAttachment keeps which volume is attached to which node, and by which driver.
func stripAttachment(a *storagev1.VolumeAttachment) {
	source := storagev1.VolumeAttachmentSource{PersistentVolumeName: a.Spec.Source.PersistentVolumeName}
	if inline := a.Spec.Source.InlineVolumeSpec; inline != nil {
		source.InlineVolumeSpec = &corev1.PersistentVolumeSpec{}
		if inline.CSI != nil {
			source.InlineVolumeSpec.CSI = keptCSI(inline.CSI)
		}
	}
	spec := storagev1.VolumeAttachmentSpec{Attacher: a.Spec.Attacher, NodeName: a.Spec.NodeName, Source: source}
	*a = storagev1.VolumeAttachment{ObjectMeta: metaOf(&a.ObjectMeta), Spec: spec}
}

func keptCSI(s *corev1.CSIPersistentVolumeSource) *corev1.CSIPersistentVolumeSource {
	return &corev1.CSIPersistentVolumeSource{Driver: s.Driver, VolumeHandle: s.VolumeHandle}
}

// stripVolume keeps where a volume is, whose it is, and by which driver it is attached.
func stripVolume(pv *corev1.PersistentVolume) {
	s := &pv.Spec
	out := corev1.PersistentVolume{
		ObjectMeta: metaOf(&pv.ObjectMeta, corev1.BetaStorageClassAnnotation),
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:               s.AccessModes,
			StorageClassName:          s.StorageClassName,
			NodeAffinity:              s.NodeAffinity,
			VolumeMode:                s.VolumeMode,
			VolumeAttributesClassName: s.VolumeAttributesClassName,
			PersistentVolumeSource:    keptDisk(&s.PersistentVolumeSource),
		},
		Status: corev1.PersistentVolumeStatus{Phase: pv.Status.Phase},
	}
	out.Labels = pv.Labels
	if amount, set := s.Capacity[corev1.ResourceStorage]; set {
		out.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: amount}
	}
	if ref := s.ClaimRef; ref != nil {
		out.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
	}
	*pv = out
}

// keptDisk is what names the disk; see DiskOf.
func keptDisk(s *corev1.PersistentVolumeSource) corev1.PersistentVolumeSource {
	var out corev1.PersistentVolumeSource
	switch {
	case s.CSI != nil:
		out.CSI = keptCSI(s.CSI)
	case s.AWSElasticBlockStore != nil:
		out.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: s.AWSElasticBlockStore.VolumeID}
	case s.GCEPersistentDisk != nil:
		out.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: s.GCEPersistentDisk.PDName}
	case s.AzureDisk != nil:
		out.AzureDisk = &corev1.AzureDiskVolumeSource{DataDiskURI: s.AzureDisk.DataDiskURI}
	case s.Cinder != nil:
		out.Cinder = &corev1.CinderPersistentVolumeSource{VolumeID: s.Cinder.VolumeID}
	case s.PortworxVolume != nil:
		out.PortworxVolume = &corev1.PortworxVolumeSource{VolumeID: s.PortworxVolume.VolumeID}
	}
	return out
}

// stripVolumeClaim keeps what decides to which volume a claim is bound. One with a selector that is too large is bound
// to none by us.
func stripVolumeClaim(claim *corev1.PersistentVolumeClaim) {
	s := &claim.Spec
	meta, selector := withSelector(&claim.ObjectMeta, s.Selector,
		volume.AnnBindCompleted, volume.AnnSelectedNode, corev1.BetaStorageClassAnnotation)
	if s.Selector != nil && selector == nil {
		selector = &metav1.LabelSelector{MatchLabels: map[string]string{tooLongLabel: "selector"}}
	}
	*claim = corev1.PersistentVolumeClaim{
		ObjectMeta: meta,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:               s.AccessModes,
			Selector:                  selector,
			VolumeName:                CutText(s.VolumeName),
			StorageClassName:          s.StorageClassName,
			VolumeMode:                s.VolumeMode,
			VolumeAttributesClassName: s.VolumeAttributesClassName,
			Resources:                 storageOf(s.Resources.Requests),
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase},
	}
}

func storageOf(requests corev1.ResourceList) corev1.VolumeResourceRequirements {
	amount, set := requests[corev1.ResourceStorage]
	if !set {
		return corev1.VolumeResourceRequirements{}
	}
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: amount}}
}

func keptDrivers(list []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
	var out []storagev1.CSINodeDriver
	for _, d := range list {
		out = append(out, storagev1.CSINodeDriver{Name: d.Name, Allocatable: d.Allocatable})
	}
	return out
}
