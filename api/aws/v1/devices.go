package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// BlockDeviceMapping is one disk of an instance.
type BlockDeviceMapping struct {
	// deviceName is the name under which EC2 attaches the disk, such as /dev/xvda.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`

	// ebs describes the volume.
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`

	// rootVolume marks the disk that holds the kubelet's files, whose size is what pods get as ephemeral storage. At
	// most one disk is.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice is a volume of Elastic Block Store.
// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSize)",message="a volume needs volumeSize or snapshotID"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && size(self.snapshotID) > 0)",message="volumeInitializationRate is for volumes that start from a snapshot; add snapshotID or remove it"
type BlockDevice struct {
	// deleteOnTermination removes the volume together with the instance.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`

	// encrypted makes EC2 encrypt the volume.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// iops is how many operations a second are paid for, on volumes of type gp3, io1 and io2.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`

	// kmsKeyID is the key to encrypt with: its id, alias or ARN.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`

	// snapshotID is the snapshot that the volume starts from.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`

	// throughput is how many MiB a second are paid for, on volumes of type gp3.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`

	// volumeInitializationRate is at how many MiB a second the snapshot is copied to the volume.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`

	// volumeSize is a whole number of Gi, G, Ti or T, such as 100Gi: at most 59000Gi, 64000G, 58Ti or 64T.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,4}(Gi|G|Ti|T)$`
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[1-9][0-9]{0,4}(Gi|G|Ti|T)$') || quantity(self).compareTo(quantity(self.endsWith('Gi') ? '59000Gi' : self.endsWith('Ti') ? '58Ti' : '64T')) <= 0",message="volumeSize must be at most 59000Gi, 64000G, 58Ti or 64T"
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty" hash:"string"`

	// volumeType is the kind of volume.
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// InstanceStorePolicy says what becomes of disks that are built into an instance.
// +kubebuilder:validation:Enum=RAID0
type InstanceStorePolicy string

// InstanceStorePolicyRAID0 joins the disks and puts the files of the kubelet and the container runtime there.
const InstanceStorePolicyRAID0 InstanceStorePolicy = "RAID0"

// InterfaceType is what a network interface carries.
// +kubebuilder:validation:Enum=interface;efa-only
type InterfaceType string

const (
	// InterfaceTypeInterface carries IP.
	InterfaceTypeInterface InterfaceType = "interface"
	// InterfaceTypeEFAOnly carries the Elastic Fabric Adapter's traffic and has no address.
	InterfaceTypeEFAOnly InterfaceType = "efa-only"
)

// NetworkInterface is one interface that an instance is launched with.
type NetworkInterface struct {
	// networkCardIndex is the card that the interface is on.
	// +kubebuilder:validation:Minimum=0
	// +required
	NetworkCardIndex int32 `json:"networkCardIndex"`

	// deviceIndex is its place on the card.
	// +kubebuilder:validation:Minimum=0
	// +required
	DeviceIndex int32 `json:"deviceIndex"`

	// interfaceType is what it carries.
	// +required
	InterfaceType InterfaceType `json:"interfaceType"`
}

// MetadataOptions say how the instance metadata service answers.
type MetadataOptions struct {
	// httpEndpoint switches the service on or off.
	// +kubebuilder:default=enabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`

	// httpProtocolIPv6 makes it answer on IPv6 as well.
	// +kubebuilder:default=disabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`

	// httpPutResponseHopLimit is how many hops an answer may travel. With 1 it stays on the node and does not reach
	// pods that have a network of their own.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`

	// httpTokens says whether requests must carry a session token, which keeps simple forgeries out.
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;optional
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// ConnectionTracking says for how many seconds idle connections are remembered.
// +kubebuilder:validation:XValidation:rule="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",message="connectionTracking needs at least one of tcpEstablishedTimeout, udpStreamTimeout and udpTimeout"
type ConnectionTracking struct {
	// tcpEstablishedTimeout is for TCP connections that are established.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=432000
	// +optional
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`

	// udpStreamTimeout is for UDP flows that went back and forth more than once.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=180
	// +optional
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`

	// udpTimeout is for the other UDP flows.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=60
	// +optional
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// CPUOptions are settings of the processors.
type CPUOptions struct {
	// nestedVirtualization lets virtual machines run on the instances. If it is enabled, only types that can do so are
	// launched.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}
