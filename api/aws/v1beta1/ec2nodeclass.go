package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// EC2NodeClass holds what is particular to Amazon EC2 about the nodes of the pools that refer to it: where they stand,
// what they boot, and as whom.
// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
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
// +kubebuilder:validation:XValidation:rule="!has(self.role) || !has(self.instanceProfile)",message="role and instanceProfile exclude each other; keep one of them"
// +kubebuilder:validation:XValidation:rule="self.amiFamily != 'Custom' || (has(self.amiSelectorTerms) && size(self.amiSelectorTerms) > 0)",message="amiFamily Custom has no images of its own; add amiSelectorTerms"
type EC2NodeClassSpec struct {
	// subnetSelectorTerms find the subnets that instances may stand in. A subnet is used if any term finds it. Without
	// any, those are used that have the tag karpenter.sh/discovery with the cluster's name.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	SubnetSelectorTerms []awsv1.SubnetSelectorTerm `json:"subnetSelectorTerms,omitempty"`

	// securityGroupSelectorTerms find the security groups of the instances. A group is used if any term finds it.
	// Without any, those are used that have the tag karpenter.sh/discovery with the cluster's name.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	SecurityGroupSelectorTerms []awsv1.SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms,omitempty"`

	// associatePublicIPAddress says whether instances get a public address. If it is not set, the subnet decides.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`

	// amiSelectorTerms find the images that instances boot. Of those that fit an instance type, the newest is used.
	// Without any, the newest image that AWS publishes for the family is used.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms,omitempty"`

	// amiFamily says what the image expects of user data and which disks it has. Ubuntu is no family of v1: there it is
	// AL2, which reads the same user data, and it needs amiSelectorTerms that find the images.
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Ubuntu;Custom;Windows2019;Windows2022;Windows2025
	// +required
	AMIFamily *string `json:"amiFamily"`

	// userData is given to instances when they boot, in the form that the AMI family reads. What a node needs to join
	// the cluster is merged into it, except for Custom, whose user data is used as it is.
	// +optional
	UserData *string `json:"userData,omitempty"`

	// role is the name of the IAM role that nodes act as. An instance profile is made for it. Without role and
	// instanceProfile it is KarpenterNodeRole- and the cluster's name.
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
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('kubernetes.io/cluster') && !(key in ['eks:eks-cluster-name', 'karpenter.sh/managed-by', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass']))",message="tags kubernetes.io/cluster..., eks:eks-cluster-name, karpenter.sh/managed-by, karpenter.sh/nodepool, karpenter.sh/nodeclaim and karpenter.k8s.aws/ec2nodeclass are set by the controller; remove them"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// blockDeviceMappings are the disks of the instances. If there are none, the AMI family's are used.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",message="more than one of blockDeviceMappings has rootVolume true; keep it on one"
	// +listType=atomic
	// +optional
	BlockDeviceMappings []*awsv1.BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`

	// instanceStorePolicy says what becomes of the disks that are built into some instance types. RAID0 joins them and
	// puts the files of pods and images there.
	// +optional
	InstanceStorePolicy *awsv1.InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`

	// detailedMonitoring makes CloudWatch measure the instances every minute rather than every five, at a price.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`

	// metadataOptions say how the instance metadata service answers on the nodes.
	// +kubebuilder:default={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`

	// context is handed to EC2 with each launch. EC2 keeps it for uses that it agrees on with a customer.
	// +optional
	Context *string `json:"context,omitempty"`
}

// AMISelectorTerm finds images. What a term says of an image must all hold.
// +kubebuilder:validation:XValidation:rule="has(self.tags) || has(self.id) || has(self.name)",message="an AMI term needs one of tags, id and name"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.tags) || has(self.name) || has(self.owner))",message="an AMI term with an id can't have another field; split it into two terms"
type AMISelectorTerm struct {
	// tags must all be on the image. The value * stands for any. The tag tenon.sh/ssm-parameter stands for v1's
	// ssmParameter: its value names the parameter that holds the id of the image.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != '' && self[key] != '')",message="a tag to select by has an empty key or value; write * for any value"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of the image, such as ami-0a1b2c3d.
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`

	// name of the image, which is not its Name tag. It may contain *.
	// +optional
	Name string `json:"name,omitempty"`

	// owner of the image: an account's id, self, amazon or aws-marketplace. Not set means self and amazon.
	// +optional
	Owner string `json:"owner,omitempty"`
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

	// httpPutResponseHopLimit is how many hops an answer may travel. With 2, the default of this version, it reaches
	// pods that have a network of their own; v1's default is 1.
	// +kubebuilder:default=2
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

// EC2NodeClassStatus is what was found in AWS for a class.
type EC2NodeClassStatus struct {
	// subnets are the ones that subnetSelectorTerms find.
	// +listType=atomic
	// +optional
	Subnets []awsv1.Subnet `json:"subnets,omitempty"`

	// securityGroups are the ones that securityGroupSelectorTerms find.
	// +listType=atomic
	// +optional
	SecurityGroups []awsv1.SecurityGroup `json:"securityGroups,omitempty"`

	// amis are the images that amiSelectorTerms find, the first that fits an instance type being the one it boots.
	// +listType=atomic
	// +optional
	AMIs []awsv1.AMI `json:"amis,omitempty"`

	// instanceProfile is the name of the instance profile that instances are launched with.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// conditions tell whether the class can be used. Ready sums up the others.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
