package v1alpha1

// Labels of the simulated cloud that pods and pools may select by.
const (
	InstanceFamilyLabelKey = Group + "/instance-family"
	InstanceSizeLabelKey   = Group + "/instance-size"
	InstanceCPULabelKey    = Group + "/instance-cpu"
	InstanceMemoryLabelKey = Group + "/instance-memory"
)

// Labels that a simulated node carries for the programs that look at it.
const (
	// KwokNodeLabelKey with KwokNodeLabelValue tells kwok to play the kubelet of this node.
	KwokNodeLabelKey   = "kwok.x-k8s.io/node"
	KwokNodeLabelValue = "fake"
	// InstancePriceLabelKey is the price per hour, where node viewers look for it.
	InstancePriceLabelKey = "eks-node-viewer/instance-price"
)
