package oracle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

const (
	driver        = "csi.example.com"
	bindCompleted = "pv.kubernetes.io/bind-completed"
)

// claimName is the PersistentVolumeClaim behind a pod's volume; empty if there is none.
func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	}
	return ""
}

// csiNodeOf says how many volumes drivers can attach to a node; nil if nothing is known about that.
func csiNodeOf(name string, limits map[string]int32) *storagev1.CSINode {
	if len(limits) == 0 {
		return nil
	}
	out := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	for driver, limit := range limits {
		out.Spec.Drivers = append(out.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name,
			TopologyKeys: []string{corev1.LabelTopologyZone},
			Allocatable:  &storagev1.VolumeNodeResources{Count: &limit}})
	}
	return out
}

// provision does what happens once a claim's first pod has a node: a volume that is there is taken or, if there is
// none, the driver makes one in the node's zone.
func (s *scheduler) provision(namespace, name string, node *corev1.Node) {
	for i, claim := range s.w.VolumeClaims {
		if claim.Namespace != namespace || claim.Name != name || claim.Spec.VolumeName != "" {
			continue
		}
		if s.takeVolume(i, node) {
			continue
		}
		zones := []string{}
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones = append(zones, zone)
		}
		bound, volume := boundTo(claim, zones)
		s.w.VolumeClaims[i] = bound
		s.w.Volumes = append(s.w.Volumes, volume)
		s.tell(s.informers.Core().V1().PersistentVolumeClaims().Informer().GetIndexer().Update(bound))
		s.tell(s.informers.Core().V1().PersistentVolumes().Informer().GetIndexer().Update(volume))
	}
}

// takeVolume binds the i-th claim to a volume that waits for one, if there is one that the node can use.
func (s *scheduler) takeVolume(i int, node *corev1.Node) bool {
	claim := s.w.VolumeClaims[i]
	var waiting []*corev1.PersistentVolume
	for _, v := range s.w.Volumes {
		if v.Spec.StorageClassName == *claim.Spec.StorageClassName {
			waiting = append(waiting, v)
		}
	}
	found, err := volume.FindMatchingVolume(claim, waiting, node, nil, true, false)
	s.tell(err)
	if found == nil {
		return false
	}
	bound, made := boundTo(claim, nil)
	taken := found.DeepCopy()
	taken.Spec.ClaimRef, taken.Status.Phase = made.Spec.ClaimRef, corev1.VolumeBound
	bound.Spec.VolumeName = taken.Name
	s.w.VolumeClaims[i] = bound
	s.w.Volumes[slices.Index(s.w.Volumes, found)] = taken
	s.tell(s.informers.Core().V1().PersistentVolumeClaims().Informer().GetIndexer().Update(bound))
	s.tell(s.informers.Core().V1().PersistentVolumes().Informer().GetIndexer().Update(taken))
	return true
}

// boundTo gives the claim a volume that can be reached in the zones; everywhere if there are none.
func boundTo(claim *corev1.PersistentVolumeClaim, zones []string) (*corev1.PersistentVolumeClaim,
	*corev1.PersistentVolume) {
	bound := claim.DeepCopy()
	bound.Spec.VolumeName = "pv-" + claim.Namespace + "-" + claim.Name
	bound.Annotations = map[string]string{bindCompleted: "yes"}
	bound.Status.Phase = corev1.ClaimBound
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: bound.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: bound.Spec.VolumeName}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	if claim.Spec.StorageClassName != nil {
		volume.Spec.StorageClassName = *claim.Spec.StorageClassName
	}
	if len(zones) > 0 {
		volume.Spec.NodeAffinity = reachable(corev1.LabelTopologyZone, zones...)
	}
	return bound, volume
}

// reachable is where a volume can be used.
func reachable(key string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn,
			Values: values}}}}}}
}
