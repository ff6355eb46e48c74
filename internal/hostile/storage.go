package hostile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const storageClass = "hostile"

// StorageClass makes volumes where their pods go, in any of so many topologies; anywhere if there are none.
func StorageClass(topologies int) *storagev1.StorageClass {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: storageClass}, Provisioner: "ebs.csi.aws.com",
		VolumeBindingMode: &wait}
	for i := range topologies {
		c.AllowedTopologies = append(c.AllowedTopologies,
			corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{text("zone-", i)}},
				{Key: "rack", Values: []string{text("rack-", i)}}}})
	}
	return c
}

// Claim is a PersistentVolumeClaim; it is bound if a volume is named.
func Claim(name, volume string) *corev1.PersistentVolumeClaim {
	class := storageClass
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name,
		UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: volume}}
	if volume != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		c.Status.Phase = corev1.ClaimBound
	}
	return c
}

// Volume is a PersistentVolume with so many topologies that it can be used from.
func Volume(name string, topologies int) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.StorageClassName = storageClass
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "h-" + name}
	if topologies > 0 {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
	}
	for i := range topologies {
		v.Spec.NodeAffinity.Required.NodeSelectorTerms = append(v.Spec.NodeAffinity.Required.NodeSelectorTerms,
			corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn,
						Values: []string{text("zone-", i)}},
					{Key: text("rack-", i), Operator: corev1.NodeSelectorOpIn, Values: []string{"r"}}}})
	}
	return v
}

// Mounting is a pod that uses n claims.
func Mounting(name string, n int) *corev1.Pod {
	p := Pod(name)
	for i := range n {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: text("v", i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: text("claim-", i)}}})
	}
	return p
}

// Volumes is a pod with n claims, and then so many events about the claims: each is bound to a volume.
func Volumes(n, events int) []client.Object {
	out := []client.Object{StorageClass(0), Mounting("volumes", n)}
	for i := range events {
		name := text("claim-", i%n)
		volume := Volume(fmt.Sprint("pv-", name), 1)
		out = append(out, volume, Claim(name, volume.Name))
	}
	return out
}

// Choices is a pod with n claims, each of which can be had in so many topologies.
func Choices(n, topologies int) []client.Object {
	out := []client.Object{StorageClass(topologies)}
	for i := range n {
		out = append(out, Claim(text("claim-", i), ""))
	}
	return append(out, Mounting("choices", n))
}
