// Package volumes holds the rules of the lab's volumes: which storage classes and
// drivers there are, what a claim's volume is like, what a node can attach, and
// when a volume goes. It is apart from the code that acts on them, which links
// client-go, so that looking after the rules stays quick. It touches nothing.
package volumes

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// EBSDriver is the driver whose part the lab plays: its volumes are in a zone
	// and are attached.
	EBSDriver = "ebs.csi.aws.com"
	// PlainDriver makes volumes that every node can use, without attaching them.
	PlainDriver = "disk.lab.tenon.sh"

	// TopologyKeyParameter of a storage class is the label in the node affinity
	// of its volumes. EBS's driver has used both EBSZoneLabel and the zone label
	// of Kubernetes, which is the default here, too.
	TopologyKeyParameter = "lab.tenon.sh/topology-key"
	// EBSZoneLabel is what EBS's driver calls the zone of a node.
	EBSZoneLabel = "topology.ebs.csi.aws.com/zone"

	// PartOf with the value PartOfLab marks the objects that belong to the lab.
	PartOf    = "app.kubernetes.io/part-of"
	PartOfLab = "tenon-lab"
)

const defaultClass = "storageclass.kubernetes.io/is-default-class"

// Ours tells whether the lab plays a driver.
func Ours(driver string) bool { return driver == EBSDriver || driver == PlainDriver }

// Classes are the storage classes of a lab.
func Classes() []*storagev1.StorageClass {
	late := storagev1.VolumeBindingWaitForFirstConsumer
	gone := corev1.PersistentVolumeReclaimDelete
	mine := map[string]string{PartOf: PartOfLab}
	return []*storagev1.StorageClass{
		{
			ObjectMeta:  metav1.ObjectMeta{Name: "gp3", Labels: mine},
			Provisioner: EBSDriver, Parameters: map[string]string{"type": "gp3"},
			ReclaimPolicy: &gone, VolumeBindingMode: &late,
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "standard", Labels: mine,
				Annotations: map[string]string{defaultClass: "true"}},
			Provisioner: PlainDriver, ReclaimPolicy: &gone, VolumeBindingMode: &late,
		},
	}
}

// Drivers say what Kubernetes has to do for the volumes of each driver.
func Drivers() []*storagev1.CSIDriver {
	mine := map[string]string{PartOf: PartOfLab}
	driver := func(name string, attach bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: mine},
			Spec:       storagev1.CSIDriverSpec{AttachRequired: &attach},
		}
	}
	return []*storagev1.CSIDriver{driver(EBSDriver, true), driver(PlainDriver, false)}
}
