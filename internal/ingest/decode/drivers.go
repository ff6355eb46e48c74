package decode

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Volumes of clouds that Kubernetes once handled by itself are handled by these drivers now.
const (
	EbsDriver      = "ebs.csi.aws.com"
	gceDriver      = "pd.csi.storage.gke.io"
	azureDriver    = "disk.csi.azure.com"
	cinderDriver   = "cinder.csi.openstack.org"
	portworxDriver = "pxd.portworx.com"
)

// CsiDriver is the driver behind a storage class' provisioner; empty for those of old whose volumes nobody counts.
func CsiDriver(provisioner string) string {
	switch provisioner {
	case "kubernetes.io/aws-ebs":
		return EbsDriver
	case "kubernetes.io/gce-pd":
		return gceDriver
	case "kubernetes.io/azure-disk":
		return azureDriver
	case "kubernetes.io/cinder":
		return cinderDriver
	case "kubernetes.io/portworx-volume":
		return portworxDriver
	case "kubernetes.io/azure-file", "kubernetes.io/vsphere-volume":
		return ""
	}
	return provisioner
}

// DiskOf names the driver of a volume and its handle there; both empty if nobody counts it.
func DiskOf(pv *corev1.PersistentVolume) (driver, handle string) {
	s := &pv.Spec.PersistentVolumeSource
	switch {
	case s.CSI != nil:
		return s.CSI.Driver, s.CSI.VolumeHandle
	case s.AWSElasticBlockStore != nil:
		return EbsDriver, s.AWSElasticBlockStore.VolumeID
	case s.GCEPersistentDisk != nil:
		return gceDriver, s.GCEPersistentDisk.PDName
	case s.AzureDisk != nil:
		return azureDriver, s.AzureDisk.DataDiskURI
	case s.Cinder != nil:
		return cinderDriver, s.Cinder.VolumeID
	case s.PortworxVolume != nil:
		return portworxDriver, s.PortworxVolume.VolumeID
	}
	return "", ""
}

// InlineDisk is DiskOf for a disk that a pod names without a claim. Volumes that a driver makes for one pod alone (csi)
// are not counted by Kubernetes.
func InlineDisk(v *corev1.Volume) (driver, handle string) {
	switch {
	case v.AWSElasticBlockStore != nil:
		return EbsDriver, v.AWSElasticBlockStore.VolumeID
	case v.GCEPersistentDisk != nil:
		return gceDriver, v.GCEPersistentDisk.PDName
	case v.AzureDisk != nil:
		return azureDriver, v.AzureDisk.DataDiskURI
	case v.Cinder != nil:
		return cinderDriver, v.Cinder.VolumeID
	case v.PortworxVolume != nil:
		return portworxDriver, v.PortworxVolume.VolumeID
	}
	return "", ""
}

// TopologyKey is the label that a volume's topology is about. Drivers have zone labels of their own, which a node gets
// only when the driver has come up on it; they say the same as the zone of the node.
func TopologyKey(key string) string {
	switch key {
	case "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone":
		return cluster.ZoneLabel
	}
	return validate.NormalizeKey(key)
}
