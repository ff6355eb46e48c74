package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClass holds what is particular to Amazon EC2 about the nodes of the pools that refer to it: where they stand,
// what they boot, and as whom.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=ec2nodeclasses,scope=Cluster,categories=karpenter,shortName={ec2nc,ec2ncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Role",type=string,priority=1,JSONPath=`.spec.role`
type EC2NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what instances should be like.
	// +required
	Spec EC2NodeClassSpec `json:"spec"`

	// status is what was found in AWS for it.
	// +optional
	Status EC2NodeClassStatus `json:"status,omitempty"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EC2NodeClass `json:"items"`
}

// EC2NodeClassSpec is what instances should be like.
//
// The hash tags say what counts as a change of the spec: what selectors find is compared with each node itself, so
// their text does not, nor does amiFamily, whose meaning may as well come from the alias. The names of this type, of
// the types in it and of their fields go into the hash too (see Hash), so they can't be changed.
// +kubebuilder:validation:XValidation:rule="has(self.role) != has(self.instanceProfile)",message="exactly one of role and instanceProfile must be set; give the role to have an instance profile made for it, or the name of an instance profile that exists"
// +kubebuilder:validation:XValidation:rule="has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",message="amiFamily is required unless amiSelectorTerms has an alias; add amiFamily, such as AL2023, or select by alias, such as al2023@latest"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily == 'Custom' || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.split('@')[0] != self.amiFamily.lowerAscii())",message="amiFamily differs from the family of the alias in amiSelectorTerms; remove amiFamily, or make it the alias's family or Custom"
type EC2NodeClassSpec struct {
	// subnetSelectorTerms find the subnets that instances may stand in. A subnet is used if any term finds it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +required
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms" hash:"ignore"`

	// securityGroupSelectorTerms find the security groups of the instances. A group is used if any term finds it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +required
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms" hash:"ignore"`

	// capacityReservationSelectorTerms find the capacity reservations that instances may be launched into. A
	// reservation is used if any term finds it.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty" hash:"ignore"`

	// placementGroupSelector names the placement group that instances are launched into.
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`

	// associatePublicIPAddress says whether instances get a public address. If it is not set, the subnet decides.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`

	// ipPrefixCount is how many IPv4 prefixes the first network interface is launched with. Changing it does not make
	// nodes drift.
	// +kubebuilder:validation:Minimum=0
	// +optional
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty" hash:"ignore"`

	// amiSelectorTerms find the images that instances boot. Of those that fit an instance type, the newest is used. An
	// alias must be the only term.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="size(self) == 1 || !self.exists(x, has(x.alias))",message="an alias must be the only term of amiSelectorTerms; remove the other terms or the alias"
	// +listType=atomic
	// +required
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms" hash:"ignore"`

	// amiFamily says what the image expects of user data and which disks it has. It follows from an alias; without one
	// it is required. With an alias it may only repeat the alias's family or be Custom.
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom;Windows2019;Windows2022;Windows2025
	// +optional
	AMIFamily *string `json:"amiFamily,omitempty" hash:"ignore"`

	// userData is given to instances when they boot, in the form that the AMI family reads. What a node needs to join
	// the cluster is merged into it, except for Custom, whose user data is used as it is.
	// +optional
	UserData *string `json:"userData,omitempty"`

	// role is the name of the IAM role that nodes act as. An instance profile is made for it.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Role string `json:"role,omitempty"`

	// instanceProfile is the name of an existing instance profile, in place of a role.
	// +kubebuilder:validation:MinLength=1
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`

	// tags are put on everything that is made in EC2 for the nodes: instances, volumes, network interfaces, launch
	// templates.
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != '')",message="a tag has an empty key; remove it or name it"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('kubernetes.io/cluster') && !(key in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass']))",message="tags kubernetes.io/cluster..., eks:eks-cluster-name, karpenter.sh/nodepool, karpenter.sh/nodeclaim and karpenter.k8s.aws/ec2nodeclass are set by the controller; remove them"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// kubelet holds settings of the kubelet, by the names of its KubeletConfiguration. maxPods, podsPerCore,
	// kubeReserved, systemReserved and evictionHard also decide how much room a node is expected to have. Which others
	// have an effect depends on the AMI family. They are checked by the controller, which says what is wrong in
	// ValidationSucceeded. What the API server checks of it, and this text for users, stand in kubelet.schema.yaml.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	Kubelet KubeletConfiguration `json:"kubelet,omitempty" hash:"ignore"`

	// blockDeviceMappings are the disks of the instances. If there are none, the AMI family's are used.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",message="more than one of blockDeviceMappings has rootVolume true; keep it on one"
	// +listType=atomic
	// +optional
	BlockDeviceMappings []*BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`

	// instanceStorePolicy says what becomes of the disks that are built into some instance types. RAID0 joins them and
	// puts the files of pods and images there.
	// +optional
	InstanceStorePolicy *InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`

	// networkInterfaces are the interfaces that instances are launched with, in place of the single one that they have
	// otherwise.
	// +kubebuilder:validation:MaxItems=150
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && x.interfaceType == 'interface')",message="networkInterfaces has no first interface; add one with networkCardIndex 0, deviceIndex 0 and interfaceType interface"
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, y.networkCardIndex == x.networkCardIndex && y.deviceIndex == x.deviceIndex))",message="two of networkInterfaces have the same networkCardIndex and deviceIndex; change one"
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.interfaceType != 'efa-only' || self.exists_one(y, y.networkCardIndex == x.networkCardIndex && y.interfaceType == 'efa-only'))",message="a network card has more than one interface of type efa-only; keep one on each card"
	// +listType=atomic
	// +optional
	NetworkInterfaces []*NetworkInterface `json:"networkInterfaces,omitempty"`

	// detailedMonitoring makes CloudWatch measure the instances every minute rather than every five, at a price.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`

	// metadataOptions say how the instance metadata service answers on the nodes.
	// +kubebuilder:default={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`

	// connectionTracking says how long idle connections through the network interfaces are remembered. It needs
	// instance types of the Nitro system.
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`

	// context is handed to EC2 with each launch. EC2 keeps it for uses that it agrees on with a customer.
	// +optional
	Context *string `json:"context,omitempty"`

	// cpuOptions are settings of the processors. Only instance types that have what they ask for are launched.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`
}

// EC2NodeClassStatus is what was found in AWS for a class.
type EC2NodeClassStatus struct {
	// subnets are the ones that subnetSelectorTerms find.
	// +listType=atomic
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`

	// securityGroups are the ones that securityGroupSelectorTerms find.
	// +listType=atomic
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`

	// capacityReservations are the ones that capacityReservationSelectorTerms find and that can be used.
	// +listType=atomic
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`

	// amis are the images that amiSelectorTerms find, the first that fits an instance type being the one it boots.
	// +listType=atomic
	// +optional
	AMIs []AMI `json:"amis,omitempty"`

	// instanceProfile is the name of the instance profile that instances are launched with.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// conditions tell whether the class can be used. Ready sums up the others.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
