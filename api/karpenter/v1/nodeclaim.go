package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaim is one node that was asked for: from the decision to launch it until its instance is gone.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.metadata.labels.node\.kubernetes\.io/instance-type`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.metadata.labels.karpenter\.sh/capacity-type`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.metadata.labels.topology\.kubernetes\.io/zone`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="ImageID",type=string,priority=1,JSONPath=`.status.imageID`
// +kubebuilder:printcolumn:name="ID",type=string,priority=1,JSONPath=`.status.providerID`
// +kubebuilder:printcolumn:name="NodePool",type=string,priority=1,JSONPath=`.metadata.labels.karpenter\.sh/nodepool`
// +kubebuilder:printcolumn:name="NodeClass",type=string,priority=1,JSONPath=`.spec.nodeClassRef.name`
// +kubebuilder:printcolumn:name="Drifted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Drifted")].status`
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
	Taints []Taint `json:"taints,omitempty"`

	// startupTaints are put on the node and are expected to be removed by something else, such as a DaemonSet, before
	// the node counts as initialized. Pods need not tolerate them for a node to be launched.
	// +listType=atomic
	// +optional
	StartupTaints []Taint `json:"startupTaints,omitempty"`

	// requirements narrow what may be launched; all of them hold.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []NodeSelectorRequirementWithMinValues `json:"requirements"`

	// resources are what the node must at least have.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty"`

	// nodeClassRef points at the object with the settings that belong to the cloud.
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`

	// terminationGracePeriod bounds how long the node may take to drain, counted from its deletion. When it is over,
	// the pods that are left are deleted without regard to disruption budgets of pods and to
	// karpenter.sh/do-not-disrupt; pods with a longer grace period of their own are deleted earlier, so that they get
	// it in full. If it is not set, draining takes as long as it takes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="terminationGracePeriod must be a duration in h, m and s of less than 292 years, such as 1h30m"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`

	// expireAfter is the age at which the node is replaced, such as 720h, or Never.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || duration(self) >= duration('0s')",message="expireAfter must be a duration in h, m and s of less than 292 years, such as 720h for 30 days, or Never"
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitzero"`
}

// ResourceRequirements says how much a node must have.
type ResourceRequirements struct {
	// requests is the least that the node's allocatable resources may be: what the pods it is launched for and the
	// daemons that will run there ask for.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// NodeClassReference names a NodeClass, the object with the settings that belong to the cloud.
type NodeClassReference struct {
	// group of the NodeClass, without a version, such as karpenter.kwok.sh.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[^/]*$`
	// +required
	Group string `json:"group"`

	// kind of the NodeClass, such as KWOKNodeClass.
	// +kubebuilder:validation:MinLength=1
	// +required
	Kind string `json:"kind"`

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

	// lastPodEventTime is when a pod was last bound to the node, left it or began to leave it.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitzero"`

	// conditions tell how far the node is. Ready sums up Launched, Registered and Initialized.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
