package volumes

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// LimitName is a label or an annotation of a Node: how many volumes of EBS it
	// can attach. The label is for people, who write it into the template of a
	// NodePool; the annotation is for whoever makes the machine.
	LimitName = "lab.tenon.sh/volume-limit"
	// usualLimit is what EBS's driver reports on most machines: 28 attachments
	// less the network interface and the root volume.
	usualLimit = 26
)

// NodeDrivers is what the drivers on a node report: the CSINode of that node.
func NodeDrivers(node *corev1.Node) *storagev1.CSINode {
	limit := limitOf(node)
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
			}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: EBSDriver, NodeID: machineID(node),
			TopologyKeys: []string{EBSZoneLabel, corev1.LabelTopologyZone},
			Allocatable:  &storagev1.VolumeNodeResources{Count: &limit},
		}}},
	}
}

// IsOf tells whether a CSINode is that of this node and not of an earlier one
// with its name.
func IsOf(drivers *storagev1.CSINode, node *corev1.Node) bool {
	for _, owner := range drivers.OwnerReferences {
		if owner.Kind == "Node" && owner.UID != node.UID {
			return false
		}
	}
	return true
}

func limitOf(node *corev1.Node) int32 {
	for _, text := range []string{node.Labels[LimitName], node.Annotations[LimitName]} {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
			return int32(n)
		}
	}
	return usualLimit
}

// machineID is the last part of the provider's id, as EBS's driver has it.
func machineID(node *corev1.Node) string {
	if id := node.Spec.ProviderID[strings.LastIndexByte(node.Spec.ProviderID, '/')+1:]; id != "" {
		return id
	}
	return node.Name
}
