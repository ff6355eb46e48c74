package translate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
)

// familyUbuntu is a family that v1 does not have.
const familyUbuntu = "Ubuntu"

// classOf is the settings of an AWSNodeTemplate, or of a provider, on their way to an EC2NodeClass.
type classOf struct {
	// field is where the settings stand in the old object.
	field    string
	spec     *v1alpha1.AWSNodeTemplateSpec
	to       Target
	class    awsv1.EC2NodeClass
	notes    []Note
	problems []Problem
}

// ec2Class says what settings mean in v1. The class has no name yet.
func ec2Class(field string, spec *v1alpha1.AWSNodeTemplateSpec, to Target) (*awsv1.EC2NodeClass, []Note, []Problem) {
	c := &classOf{field: field, spec: spec.DeepCopy(), to: to}
	c.class.TypeMeta = metav1.TypeMeta{APIVersion: awsv1.GroupVersion().String(), Kind: awsv1.Kind}
	c.network()
	c.images()
	c.identity()
	c.rest()
	return &c.class, c.notes, c.problems
}

func (c *classOf) note(name, at, format string, args ...any) {
	c.notes = append(c.notes, Note{Field: c.field + "." + name, At: at, Text: fmt.Sprintf(format, args...)})
}

func (c *classOf) wrong(name, value, why, fix string) {
	c.problems = append(c.problems, Problem{Field: c.field + "." + name, Value: value, Why: why, Fix: fix})
}

// network: subnets and security groups.
func (c *classOf) network() {
	subnets := c.selector("subnetSelector", "spec.subnetSelectorTerms", c.spec.SubnetSelector)
	for _, s := range subnets {
		c.class.Spec.SubnetSelectorTerms = append(c.class.Spec.SubnetSelectorTerms,
			awsv1.SubnetSelectorTerm{ID: s.id, Tags: s.tags})
	}
	groups := c.selector("securityGroupSelector", "spec.securityGroupSelectorTerms", c.spec.SecurityGroupSelector)
	for _, s := range groups {
		c.class.Spec.SecurityGroupSelectorTerms = append(c.class.Spec.SecurityGroupSelectorTerms,
			awsv1.SecurityGroupSelectorTerm{ID: s.id, Tags: s.tags})
	}
}

// selector reads a selector of the network; without one, what carries the name of the cluster is meant.
func (c *classOf) selector(name, at string, selector map[string]string) []selected {
	if len(selector) > 0 {
		terms, problem := terms(selector)
		if problem != nil {
			c.wrong(name, "", problem.Why, problem.Fix)
		}
		return terms
	}
	c.note(name, at, "it was not given, so what carries the name of the cluster in these tags is meant")
	if c.to.Cluster == "" {
		return []selected{{tags: map[string]string{awsv1.DiscoveryTagKey: awsv1.ClusterNameVariable}}}
	}
	return []selected{
		{tags: map[string]string{awsv1.DiscoveryTagKey: c.to.Cluster}},
		{tags: map[string]string{awsv1.ClusterTagPrefix + c.to.Cluster: "*"}},
	}
}

// images: which images, and what family they are of.
func (c *classOf) images() {
	family := ""
	if c.spec.AMIFamily != nil {
		family = *c.spec.AMIFamily
	}
	if family == familyUbuntu {
		c.ubuntu()
		return
	}
	if !slices.Contains(append(awsv1.AMIFamilies(), "", awsv1.AMIFamilyCustom), family) {
		c.wrong("amiFamily", family, "is not a family of images",
			"use "+strings.Join(awsv1.AMIFamilies(), ", ")+" or "+awsv1.AMIFamilyCustom)
		return
	}
	if len(c.spec.AMISelector) > 0 {
		// Own images of no named family were expected to start as Amazon Linux 2 does.
		family = cmp.Or(family, awsv1.AMIFamilyAL2)
		c.class.Spec.AMIFamily = &family
		c.ownImages()
		return
	}
	if family == awsv1.AMIFamilyCustom {
		c.wrong("amiSelector", "", "is missing, and the family Custom has no images of its own",
			"select images, for instance by aws::ids: ami-0a1b2c3d")
		return
	}
	if family == "" {
		family = awsv1.AMIFamilyAL2023
		c.note("amiFamily", "spec.amiSelectorTerms",
			"it was not given, which meant Amazon Linux 2; AWS publishes no such images since Kubernetes 1.33, so it "+
				"is Amazon Linux 2023 (write amiFamily: AL2 to keep the other)")
	}
	c.class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: strings.ToLower(family) + "@" +
		awsv1.AliasVersionLatest}}
}

