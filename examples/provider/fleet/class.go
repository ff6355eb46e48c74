package fleet

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kind of NodeClass, and the domain of the labels.
const (
	Group = "fleet.example.com"
	Kind  = "FleetNodeClass"
)

// FleetNodeClass is what a NodePool refers to: settings of the cloud. crds/fleetnodeclasses.yaml defines it.
type FleetNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FleetNodeClassSpec   `json:"spec,omitempty"`
	Status FleetNodeClassStatus `json:"status,omitempty"`
}

// FleetNodeClassSpec is what people write.
type FleetNodeClassSpec struct {
	// Zones are where machines may be started; all if it is empty.
	Zones []string `json:"zones,omitempty"`
}

// FleetNodeClassStatus says whether the class can be used. Tenon reads the condition Ready. Here the definition says
// that a new class is ready; where the cloud has to be asked first, a controller of yours sets it.
type FleetNodeClassStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FleetNodeClassList is a list of them.
type FleetNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FleetNodeClass `json:"items"`
}

// GroupVersion is that of the kind.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: "v1"} }

// AddToScheme makes the kind known to clients.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &FleetNodeClass{}, &FleetNodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}

// DeepCopyObject is what controller-gen writes for larger kinds.
func (c *FleetNodeClass) DeepCopyObject() runtime.Object { return c.deepCopy() }

func (c *FleetNodeClass) deepCopy() *FleetNodeClass {
	out := *c
	out.ObjectMeta = *c.ObjectMeta.DeepCopy()
	out.Spec.Zones = slices.Clone(c.Spec.Zones)
	out.Status.Conditions = slices.Clone(c.Status.Conditions)
	return &out
}

// DeepCopyObject is what controller-gen writes for larger kinds.
func (l *FleetNodeClassList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].deepCopy())
	}
	return &out
}
