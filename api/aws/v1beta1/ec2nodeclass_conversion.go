package v1beta1

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/roundtrip"
)

var _ conversion.Convertible = &EC2NodeClass{}

// Annotations of the contract in which one version keeps what only the other can say.
const (
	// UbuntuAnnotationKey on a v1 object says that its amiFamily is AL2 in place of Ubuntu, and what else was filled in
	// for it.
	UbuntuAnnotationKey = "compatibility.karpenter.k8s.aws/v1beta1-ubuntu"
	// AliasVersionAnnotationKey on a v1beta1 object is the version of v1's alias, if that is not latest.
	AliasVersionAnnotationKey = "compatibility.karpenter.k8s.aws/v1-alias-version"
)

// Values of UbuntuAnnotationKey, with commas between them.
const (
	ubuntuFamily       = "amiFamily"
	ubuntuDisks        = "blockDeviceMappings"
	ubuntuIncompatible = "incompatible"
)

// AMIFamilyUbuntu is a family that v1 does not have.
const AMIFamilyUbuntu = "Ubuntu"

// classParts and hubClassParts are what differs between the versions of an EC2NodeClass. What the annotations of the
// contract say is part of it, as fields.
type (
	classParts struct {
		Spec   EC2NodeClassSpec   `json:"spec"`
		Status EC2NodeClassStatus `json:"status"`
		// AliasVersion is what AliasVersionAnnotationKey holds.
		AliasVersion string `json:"-"`
	}
	hubClassParts struct {
		Spec   awsv1.EC2NodeClassSpec   `json:"spec"`
		Status awsv1.EC2NodeClassStatus `json:"status"`
		// Ubuntu is what UbuntuAnnotationKey holds.
		Ubuntu string `json:"-"`
	}
)

// ConvertTo makes a v1 EC2NodeClass of this one.
func (c *EC2NodeClass) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*awsv1.EC2NodeClass)
	if !ok {
		return fmt.Errorf("converting EC2NodeClass %s: %T is not a v1 EC2NodeClass", c.Name, hub)
	}
	in := c.DeepCopy()
	from := &classParts{in.Spec, in.Status, in.Annotations[AliasVersionAnnotationKey]}
	parts := classToHub(from)
	ubuntu := parts.Ubuntu
	roundtrip.Restore(in.Annotations[roundtrip.V1OnlyAnnotationKey], parts)
	parts.Ubuntu = ubuntu
	note, err := roundtrip.Note(classFromHub(parts), from)
	if err != nil {
		return fmt.Errorf("converting EC2NodeClass %s to v1: %w", c.Name, err)
	}
	annotations := roundtrip.Annotate(in.Annotations, roundtrip.V1OnlyAnnotationKey, "")
	annotations = roundtrip.Annotate(annotations, AliasVersionAnnotationKey, "")
	annotations = roundtrip.Annotate(annotations, UbuntuAnnotationKey, ubuntu)
	out.ObjectMeta = in.ObjectMeta
	out.Annotations = roundtrip.Annotate(annotations, roundtrip.V1Beta1OnlyAnnotationKey, note)
	out.Spec, out.Status = parts.Spec, parts.Status
	return nil
}

// ConvertFrom makes this EC2NodeClass of a v1 one.
func (c *EC2NodeClass) ConvertFrom(hub conversion.Hub) error {
	stored, ok := hub.(*awsv1.EC2NodeClass)
	if !ok {
		return fmt.Errorf("converting an EC2NodeClass: %T is not a v1 EC2NodeClass", hub)
	}
	in := stored.DeepCopy()
	from := &hubClassParts{in.Spec, in.Status, in.Annotations[UbuntuAnnotationKey]}
	parts := classFromHub(from)
	version := parts.AliasVersion
	roundtrip.Restore(in.Annotations[roundtrip.V1Beta1OnlyAnnotationKey], parts)
	parts.AliasVersion = version
	note, err := roundtrip.Note(classToHub(parts), from)
	if err != nil {
		return fmt.Errorf("converting EC2NodeClass %s to v1beta1: %w", in.Name, err)
	}
	annotations := roundtrip.Annotate(in.Annotations, roundtrip.V1Beta1OnlyAnnotationKey, "")
	annotations = roundtrip.Annotate(annotations, UbuntuAnnotationKey, "")
	annotations = roundtrip.Annotate(annotations, AliasVersionAnnotationKey, version)
	c.ObjectMeta = in.ObjectMeta
	c.Annotations = roundtrip.Annotate(annotations, roundtrip.V1OnlyAnnotationKey, note)
	c.Spec, c.Status = parts.Spec, parts.Status
	return nil
}

