package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Subnet is a subnet that a class found.
type Subnet struct {
	// id of the subnet.
	// +required
	ID string `json:"id"`

	// zone is the name of its availability zone, such as us-west-2a.
	// +required
	Zone string `json:"zone"`

	// zoneID is the zone's id, such as usw2-az1, which is the same zone in every account.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group that a class found.
type SecurityGroup struct {
	// id of the group.
	// +required
	ID string `json:"id"`

	// name of the group.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is an image that a class found.
type AMI struct {
	// id of the image.
	// +required
	ID string `json:"id"`

	// deprecated tells that its owner no longer recommends it.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`

	// name of the image.
	// +optional
	Name string `json:"name,omitempty"`

	// requirements are what an instance type must have to boot it.
	// +listType=atomic
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservationType is how a reservation was bought.
// +kubebuilder:validation:Enum=default;capacity-block
type CapacityReservationType string

const (
	// CapacityReservationTypeDefault is a reservation on demand.
	CapacityReservationTypeDefault CapacityReservationType = "default"
	// CapacityReservationTypeCapacityBlock is a block that was bought for a time.
	CapacityReservationTypeCapacityBlock CapacityReservationType = "capacity-block"
)

// CapacityReservationState tells how long a reservation lasts.
// +kubebuilder:validation:Enum=active;expiring
type CapacityReservationState string

const (
	// CapacityReservationStateActive can be used.
	CapacityReservationStateActive CapacityReservationState = "active"
	// CapacityReservationStateExpiring is a capacity block so near its end that EC2 takes its instances back.
	CapacityReservationStateExpiring CapacityReservationState = "expiring"
)

// CapacityReservation is a reservation that a class found.
type CapacityReservation struct {
	// availabilityZone is the name of the zone that the capacity is in.
	// +required
	AvailabilityZone string `json:"availabilityZone"`

	// endTime is when the reservation ends; not set means that it lasts until it is cancelled.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// id of the reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +required
	ID string `json:"id"`

	// instanceMatchCriteria tells which launches it takes.
	// +kubebuilder:validation:Enum=open;targeted
	// +required
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`

	// instanceType is the type that is reserved.
	// +required
	InstanceType string `json:"instanceType"`

	// ownerID is the account that owns it.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +required
	OwnerID string `json:"ownerID"`

	// reservationType is how it was bought.
	// +kubebuilder:default=default
	// +optional
	ReservationType CapacityReservationType `json:"reservationType,omitempty"`

	// state tells how long it lasts.
	// +kubebuilder:default=active
	// +optional
	State CapacityReservationState `json:"state,omitempty"`

	// interruptible tells that its owner may take the capacity back while instances run in it.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
}
