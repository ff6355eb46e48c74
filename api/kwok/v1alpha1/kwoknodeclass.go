package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is the kind that a nodeClassRef names to use the simulated cloud.
const Kind = "KWOKNodeClass"

// KWOKNodeClass holds the settings of the simulated cloud for the pools that refer to it.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=kwoknodeclasses,scope=Cluster,categories=karpenter,shortName={kwoknc,kwokncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type KWOKNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how the simulated cloud behaves.
	// +optional
	Spec KWOKNodeClassSpec `json:"spec,omitempty"`

	// status tells whether the class can be used. A simulated cloud needs nothing first, so a new class is Ready; pools
	// of a class whose Ready condition is made False are blocked.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "True", reason: "Ready", message: "", lastTransitionTime: "2024-01-01T00:00:00Z"}}}
	// +optional
	Status KWOKNodeClassStatus `json:"status,omitzero"`
}

// KWOKNodeClassList is a list of KWOKNodeClasses.
// +kubebuilder:object:root=true
type KWOKNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []KWOKNodeClass `json:"items"`
}

// KWOKNodeClassSpec is how the simulated cloud behaves.
type KWOKNodeClassSpec struct {
	// nodeRegistrationDelay is the time from the launch of an instance until its node joins the cluster, such as 30s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="nodeRegistrationDelay must be a duration in h, m and s of less than 292 years, such as 1h30m"
	// +optional
	NodeRegistrationDelay metav1.Duration `json:"nodeRegistrationDelay,omitzero"`
}

// KWOKNodeClassStatus tells whether the class can be used.
type KWOKNodeClassStatus struct {
	// conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