// classToHub converts what v1 can say, and says what v1beta1 leaves unsaid.
func classToHub(in *classParts) *hubClassParts {
	from := in.Spec
	out := &hubClassParts{
		Spec: awsv1.EC2NodeClassSpec{
			SubnetSelectorTerms: from.SubnetSelectorTerms, SecurityGroupSelectorTerms: from.SecurityGroupSelectorTerms,
			AssociatePublicIPAddress: from.AssociatePublicIPAddress, UserData: from.UserData,
			Role: from.Role, InstanceProfile: from.InstanceProfile, Tags: from.Tags,
			BlockDeviceMappings: from.BlockDeviceMappings, InstanceStorePolicy: from.InstanceStorePolicy,
			DetailedMonitoring: from.DetailedMonitoring, MetadataOptions: metadataToHub(from.MetadataOptions),
			Context: from.Context,
		},
		Status: awsv1.EC2NodeClassStatus{
			Subnets: in.Status.Subnets, SecurityGroups: in.Status.SecurityGroups, AMIs: in.Status.AMIs,
			InstanceProfile: in.Status.InstanceProfile, Conditions: in.Status.Conditions,
		},
	}
	imagesToHub(in, out)
	fillIn(&out.Spec)
	return out
}

// classFromHub converts what v1beta1 can say.
func classFromHub(in *hubClassParts) *classParts {
	from := in.Spec
	out := &classParts{
		Spec: EC2NodeClassSpec{
			SubnetSelectorTerms: from.SubnetSelectorTerms, SecurityGroupSelectorTerms: from.SecurityGroupSelectorTerms,
			AssociatePublicIPAddress: from.AssociatePublicIPAddress, UserData: from.UserData,
			Role: from.Role, InstanceProfile: from.InstanceProfile, Tags: from.Tags,
			BlockDeviceMappings: from.BlockDeviceMappings, InstanceStorePolicy: from.InstanceStorePolicy,
			DetailedMonitoring: from.DetailedMonitoring, MetadataOptions: metadataFromHub(from.MetadataOptions),
			Context: from.Context,
		},
		Status: EC2NodeClassStatus{
			Subnets: in.Status.Subnets, SecurityGroups: in.Status.SecurityGroups, AMIs: in.Status.AMIs,
			InstanceProfile: in.Status.InstanceProfile, Conditions: in.Status.Conditions,
		},
	}
	imagesFromHub(in, out)
	return out
}

// fillIn says what v1 requires and v1beta1 may leave unsaid, in words that mean the cluster that the class is in.
func fillIn(spec *awsv1.EC2NodeClassSpec) {
	mine := map[string]string{awsv1.DiscoveryTagKey: awsv1.ClusterNameVariable}
	if len(spec.SubnetSelectorTerms) == 0 {
		spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: mine}}
	}
	if len(spec.SecurityGroupSelectorTerms) == 0 {
		spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: mine}}
	}
	if spec.Role == "" && spec.InstanceProfile == nil {
		spec.Role = awsv1.DefaultRolePrefix + awsv1.ClusterNameVariable
	}
}

// metadataToHub fills in this version's defaults, which differ from v1's in the number of hops.
func metadataToHub(in *MetadataOptions) *awsv1.MetadataOptions {
	if in == nil {
		in = &MetadataOptions{}
	}
	out := awsv1.MetadataOptions(*in)
	if out.HTTPEndpoint == nil {
		out.HTTPEndpoint = new("enabled")
	}
	if out.HTTPProtocolIPv6 == nil {
		out.HTTPProtocolIPv6 = new("disabled")
	}
	if out.HTTPPutResponseHopLimit == nil {
		out.HTTPPutResponseHopLimit = new(int64(2))
	}
	if out.HTTPTokens == nil {
		out.HTTPTokens = new("required")
	}
	return &out
}

func metadataFromHub(in *awsv1.MetadataOptions) *MetadataOptions {
	if in == nil {
		return nil
	}
	out := MetadataOptions(*in)
	return &out
}
