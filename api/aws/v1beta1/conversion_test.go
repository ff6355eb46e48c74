package v1beta1_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/aws/v1beta1"
)

func toV1(t *testing.T, text string) *awsv1.EC2NodeClass {
	t.Helper()
	in, out := &v1beta1.EC2NodeClass{}, &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(text), in); err != nil {
		t.Fatal(err)
	}
	if err := in.ConvertTo(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func fromV1(t *testing.T, in *awsv1.EC2NodeClass) *v1beta1.EC2NodeClass {
	t.Helper()
	out := &v1beta1.EC2NodeClass{}
	if err := out.ConvertFrom(in); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsLeftUnsaid(t *testing.T) {
	got := toV1(t, "spec: {amiFamily: AL2}").Spec
	if got.Role != "KarpenterNodeRole-${CLUSTER_NAME}" || got.InstanceProfile != nil {
		t.Errorf("the role is %q, the profile %v", got.Role, got.InstanceProfile)
	}
	if len(got.AMISelectorTerms) != 1 || got.AMISelectorTerms[0].Alias != "al2@latest" || got.AMIFamily != nil {
		t.Errorf("the images are %v of %v", got.AMISelectorTerms, got.AMIFamily)
	}
	if tags := got.SubnetSelectorTerms[0].Tags; tags["karpenter.sh/discovery"] != "${CLUSTER_NAME}" {
		t.Errorf("subnets are found by %v", tags)
	}
	if tags := got.SecurityGroupSelectorTerms[0].Tags; tags["karpenter.sh/discovery"] != "${CLUSTER_NAME}" {
		t.Errorf("security groups are found by %v", tags)
	}
	if hops := *got.MetadataOptions.HTTPPutResponseHopLimit; hops != 2 {
		t.Errorf("answers travel %d hops", hops)
	}
	if got := toV1(t, "spec: {amiFamily: AL2, instanceProfile: mine}").Spec; got.Role != "" ||
		*got.InstanceProfile != "mine" {
		t.Errorf("with a profile of its own, the role is %q", got.Role)
	}
}

// TestFilledInPartsCanBeChanged: what was filled in is not shown in v1beta1 until somebody changes it in v1.
func TestFilledInPartsCanBeChanged(t *testing.T) {
	stored := toV1(t, "spec: {amiFamily: AL2}")
	if old := fromV1(t, stored).Spec; old.Role != "" || old.SubnetSelectorTerms != nil || old.AMISelectorTerms != nil {
		t.Errorf("v1beta1 shows what it did not say: %v", old)
	}
	stored.Spec.Role = "mine"
	if old := fromV1(t, stored).Spec; old.Role != "mine" || old.SubnetSelectorTerms != nil {
		t.Errorf("after the role was changed in v1, v1beta1 shows the role %q and subnets %v", old.Role,
			old.SubnetSelectorTerms)
	}
}

func TestUbuntu(t *testing.T) {
	stored := toV1(t, "spec: {amiFamily: Ubuntu, amiSelectorTerms: [{id: ami-1}]}")
	if *stored.Spec.AMIFamily != "AL2" || *stored.Spec.BlockDeviceMappings[0].DeviceName != "/dev/sda1" {
		t.Errorf("the family is %s with %v", *stored.Spec.AMIFamily, stored.Spec.BlockDeviceMappings)
	}
	if got := stored.Annotations[v1beta1.UbuntuAnnotationKey]; got != "amiFamily,blockDeviceMappings" {
		t.Errorf("the annotation says %q", got)
	}
	if old := fromV1(t, stored).Spec; *old.AMIFamily != "Ubuntu" || old.BlockDeviceMappings != nil {
		t.Errorf("back in v1beta1 the family is %s with %v", *old.AMIFamily, old.BlockDeviceMappings)
	}
	if got := toV1(t, "spec: {amiFamily: Ubuntu}").Spec.AMISelectorTerms; len(got) != 1 ||
		got[0].ID != "ami-placeholder" {
		t.Errorf("without terms it looks for %v", got)
	}
}

func TestAliasVersion(t *testing.T) {
	stored := &awsv1.EC2NodeClass{}
	stored.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@v20240807"}}
	old := fromV1(t, stored)
	if *old.Spec.AMIFamily != "AL2023" || old.Annotations[v1beta1.AliasVersionAnnotationKey] != "v20240807" {
		t.Errorf("v1beta1 shows %s with %v", *old.Spec.AMIFamily, old.Annotations)
	}
}
