package v1beta1

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// ssmParameterTag is the tag that stands for v1's ssmParameter in a term.
const ssmParameterTag = "tenon.sh/ssm-parameter"

// noImage is the id of an image that does not exist: v1 needs a term, and an Ubuntu class without any finds nothing.
const noImage = "ami-placeholder"

// imagesToHub converts what says which images are booted: without terms, v1's alias of the family.
func imagesToHub(in *classParts, out *hubClassParts) {
	for _, term := range in.Spec.AMISelectorTerms {
		out.Spec.AMISelectorTerms = append(out.Spec.AMISelectorTerms, termToHub(term))
	}
	family := ""
	if in.Spec.AMIFamily != nil {
		family = *in.Spec.AMIFamily
	}
	switch {
	case family == AMIFamilyUbuntu:
		ubuntuToHub(out)
	case len(in.Spec.AMISelectorTerms) > 0 || family == awsv1.AMIFamilyCustom || family == "":
		out.Spec.AMIFamily = in.Spec.AMIFamily
	default:
		version := in.AliasVersion
		if version == "" {
			version = awsv1.AliasVersionLatest
		}
		out.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: strings.ToLower(family) + "@" + version}}
	}
}

// imagesFromHub is imagesToHub the other way round.
func imagesFromHub(in *hubClassParts, out *classParts) {
	for _, term := range in.Spec.AMISelectorTerms {
		if term.Alias == "" {
			out.Spec.AMISelectorTerms = append(out.Spec.AMISelectorTerms, termFromHub(term))
		}
	}
	class := awsv1.EC2NodeClass{Spec: in.Spec}
	out.Spec.AMIFamily = new(class.AMIFamily())
	if alias, ok := class.Alias(); ok && alias.Version != awsv1.AliasVersionLatest {
		out.AliasVersion = alias.Version
	}
	if in.Ubuntu != "" {
		ubuntuFromHub(in, out)
	}
}

// ubuntuToHub makes a class of the family AL2 of one of Ubuntu: both read the same user data, but their disks differ.
func ubuntuToHub(out *hubClassParts) {
	notes := []string{ubuntuFamily}
	out.Spec.AMIFamily = new(awsv1.AMIFamilyAL2)
	if len(out.Spec.BlockDeviceMappings) == 0 {
		notes = append(notes, ubuntuDisks)
		out.Spec.BlockDeviceMappings = disksOfUbuntu()
	}
	if len(out.Spec.AMISelectorTerms) == 0 {
		notes = append(notes, ubuntuIncompatible)
		out.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: noImage}}
	}
	out.Ubuntu = strings.Join(notes, ",")
}

// disksOfUbuntu are the disks of an Ubuntu image.
func disksOfUbuntu() []*awsv1.BlockDeviceMapping {
	return []*awsv1.BlockDeviceMapping{{
		DeviceName: new("/dev/sda1"), RootVolume: true,
		EBS: &awsv1.BlockDevice{Encrypted: new(true), VolumeType: new("gp3"),
			VolumeSize: new(resource.MustParse("20Gi"))},
	}}
}

// ubuntuFromHub takes out what ubuntuToHub put in, as far as nobody has changed it since.
func ubuntuFromHub(in *hubClassParts, out *classParts) {
	if in.Spec.AMIFamily == nil || *in.Spec.AMIFamily != awsv1.AMIFamilyAL2 {
		return
	}
	notes := strings.Split(in.Ubuntu, ",")
	out.Spec.AMIFamily = new(AMIFamilyUbuntu)
	if slices.Contains(notes, ubuntuDisks) && equality.Semantic.DeepEqual(out.Spec.BlockDeviceMappings,
		disksOfUbuntu()) {
		out.Spec.BlockDeviceMappings = nil
	}
	terms := out.Spec.AMISelectorTerms
	if slices.Contains(notes, ubuntuIncompatible) && len(terms) == 1 && terms[0].ID == noImage {
		out.Spec.AMISelectorTerms = nil
	}
}

func termToHub(in AMISelectorTerm) awsv1.AMISelectorTerm {
	if parameter := in.Tags[ssmParameterTag]; parameter != "" && len(in.Tags) == 1 {
		return awsv1.AMISelectorTerm{SSMParameter: parameter}
	}
	return awsv1.AMISelectorTerm{Tags: in.Tags, ID: in.ID, Name: in.Name, Owner: in.Owner}
}

func termFromHub(in awsv1.AMISelectorTerm) AMISelectorTerm {
	if in.SSMParameter != "" {
		return AMISelectorTerm{Tags: map[string]string{ssmParameterTag: in.SSMParameter}}
	}
	return AMISelectorTerm{Tags: in.Tags, ID: in.ID, Name: in.Name, Owner: in.Owner}
}
