package v1

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool says which nodes may be launched for pods that find no room, how many, and when they may go again.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
// +kubebuilder:printcolumn:name="NodeClass",type=string,JSONPath=`.spec.template.spec.nodeClassRef.name`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Weight",type=integer,priority=1,JSONPath=`.spec.weight`
// +kubebuilder:printcolumn:name="CPU",type=string,priority=1,JSONPath=`.status.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.resources.memory`
// +kubebuilder:printcolumn:name="CanLaunch",type=string,JSONPath=`.status.conditions[?(@.type=="tenon.sh/CanLaunch")].status`
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

// NodePoolSpec is what a pool may do. A pool with replicas is static: it keeps that many nodes. A pool without is
// dynamic: it launches nodes for pods.
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",message="replicas can't be added or removed: a pool stays static (with replicas) or dynamic (without); create another NodePool"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.limits) || self.limits.all(name, name == 'nodes')",message="limits of a static NodePool (one with replicas) may hold nodes only; remove the other resources"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.weight)",message="weight has no meaning in a static NodePool (one with replicas); remove weight"
type NodePoolSpec struct {
	// template is what each NodeClaim of the pool starts from; a launch narrows it further.
	// +required
	Template NodeClaimTemplate `json:"template"`

	// disruption says when nodes of the pool may be removed or replaced, and how many at a time.
	// +kubebuilder:default={}
	// +optional
	Disruption Disruption `json:"disruption,omitempty"`

	// limits bound what the pool may have in all: any resource, and nodes. A launch that would exceed one does not
	// happen. A static pool takes only nodes.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// weight orders pools: of those that can take a pod, the one with the greatest weight does. Not set counts as 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// replicas makes the pool static: it keeps this many nodes whether or not pods need them, and is not
	// consolidated. Alpha.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// NodeClaimTemplate is what each NodeClaim of a pool starts from.
type NodeClaimTemplate struct {
	// metadata is put on NodeClaims and Nodes.
	// +optional
	ObjectMeta `json:"metadata,omitempty"`

	// spec is the part of the NodeClaim's spec that the pool decides.
	// +required
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// ObjectMeta is the part of an object's metadata that a template may set. Its deep copy is written by hand, because
// the generator does not know maps of an alias.
// +kubebuilder:object:generate=false
type ObjectMeta struct {
	// labels are put on each NodeClaim and Node. Pods may select by them. Labels of the domain karpenter.sh other than
	// karpenter.sh/capacity-type and karpenter.sh/provisioner-name, and kubernetes.io/hostname, are set by the
	// controller and can't be given here.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(key, key in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool', 'karpenter.sh/provisioner-name'] || !('.' + key.split('/')[0]).endsWith('.karpenter.sh'))",message="a label is in the reserved domain karpenter.sh; use karpenter.sh/capacity-type or a label of another domain"
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != 'karpenter.sh/nodepool')",message="label karpenter.sh/nodepool is set from the name of the NodePool; remove it"
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != 'kubernetes.io/hostname')",message="label kubernetes.io/hostname is set by each node itself; remove it"
	// +mapType=atomic
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are put on each NodeClaim and Node.
	// +mapType=granular
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// DeepCopyInto copies m into out.
func (m *ObjectMeta) DeepCopyInto(out *ObjectMeta) {
	out.Labels = maps.Clone(m.Labels)
	out.Annotations = maps.Clone(m.Annotations)
}

// DeepCopy returns a copy of m.
func (m *ObjectMeta) DeepCopy() *ObjectMeta {
	if m == nil {
		return nil
	}
	out := new(ObjectMeta)
	m.DeepCopyInto(out)
	return out
}

// NodeClaimTemplateSpec is a NodeClaim's spec without the resources, which each launch decides.
type NodeClaimTemplateSpec struct {
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
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.key != 'karpenter.sh/nodepool')",message="requirement key karpenter.sh/nodepool is set from the name of the NodePool; remove this requirement"
	// +listType=atomic
	// +required
	Requirements []NodeSelectorRequirementWithMinValues `json:"requirements"`

	// nodeClassRef points at the object with the settings that belong to the cloud. The name may change, which makes
	// the nodes drift; group and kind may not.
	// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",message="nodeClassRef.group is immutable; create another NodePool for another cloud"
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="nodeClassRef.kind is immutable; create another NodePool for another cloud"
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`

	// terminationGracePeriod bounds how long a node may take to drain, counted from its deletion. When it is over, the
	// pods that are left are deleted without regard to disruption budgets of pods and to karpenter.sh/do-not-disrupt;
	// pods with a longer grace period of their own are deleted earlier, so that they get it in full. If it is not set,
	// draining takes as long as it takes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="terminationGracePeriod must be a duration in h, m and s of less than 292 years, such as 1h30m"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`

	// expireAfter is the age at which a node is replaced, such as 720h, or Never. It does not wait for a budget.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || duration(self) >= duration('0s')",message="expireAfter must be a duration in h, m and s of less than 292 years, such as 720h for 30 days, or Never"
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitzero"`
}

// NodePoolStatus is what a pool has.
type NodePoolStatus struct {
	// resources are the sum of the capacity of the pool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// nodes is how many nodes the pool has.
	// +kubebuilder:default=0
	// +optional
	Nodes int64 `json:"nodes"`

	// nodeClassObservedGeneration is the generation of the NodeClass that NodeRegistrationHealthy was judged under; a
	// newer one starts the judgement anew.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`

	// conditions tell whether the pool can be used. Ready sums up ValidationSucceeded and NodeClassReady.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
