package v1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels that Tenon writes on NodeClaims and Nodes.
const (
	// NodePoolLabelKey names the NodePool that a NodeClaim or Node belongs to.
	NodePoolLabelKey = Group + "/nodepool"
	// CapacityTypeLabelKey says on which terms the instance was bought: one of the CapacityType values.
	CapacityTypeLabelKey = Group + "/capacity-type"
	// NodeRegisteredLabelKey is "true" once the Node has been matched with its NodeClaim.
	NodeRegisteredLabelKey = Group + "/registered"
	// NodeInitializedLabelKey is "true" once the Node can run the pods it was launched for.
	NodeInitializedLabelKey = Group + "/initialized"
	// NodeDoNotSyncTaintsLabelKey on a Node keeps registration from writing the claim's taints onto it.
	NodeDoNotSyncTaintsLabelKey = Group + "/do-not-sync-taints"
	// ProvisionerNameLabelKey names the Provisioner that the NodePool of a Node was made from. The pool's template sets
	// it; it is the only label of the group, besides the capacity type, that a template may set.
	ProvisionerNameLabelKey = Group + "/provisioner-name"
)

// Values of CapacityTypeLabelKey.
const (
	CapacityTypeSpot     = "spot"
	CapacityTypeOnDemand = "on-demand"
	CapacityTypeReserved = "reserved"
)

// Values of the kubernetes.io/arch label that offerings use.
const (
	ArchitectureAmd64 = "amd64"
	ArchitectureArm64 = "arm64"
)

// Annotations that users or Tenon set.
const (
	// DoNotDisruptAnnotationKey on a Pod, Node or NodeClaim keeps the node from voluntary disruption: "true", or on a
	// Pod a duration counted from its start.
	DoNotDisruptAnnotationKey = Group + "/do-not-disrupt"
	// DoNotEvictAnnotationKey on a Pod, "true", is what the generation of Provisioners called
	// DoNotDisruptAnnotationKey.
	DoNotEvictAnnotationKey = Group + "/do-not-evict"
	// DoNotConsolidateAnnotationKey on a Node, "true", kept it from consolidation then. It means
	// DoNotDisruptAnnotationKey now.
	DoNotConsolidateAnnotationKey = Group + "/do-not-consolidate"
	// DoNotRepairAnnotationKey on a Node or NodeClaim keeps it from node repair only.
	DoNotRepairAnnotationKey = Group + "/do-not-repair"
	// DisruptionCostAnnotationKey on a Pod is an int32: what its eviction costs when nodes are compared.
	DisruptionCostAnnotationKey = Group + "/disruption-cost"
	// NodePoolHashAnnotationKey holds the hash of the template on the NodePool and of the template it came from on a
	// NodeClaim; a difference means drift.
	NodePoolHashAnnotationKey = Group + "/nodepool-hash"
	// NodePoolHashVersionAnnotationKey says how the hash was computed; hashes of different versions are not compared.
	NodePoolHashVersionAnnotationKey = Group + "/nodepool-hash-version"
	// NodeClaimTerminationTimestampAnnotationKey is the RFC 3339 time by which the node must be gone.
	NodeClaimTerminationTimestampAnnotationKey = Group + "/nodeclaim-termination-timestamp"
	// NodeClaimMinValuesRelaxedAnnotationKey is "true" if minValues was given up to launch the claim.
	NodeClaimMinValuesRelaxedAnnotationKey = Group + "/nodeclaim-min-values-relaxed"
	// DRADriversAnnotationKey lists, with commas, the DRA drivers that must publish before the node is initialized.
	DRADriversAnnotationKey = Group + "/requested-dra-drivers"
	// PriceOverlayAppliedAnnotationKey is set on a claim whose price came from a NodeOverlay.
	PriceOverlayAppliedAnnotationKey = Group + "/price-overlay-applied"
	// CapacityOverlayAppliedAnnotationKey is set on a claim whose capacity came from a NodeOverlay.
	CapacityOverlayAppliedAnnotationKey = Group + "/capacity-overlay-applied"
	// RebootPreBootIDAnnotationKey is the boot id from before a reboot was asked for.
	RebootPreBootIDAnnotationKey = Group + "/reboot-pre-boot-id"
	// RebootTerminationGracePeriodAnnotationKey bounds the drain before a reboot.
	RebootTerminationGracePeriodAnnotationKey = Group + "/reboot-termination-grace-period"
)

// NodePoolHashVersion is the version of the template hash that NodePoolHashVersionAnnotationKey carries.
const NodePoolHashVersion = "v3"

// TerminationFinalizer holds a Node or NodeClaim until its instance is gone.
const TerminationFinalizer = Group + "/termination"

// Keys of the taints that Tenon puts on nodes.
const (
	DisruptedTaintKey    = Group + "/disrupted"
	UnregisteredTaintKey = Group + "/unregistered"
)

// DisruptedNoScheduleTaint keeps new pods off a node that is going away.
func DisruptedNoScheduleTaint() corev1.Taint {
	return corev1.Taint{Key: DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredNoExecuteTaint keeps every pod off a node that has not been matched with its NodeClaim. Nodes are
// expected to carry it when they join.
func UnregisteredNoExecuteTaint() corev1.Taint {
	return corev1.Taint{Key: UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}
}

// NodeClassLabelKey is the label under which a Node or NodeClaim names its NodeClass, such as
// karpenter.kwok.sh/kwoknodeclass.
func NodeClassLabelKey(group, kind string) string {
	return group + "/" + strings.ToLower(kind)
}
