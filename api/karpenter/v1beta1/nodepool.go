package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// NodePool says which nodes may be launched for pods that find no room, how many, and when they may go again.
// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="NodeClass",type=string,JSONPath=`.spec.template.spec.nodeClassRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Weight",type=integer,priority=1,JSONPath=`.spec.weight`
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the pool may do.
	// +required
	Spec NodePoolSpec `json:"spec"`

	// status is what the pool has.
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodePool `json:"items"`
}

// NodePoolSpec is what a pool may do.
// +kubebuilder:validation:XValidation:rule="!has(self.nodeClassRef) || !has(self.template.spec.nodeClassRef)",message="nodeClassRef is given twice, under spec and under spec.template.spec; keep the one under spec.template.spec"
type NodePoolSpec struct {
	// template is what each NodeClaim of the pool starts from; a launch narrows it further.
	// +required
	Template NodeClaimTemplate `json:"template"`

	// nodeClassRef is the same as template.spec.nodeClassRef, where it belongs. It is read here too, because it has
	// been documented here.
	// +optional
	NodeClassRef *NodeClassReference `json:"nodeClassRef,omitempty"`

	// disruption says when nodes of the pool may be removed or replaced, and how many at a time.
	// +kubebuilder:default={consolidationPolicy: WhenUnderutilized, expireAfter: "720h"}
	// +optional
	Disruption Disruption `json:"disruption,omitempty"`

	// limits bound what the pool may have in all: any resource, and nodes. A launch that would exceed one does not
	// happen.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// weight orders pools: of those that can take a pod, the one with the greatest weight does. Not set counts as 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// NodeClaimTemplate is what each NodeClaim of a pool starts from.
type NodeClaimTemplate struct {
	// metadata is put on NodeClaims and Nodes.
	// +optional
	v1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the part of the NodeClaim's spec that the pool decides.
	// +required
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// NodeClaimTemplateSpec is a NodeClaim's spec, as far as a pool decides it.
type NodeClaimTemplateSpec struct {
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
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.key != 'karpenter.sh/nodepool')",message="requirement key karpenter.sh/nodepool is set from the name of the NodePool; remove this requirement"
	// +listType=atomic
	// +required
	Requirements []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`

	// resources have no effect in a NodePool: each launch decides how much its node must have. They are kept.
	// +optional
	Resources v1.ResourceRequirements `json:"resources,omitzero"`

	// kubelet holds settings of the kubelet. In v1 they are the NodeClass's.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`

	// nodeClassRef points at the object with the settings that belong to the cloud. Not set means the EC2NodeClass
	// called default.
	// +optional
	NodeClassRef *NodeClassReference `json:"nodeClassRef,omitempty"`
}

// ConsolidationPolicy says which nodes consolidation may touch.
type ConsolidationPolicy string

// The consolidation policies.
const (
	// ConsolidationPolicyWhenEmpty removes nodes without pods that would have to move.
	ConsolidationPolicyWhenEmpty ConsolidationPolicy = "WhenEmpty"
	// ConsolidationPolicyWhenUnderutilized also removes or replaces nodes if that saves money.
	ConsolidationPolicyWhenUnderutilized ConsolidationPolicy = "WhenUnderutilized"
	// ConsolidationPolicyWhenIdle is another word for WhenEmpty.
	ConsolidationPolicyWhenIdle ConsolidationPolicy = "WhenIdle"
)

// Disruption says when nodes of a pool may be removed or replaced, and how many at a time.
type Disruption struct {
	// consolidateAfter is how long a node must have seen no pod come or go before it may be consolidated, such as 30s,
	// or Never. It may be given with every policy; not set means at once.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || duration(self) >= duration('0s')",message="consolidateAfter must be a duration in h, m and s of less than 292 years, such as 1h30m, or Never"
	// +optional
	ConsolidateAfter v1.NillableDuration `json:"consolidateAfter,omitzero"`

	// consolidationPolicy says which nodes consolidation may touch: WhenEmpty, those without pods that would have to
	// move; WhenUnderutilized, also those that cost more than needed. WhenIdle is another word for WhenEmpty.
	// +kubebuilder:validation:Enum=WhenEmpty;WhenUnderutilized;WhenIdle
	// +kubebuilder:default=WhenUnderutilized
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`

	// expireAfter is the age at which a node is replaced, such as 720h, or Never. It does not wait for a budget.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || duration(self) >= duration('0s')",message="expireAfter must be a duration in h, m and s of less than 292 years, such as 720h for 30 days, or Never"
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter v1.NillableDuration `json:"expireAfter,omitzero"`

	// budgets bound how many nodes may be disrupted at a time. Of all that are active, the smallest counts.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:default={{nodes: "10%"}}
	// +listType=atomic
	// +optional
	Budgets []v1.Budget `json:"budgets,omitempty"`
}

// NodePoolStatus is what a pool has.
type NodePoolStatus struct {
	// resources are the sum of the capacity of the pool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// conditions tell whether the pool can be used. Ready sums up ValidationSucceeded and NodeClassReady.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
