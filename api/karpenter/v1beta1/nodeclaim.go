package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// NodeClaim is one node that was asked for: from the decision to launch it until its instance is gone.
// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.metadata.labels.node\.kubernetes\.io/instance-type`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.metadata.labels.topology\.kubernetes\.io/zone`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Capacity",type=string,priority=1,JSONPath=`.metadata.labels.karpenter\.sh/capacity-type`
// +kubebuilder:printcolumn:name="NodePool",type=string,priority=1,JSONPath=`.metadata.labels.karpenter\.sh/nodepool`
// +kubebuilder:printcolumn:name="NodeClass",type=string,priority=1,JSONPath=`.spec.nodeClassRef.name`
type NodeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what was asked for. It never changes: a different node is a different NodeClaim.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable; delete this NodeClaim and let a new one be made"
	// +required
	Spec NodeClaimSpec `json:"spec"`

	// status is what became of it.
	// +optional
	Status NodeClaimStatus `json:"status,omitempty"`
}

// NodeClaimList is a list of NodeClaims.
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeClaim `json:"items"`
}

// NodeClaimSpec says which node is wanted.
type NodeClaimSpec struct {
	// taints are put on the node; pods must tolerate them to run there.
	// +listType=atomic
	// +optional
	Taints []v1.Taint `json:"taints,omitempty"`

	// startupTaints are put on the node and are expected to be removed by something else, such as a DaemonSet, before
	// the node counts as initialized. Pods need not tolerate them for a node to be launched.
	// +listType=atomic
	// +optional
	StartupTaints []v1.Taint `json:"startupTaints,omitempty"`

	// requirements narrow what may be launched; all of them hold.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`

	// resources are what the node must at least have.
	// +optional
	Resources v1.ResourceRequirements `json:"resources,omitempty"`

	// kubelet holds settings of the kubelet. In v1 they are the NodeClass's.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`

	// nodeClassRef points at the object with the settings that belong to the cloud.
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
}

// NodeClassReference names a NodeClass, the object with the settings that belong to the cloud.
type NodeClassReference struct {
	// apiVersion of the NodeClass, such as karpenter.k8s.aws/v1beta1. Only its group counts. Not set means the group
	// that the kind belongs to.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the NodeClass. Not set means the kind that the group has, or EC2NodeClass if there is no apiVersion
	// either.
	// +optional
	Kind string `json:"kind,omitempty"`

	// name of the NodeClass.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// NodeClaimStatus is what is known of the node.
type NodeClaimStatus struct {
	// nodeName is the name of the Node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// providerID is the cloud's id of the instance, as the Node carries it too.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// imageID is the cloud's id of the image that the instance runs.
	// +optional
	ImageID string `json:"imageID,omitempty"`

	// capacity is what the whole machine is expected to have.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is what of it pods are expected to get.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// conditions tell how far the node is. Ready sums up Launched, Registered and Initialized.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