// ubuntu: v1 has no such family. Its images start as Amazon Linux 2 does, from another disk.
func (c *classOf) ubuntu() {
	if len(c.spec.AMISelector) == 0 {
		c.wrong("amiFamily", familyUbuntu, "is not a family in v1, and no images are selected",
			"select the images with amiSelector, for instance by aws::name and aws::owners, or use another family")
		return
	}
	family := awsv1.AMIFamilyAL2
	c.class.Spec.AMIFamily = &family
	c.ownImages()
	c.note("amiFamily", "spec.amiFamily", "Ubuntu is not a family in v1; its images start as those of AL2 do")
	if len(c.spec.BlockDeviceMappings) == 0 {
		size, device, kind, encrypted := resource.MustParse("20Gi"), "/dev/sda1", "gp3", true
		c.spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{DeviceName: &device, RootVolume: true,
			EBS: &awsv1.BlockDevice{VolumeSize: &size, VolumeType: &kind, Encrypted: &encrypted}}}
		c.note("blockDeviceMappings", "spec.blockDeviceMappings",
			"the disk of Ubuntu's images is written down, because AL2 has another")
	}
}

// ownImages reads amiSelector.
func (c *classOf) ownImages() {
	found, problem := imageTerms(c.spec.AMISelector)
	if problem != nil {
		c.wrong("amiSelector", "", problem.Why, problem.Fix)
		return
	}
	c.class.Spec.AMISelectorTerms = found
	for _, term := range found {
		if len(term.Tags) > 0 {
			c.note("amiSelector", "spec.amiSelectorTerms",
				"tags of images no longer say which instance types an image is for")
			return
		}
	}
}

// identity: as whom nodes act.
func (c *classOf) identity() {
	profile := c.spec.InstanceProfile
	switch {
	case profile != nil && *profile != "":
		c.class.Spec.InstanceProfile = profile
	case c.to.InstanceProfile != "":
		c.class.Spec.InstanceProfile = &c.to.InstanceProfile
		c.note("instanceProfile", "spec.instanceProfile", "it was not given, so it is the default one")
	default:
		c.class.Spec.Role = awsv1.DefaultRolePrefix + cmp.Or(c.to.Cluster, awsv1.ClusterNameVariable)
		c.note("instanceProfile", "spec.role",
			"it was not given, so one is made for the role that has the name of the cluster")
	}
}

// wholeSize is the size of a volume as v1 takes it.
var wholeSize = regexp.MustCompile(`^[1-9][0-9]{0,4}(Gi|G|Ti|T)$`)

// rest is what has kept its name.
func (c *classOf) rest() {
	if name := c.spec.LaunchTemplateName; name != nil {
		c.wrong("launchTemplate", *name, "can't be used in v1, which makes its launch templates by itself",
			"say with the other fields what the launch template says, and remove it")
	}
	spec := &c.class.Spec
	spec.UserData, spec.Context, spec.DetailedMonitoring = c.spec.UserData, c.spec.Context, c.spec.DetailedMonitoring
	spec.Tags, spec.BlockDeviceMappings = maps.Clone(c.spec.Tags), c.spec.BlockDeviceMappings
	for i, d := range spec.BlockDeviceMappings {
		if d == nil || d.EBS == nil || d.EBS.VolumeSize == nil || wholeSize.MatchString(d.EBS.VolumeSize.String()) {
			continue
		}
		c.wrong(fmt.Sprintf("blockDeviceMappings[%d].ebs.volumeSize", i), d.EBS.VolumeSize.String(),
			"is not a whole number of Gi, G, Ti or T", "write it as such, for instance 100Gi")
	}
	c.metadata()
}

// metadata writes down what the older default was: two hops, so that pods reach the metadata service.
func (c *classOf) metadata() {
	given := c.spec.MetadataOptions
	if given == nil {
		given = &v1alpha1.MetadataOptions{}
	}
	out := &awsv1.MetadataOptions{HTTPEndpoint: or(given.HTTPEndpoint, "enabled"),
		HTTPProtocolIPv6:        or(given.HTTPProtocolIPv6, "disabled"),
		HTTPPutResponseHopLimit: or(given.HTTPPutResponseHopLimit, 2), HTTPTokens: or(given.HTTPTokens, "required")}
	if given.HTTPPutResponseHopLimit == nil {
		c.note("metadataOptions.httpPutResponseHopLimit", "spec.metadataOptions.httpPutResponseHopLimit",
			"it was not given, which meant 2; "+
				"the default of v1 is 1, with which pods do not reach the metadata service")
	}
	c.class.Spec.MetadataOptions = out
}

// or is a value or, if there is none, another.
func or[T any](given *T, otherwise T) *T {
	if given != nil {
		return given
	}
	return &otherwise
}

// fieldNames are the names of a struct's fields in JSON, with those of the structs that it embeds.
func fieldNames(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, fieldNames(f.Type)...)
		case name != "" && name != "-":
			out = append(out, name)
		}
	}
	return out
}
