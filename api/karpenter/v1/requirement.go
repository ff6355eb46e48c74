package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// Operators that requirements have beyond those of a pod's node affinity.
const (
	NodeSelectorOpGte corev1.NodeSelectorOperator = "Gte"
	NodeSelectorOpLte corev1.NodeSelectorOperator = "Lte"
)

// The type below is an alias, so that maps and slices of it are plain ones; it exists to hold the rules that the
// generated schema takes from it.

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue = string

// NodeSelectorRequirementWithMinValues narrows the nodes that may be launched by one label.
// +kubebuilder:validation:XValidation:rule="self.operator != 'In' || (has(self.values) && size(self.values) > 0)",message="operator In needs at least one entry in values; add one, or use operator Exists"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && size(self.values) == 1 && self.values[0].matches('^[0-9]+$') && int(self.values[0]) >= 0)",message="operators Gt, Lt, Gte and Lte need exactly one entry in values, a whole number of 0 or more, such as [\"4\"]"
// +kubebuilder:validation:XValidation:rule="self.operator != 'In' || !has(self.minValues) || (has(self.values) && size(self.values) >= self.minValues)",message="minValues is greater than the number of entries in values; add values or lower minValues"
type NodeSelectorRequirementWithMinValues struct {
	// key is the label that the requirement is about. Labels of the domain karpenter.sh other than
	// karpenter.sh/capacity-type and karpenter.sh/provisioner-name, and kubernetes.io/hostname, are set by the
	// controller and can't be required.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool', 'karpenter.sh/provisioner-name'] || !('.' + self.split('/')[0]).endsWith('.karpenter.sh')",message="requirement key is in the reserved domain karpenter.sh; use karpenter.sh/capacity-type or a label of another domain"
	// +kubebuilder:validation:XValidation:rule="self != 'kubernetes.io/hostname'",message="requirement key kubernetes.io/hostname is set by each node itself; remove this requirement or use a label that several nodes share"
	// +required
	Key string `json:"key"`

	// operator says how the label's value relates to values.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	// +required
	Operator corev1.NodeSelectorOperator `json:"operator"`

	// values are what the operator compares with: one or more for In and NotIn, none for Exists and DoesNotExist,
	// exactly one whole number for Gt, Lt, Gte and Lte.
	// +listType=atomic
	// +optional
	Values []LabelValue `json:"values,omitempty"`

	// minValues asks that the instance types of a launch have at least this many different values of the label, so
	// that the cloud can choose among them. Alpha.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	MinValues *int `json:"minValues,omitempty"`
}
