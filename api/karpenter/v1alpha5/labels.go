package v1alpha5

// ProvisionerNameLabelKey names the Provisioner that a Node belongs to. The nodes of a NodePool that was made from a Provisioner carry
// it beside karpenter.sh/nodepool.
const ProvisionerNameLabelKey = Group + "/provisioner-name"

// Annotations of this generation. Both mean what karpenter.sh/do-not-disrupt means today.
const (
	// DoNotEvictPodAnnotationKey on a Pod is "true" if it must not be evicted to disrupt its node.
	DoNotEvictPodAnnotationKey = Group + "/do-not-evict"
	// DoNotConsolidateNodeAnnotationKey on a Node is "true" if it must stay.
	DoNotConsolidateNodeAnnotationKey = Group + "/do-not-consolidate"
)
