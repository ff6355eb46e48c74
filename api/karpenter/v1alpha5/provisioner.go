package v1alpha5

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Provisioner says which nodes may be launched for pods, in the words that came before NodePool. Tenon makes a NodePool
// of the same name from it, and keeps that as the Provisioner says.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=provisioners,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="NodePool",type=string,JSONPath=`.status.nodePool`
// +kubebuilder:printcolumn:name="NodeClass",type=string,JSONPath=`.status.nodeClass`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Template",type=string,priority=1,JSONPath=`.spec.providerRef.name`
// +kubebuilder:printcolumn:name="Weight",type=integer,priority=1,JSONPath=`.spec.weight`
type Provisioner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the Provisioner may do.
	// +optional
	Spec ProvisionerSpec `json:"spec,omitempty"`

	// status is what became of it.
	// +optional
	Status ProvisionerStatus `json:"status,omitempty"`
}

// ProvisionerList is a list of Provisioners.
// +kubebuilder:object:root=true
type ProvisionerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Provisioner `json:"items"`
}

// ProvisionerSpec is what a Provisioner may do.
// +kubebuilder:validation:XValidation:rule="!has(self.provider) || !has(self.providerRef)",message="provider and providerRef exclude each other; keep providerRef, or provider with the settings in place"
// +kubebuilder:validation:XValidation:rule="!has(self.ttlSecondsAfterEmpty) || !has(self.consolidation) || !has(self.consolidation.enabled) || !self.consolidation.enabled",message="ttlSecondsAfterEmpty and consolidation.enabled exclude each other, because consolidation removes empty nodes, too; remove one of them"
type ProvisionerSpec struct {
	// labels are put on each node. Pods may select by them.
	// +kubebuilder:validation:MaxProperties=100
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are put on each node.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// taints are put on each node; pods must tolerate them to run there.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// startupTaints are put on each node and are expected to be removed by something else before the node counts as
	// initialized.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`

	// requirements narrow what may be launched; all of them hold. Without others about the same label they are: linux,
	// amd64, on-demand and, on EC2, instance types of the categories c, m and r from the third generation on.
	// +kubebuilder:validation:MaxItems=90
	// +listType=atomic
	// +optional
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`

	// kubeletConfiguration holds settings of the nodes' kubelets.
	// +optional
	KubeletConfiguration *KubeletConfiguration `json:"kubeletConfiguration,omitempty"`

	// provider holds the settings that belong to the cloud, in place: those of an AWSNodeTemplate but for amiSelector,
	// detailedMonitoring and userData. {} means the defaults of the cluster.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	Provider *apiextensionsv1.JSON `json:"provider,omitempty"`

	// providerRef points at the object with the settings that belong to the cloud.
	// +optional
	ProviderRef *ProviderRef `json:"providerRef,omitempty"`

	// ttlSecondsAfterEmpty is how long a node may carry no workload before it goes. Without it, and without
	// consolidation, empty nodes stay.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3153600000
	// +optional
	TTLSecondsAfterEmpty *int64 `json:"ttlSecondsAfterEmpty,omitempty"`

	// ttlSecondsUntilExpired is the age at which a node is replaced. Without it nodes don't expire.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3153600000
	// +optional
	TTLSecondsUntilExpired *int64 `json:"ttlSecondsUntilExpired,omitempty"`

	// limits bound what the nodes may have in all.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// weight orders Provisioners and NodePools: of those that can take a pod, the one with the greatest weight does.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// consolidation says whether nodes are removed or replaced to save money.
	// +optional
	Consolidation *Consolidation `json:"consolidation,omitempty"`
}

// ProviderRef points at the object with the settings that belong to the cloud.
type ProviderRef struct {
	// apiVersion of the object; karpenter.k8s.aws/v1alpha1 if it is not set.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the object; AWSNodeTemplate if it is not set.
	// +optional
	Kind string `json:"kind,omitempty"`

	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// Limits bound what the nodes of a Provisioner may have in all.
type Limits struct {
	// resources are the most that all nodes together may have. A launch that would exceed one does not happen.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// Consolidation says whether nodes are removed or replaced to save money.
type Consolidation struct {
	// enabled turns consolidation on.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// ProvisionerStatus is what became of a Provisioner.
type ProvisionerStatus struct {
	// nodePool is the name of the NodePool that was made from the Provisioner.
	// +optional
	NodePool string `json:"nodePool,omitempty"`

	// nodeClass is the kind and the name of the NodeClass of that NodePool, such as EC2NodeClass/default.
	// +optional
	NodeClass string `json:"nodeClass,omitempty"`

	// lastScaleTime is not written any more. It is here for Provisioners that have it.
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// resources are the sum of the capacity of the nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// conditions tell whether the Provisioner can be used. Ready sums up Translated and whether the NodePool is ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionTypeTranslated is true once the NodePool, and the NodeClass if one is needed, say what the Provisioner does.
const ConditionTypeTranslated = "Translated"
