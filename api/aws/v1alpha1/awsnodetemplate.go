package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// AWSNodeTemplate holds what is particular to Amazon EC2 about the nodes of the Provisioners that refer to it, in the
// words that came before EC2NodeClass. Tenon makes an EC2NodeClass of the same name from it, and keeps that as the
// template says.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=awsnodetemplates,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="NodeClass",type=string,JSONPath=`.status.nodeClass`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AWSNodeTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what instances should be like.
	// +optional
	Spec AWSNodeTemplateSpec `json:"spec,omitempty"`

	// status is what became of the template.
	// +optional
	Status AWSNodeTemplateStatus `json:"status,omitempty"`
}

// AWSNodeTemplateList is a list of AWSNodeTemplates.
// +kubebuilder:object:root=true
type AWSNodeTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AWSNodeTemplate `json:"items"`
}

// AWSNodeTemplateSpec is what instances should be like.
type AWSNodeTemplateSpec struct {
	AWS `json:",inline"`

	// userData is given to instances when they boot, in the form that the AMI family reads.
	// +optional
	UserData *string `json:"userData,omitempty"`

	// amiSelector finds the images by tags. The key aws::ids holds ids, aws::name names and aws::owners owners, each
	// separated by commas. Without it the AMI family's newest image is used.
	// +optional
	AMISelector map[string]string `json:"amiSelector,omitempty"`

	// detailedMonitoring makes CloudWatch measure the instances every minute rather than every five, at a price.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
}

// AWS holds the settings that an AWSNodeTemplate and the provider of a Provisioner have in common.
type AWS struct {
	// amiFamily says what the image expects of user data and which disks it has.
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom;Windows2019;Windows2022;Ubuntu
	// +optional
	AMIFamily *string `json:"amiFamily,omitempty"`

	// context is handed to EC2 with each launch.
	// +optional
	Context *string `json:"context,omitempty"`

	// instanceProfile is the name of the instance profile of the nodes. If it is not set, it is the one that
	// --aws-default-instance-profile names, else one that is made for the role KarpenterNodeRole-<cluster>.
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`

	// subnetSelector finds the subnets by tags; the value * stands for any. The key aws-ids, or aws::ids, holds ids
	// separated by commas. If there is none, those are used that carry the name of the cluster in the tag
	// karpenter.sh/discovery, or as the tag kubernetes.io/cluster/<cluster>.
	// +optional
	SubnetSelector map[string]string `json:"subnetSelector,omitempty"`

	// securityGroupSelector finds the security groups, as subnetSelector finds subnets.
	// +optional
	SecurityGroupSelector map[string]string `json:"securityGroupSelector,omitempty"`

	// tags are put on everything that is made in EC2 for the nodes.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// launchTemplate was the name of a launch template of your own. There is nothing like it in v1.
	// +optional
	LaunchTemplateName *string `json:"launchTemplate,omitempty"`

	// metadataOptions say how the instance metadata service answers on the nodes.
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`

	// blockDeviceMappings are the disks of the instances. If there are none, the AMI family's are used.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	BlockDeviceMappings []*awsv1.BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
}

// MetadataOptions say how the instance metadata service answers. What is not set is: enabled, IPv6 disabled, 2 hops,
// tokens required.
type MetadataOptions struct {
	// httpEndpoint is enabled, or disabled for none at all.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`

	// httpProtocolIPv6 says whether there is an IPv6 endpoint, too.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`

	// httpPutResponseHopLimit is how many hops an answer may travel.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`

	// httpTokens says whether requests must carry a session token.
	// +kubebuilder:validation:Enum=required;optional
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// AWSNodeTemplateStatus is what became of a template.
type AWSNodeTemplateStatus struct {
	// nodeClass is the name of the EC2NodeClass that was made from the template.
	// +optional
	NodeClass string `json:"nodeClass,omitempty"`

	// conditions tell whether the template can be used. Ready sums up Translated and whether the EC2NodeClass is ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionTypeTranslated is true once the EC2NodeClass says what the template does.
const ConditionTypeTranslated = "Translated"
