package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The type below has the fields of corev1.Taint, so corev1.Taint(t) and Taint(t) convert. It is a type of its own
// because the generated schema takes its patterns and its enum from here.

// Taint is put on a node when it is launched.
type Taint struct {
	// key of the taint, such as example.com/dedicated.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +required
	Key string `json:"key"`

	// value of the taint.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +optional
	Value string `json:"value,omitempty"`

	// effect on pods that don't tolerate the taint.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +required
	Effect corev1.TaintEffect `json:"effect"`

	// timeAdded is when the taint was added.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// CoreTaints returns taints as Kubernetes has them on nodes; nil if there are none.
func CoreTaints(taints []Taint) []corev1.Taint {
	var out []corev1.Taint
	for i := range taints {
		out = append(out, corev1.Taint(*taints[i].DeepCopy()))
	}
	return out
}
