package image_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
)

func TestAliasOfEveryFamily(t *testing.T) {
	w := newWorld()
	w.version = "1.32"
	const (
		eks     = "/aws/service/eks/optimized-ami/1.32/"
		rocket  = "/aws/service/bottlerocket/aws-k8s-1.32"
		windows = "/aws/service/ami-windows-latest/"
	)
	for parameter, id := range map[string]string{
		eks + "amazon-linux-2/recommended/image_id":                                                 "ami-2x",
		eks + "amazon-linux-2-arm64/recommended/image_id":                                           "ami-2a",
		eks + "amazon-linux-2-gpu/recommended/image_id":                                             "ami-2g",
		eks + "amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v20250101/image_id":                      "ami-2o",
		rocket + "/x86_64/latest/image_id":                                                          "ami-bx",
		rocket + "/arm64/latest/image_id":                                                           "ami-ba",
		rocket + "-nvidia/x86_64/latest/image_id":                                                   "ami-bn",
		rocket + "/x86_64/1.46.0/image_id":                                                          "ami-bo",
		windows + "Windows_Server-2019-English-Core-EKS_Optimized-1.32/image_id":                    "ami-w9",
		windows + "Windows_Server-2022-English-Core-EKS_Optimized-1.32/image_id":                    "ami-w2",
		windows + "Windows_Server-2025-English-Core-EKS_Optimized-1.32/image_id":                    "ami-w5",
		eks + "amazon-linux-2023/x86_64/neuron/recommended/image_id":                                "ami-3n",
		eks + "amazon-linux-2023/arm64/standard/recommended/image_id":                               "ami-3a",
		eks + "amazon-linux-2023/arm64/nvidia/recommended/image_id":                                 "ami-3g",
		eks + "amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.32-v2/image_id": "ami-3o",
	} {
		w.parameters[parameter] = id
		change := amazon
		if strings.Contains(parameter, "arm64") {
			change = func(i *ec2types.Image) { amazon(i); arm64(i) }
		}
		w.publish(id, "image "+id, 1, change)
	}
	const none = "no-instance-accelerator-count no-instance-gpu-count"
	for text, want := range map[string][]string{
		"al2@latest": {"ami-2a arm64 " + none, "ami-2g amd64 instance-accelerator-count",
			"ami-2g amd64 instance-gpu-count", "ami-2x amd64 " + none},
		"al2@v20250101": {"ami-2o amd64 instance-accelerator-count", "ami-2o amd64 instance-gpu-count"},
		"al2023@latest": {"ami-3a arm64 " + none, "ami-3g arm64 instance-gpu-count", "ami-3n amd64 " +
			"instance-accelerator-count"},
		"al2023@v2": {"ami-3o arm64 instance-gpu-count"},
		"bottlerocket@latest": {"ami-ba arm64 " + none, "ami-bn amd64 instance-gpu-count", "ami-bx amd64 " + none,
			"ami-bx amd64 instance-accelerator-count"},
		"bottlerocket@v1.46.0": {"ami-bo amd64 " + none, "ami-bo amd64 instance-accelerator-count"},
		"bottlerocket@1.46.0":  {"ami-bo amd64 " + none, "ami-bo amd64 instance-accelerator-count"},
		"windows2019@latest":   {"ami-w9 amd64 windows 10.0.17763"},
		"windows2022@latest":   {"ami-w2 amd64 windows 10.0.20348"},
		"windows2025@latest":   {"ami-w5 amd64 windows 10.0.26100"},
	} {
		expect(t, text, find(t, w.finder(), alias(text)), want...)
	}
}

// An alias also works for a class whose user data is its own.
func TestAliasOfACustomFamily(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	c := alias("al2023@latest")
	c.Spec.AMIFamily = new(awsv1.AMIFamilyCustom)
	if got := find(t, w.finder(), c); strings.Count(got, "\n") != 4 {
		t.Errorf("have\n%s", got)
	}
}

func TestTerms(t *testing.T) {
	w := newWorld()
	w.publish("ami-mine", "base-1", 9, tag("team", "pears"), tag("Name", "golden"))
	w.publish("ami-mine2", "base-2", 5, tag("team", "plums"))
	w.publish("ami-arm", "base-2", 7, arm64, tag("team", "pears"))
	w.publish("ami-amazon", "base-3", 2, amazon)
	w.publish("ami-stranger", "base-4", 1, func(i *ec2types.Image) { i.OwnerId = new("999988887777") })
	w.publish("ami-mac", "base-5", 1, func(i *ec2types.Image) { i.Architecture = ec2types.ArchitectureValuesArm64Mac })
	w.publish("ami-pending", "base-6", 0, func(i *ec2types.Image) { i.State = ec2types.ImageStatePending })
	w.parameters["/our/image"] = "ami-mine2"
	w.pageSize = 2
	for name, c := range map[string]struct {
		terms []awsv1.AMISelectorTerm
		want  []string
	}{
		"id": {[]awsv1.AMISelectorTerm{{ID: "ami-mine"}}, []string{"ami-mine amd64"}},
		"ids, the newest": {[]awsv1.AMISelectorTerm{{ID: "ami-mine"}, {ID: "ami-mine2"}, {ID: "ami-arm"}},
			[]string{"ami-mine2 amd64", "ami-arm arm64"}},
		"id of a stranger": {[]awsv1.AMISelectorTerm{{ID: "ami-stranger"}}, []string{"ami-stranger amd64"}},
		"name":             {[]awsv1.AMISelectorTerm{{Name: "base-1"}}, []string{"ami-mine amd64"}},
		"name, not a stranger's": {[]awsv1.AMISelectorTerm{{Name: "base-*"}}, []string{"ami-amazon amd64",
			"ami-arm arm64"}},
		"name and owner": {[]awsv1.AMISelectorTerm{{Name: "base-*", Owner: "self"}},
			[]string{"ami-mine2 amd64", "ami-arm arm64"}},
		"name and account": {[]awsv1.AMISelectorTerm{{Name: "base-*", Owner: "999988887777"}},
			[]string{"ami-stranger amd64"}},
		"tag": {[]awsv1.AMISelectorTerm{{Tags: map[string]string{"team": "pears"}}},
			[]string{"ami-arm arm64", "ami-mine amd64"}},
		"tags must all be there": {[]awsv1.AMISelectorTerm{{Tags: map[string]string{"team": "pears",
			"Name": "golden"}}}, []string{"ami-mine amd64"}},
		"tag of any value": {[]awsv1.AMISelectorTerm{{Tags: map[string]string{"team": "*"}}},
			[]string{"ami-mine2 amd64", "ami-arm arm64"}},
		"tag with a star": {[]awsv1.AMISelectorTerm{{Tags: map[string]string{"team": "pl*"}}},
			[]string{"ami-mine2 amd64"}},
		"name and tag": {[]awsv1.AMISelectorTerm{{Name: "base-2", Tags: map[string]string{"team": "pears"}}},
			[]string{"ami-arm arm64"}},
		"parameter": {[]awsv1.AMISelectorTerm{{SSMParameter: "/our/image"}}, []string{"ami-mine2 amd64"}},
		"terms are alternatives": {[]awsv1.AMISelectorTerm{{Name: "base-1"}, {ID: "ami-arm"}},
			[]string{"ami-arm arm64", "ami-mine amd64"}},
		"one of two finds enough": {[]awsv1.AMISelectorTerm{{Name: "nobody's"}, {ID: "ami-arm"}},
			[]string{"ami-arm arm64"}},
	} {
		expect(t, name, find(t, w.finder(), class(c.terms...)), c.want...)
	}
}

func TestDeprecatedImages(t *testing.T) {
	w := newWorld()
	w.publish("ami-old", "a", 30)
	w.publish("ami-withdrawn", "b", 3, deprecatedAt(w.now.Add(-time.Minute)))
	w.publish("ami-ending", "c", 20, deprecatedAt(w.now.Add(time.Hour)))
	all := class(awsv1.AMISelectorTerm{Name: "*"})
	expect(t, "one that is recommended is better than a newer one that is not", find(t, w.finder(), all),
		"ami-ending amd64")
	expect(t, "one that is asked for is used", find(t, w.finder(), class(awsv1.AMISelectorTerm{ID: "ami-withdrawn"})),
		"ami-withdrawn! amd64")
	f := w.finder()
	expect(t, "before its end", find(t, f, all), "ami-ending amd64")
	w.now = w.now.Add(2 * time.Hour)
	expect(t, "after its end", find(t, f, all), "ami-old amd64")
	if in := w.described[0]; in.IncludeDeprecated == nil || !*in.IncludeDeprecated {
		t.Error("deprecated images are not asked for")
	}
}

// Images of the same moment are told apart by id, so that the answer does not depend on EC2's order.
func TestTies(t *testing.T) {
	w := newWorld()
	for _, id := range []string{"ami-b", "ami-a", "ami-c"} {
		w.publish(id, id, 3)
	}
	expect(t, "the first id", find(t, w.finder(), class(awsv1.AMISelectorTerm{Name: "*"})), "ami-a amd64")
}

func TestNothingFound(t *testing.T) {
	w := newWorld()
	w.parameters["/our/note"] = "remember the milk"
	for name, c := range map[string]struct {
		class *awsv1.EC2NodeClass
		want  []string
	}{
		"alias": {alias("al2023@v20990101"), []string{"al2023@v20990101", "Kubernetes 1.33",
			"al2023@latest"}},
		"AL2":      {alias("al2@latest"), []string{"al2@latest", "1.33", "bottlerocket@latest"}},
		"no alias": {alias("ubuntu@latest"), []string{"ubuntu@latest", "al2023@latest"}},
		"id":       {class(awsv1.AMISelectorTerm{ID: "ami-gone"}), []string{"id ami-gone", "deregistered"}},
		"name":     {class(awsv1.AMISelectorTerm{Name: "my-*"}), []string{"name my-*", "set owner"}},
		"name and owner": {class(awsv1.AMISelectorTerm{Name: "my-*", Owner: "self"}),
			[]string{"owner self", "Name tag"}},
		"tags": {class(awsv1.AMISelectorTerm{Tags: map[string]string{"b": "2", "a": "1"}}),
			[]string{"tag a=1, tag b=2"}},
		"several": {class(awsv1.AMISelectorTerm{ID: "ami-1"}, awsv1.AMISelectorTerm{ID: "ami-2"}),
			[]string{"id ami-1 or id ami-2; it may"}},
		"no parameter": {class(awsv1.AMISelectorTerm{SSMParameter: "/our/image"}),
			[]string{"/our/image", "does not exist"}},
		"not an id": {class(awsv1.AMISelectorTerm{SSMParameter: "/our/note"}), []string{"/our/note", "milk",
			"ami-0a1b2c3d"}},
		"parameter and id": {class(awsv1.AMISelectorTerm{ID: "ami-1"},
			awsv1.AMISelectorTerm{SSMParameter: "/our/image"}), []string{"/our/image"}},
	} {
		images, err := w.finder().Find(t.Context(), c.class)
		if _, ok := errors.AsType[*image.NoMatchError](err); !ok || images != nil {
			t.Errorf("%s: have %v, %v", name, images, err)
			continue
		}
		for _, want := range append(c.want, "spec.amiSelectorTerms") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", name, err, want)
			}
		}
	}
}

// TestLatestDoesNotAdviseItself: whoever asked for the latest and got none is not told to ask for the latest.
func TestLatestDoesNotAdviseItself(t *testing.T) {
	w := newWorld()
	_, err := w.finder().Find(t.Context(), alias("windows2022@latest"))
	if err == nil || strings.Count(err.Error(), "windows2022@latest") != 1 || !strings.Contains(err.Error(),
		"select the AMI by id, name or tags") {
		t.Errorf("%v", err)
	}
}

func TestTrouble(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	w.failSSM = awsError("SSM", "GetParameter", "AccessDeniedException")
	_, err := w.finder().Find(t.Context(), alias("al2023@latest"))
	if !cloudprovider.IsUnauthorized(err) || !strings.Contains(err.Error(), "AccessDeniedException") ||
		!strings.Contains(err.Error(), "ssm:GetParameter") {
		t.Errorf("no permission for SSM: %v", err)
	}
	w.failSSM = nil
	w.failEC2 = awsError("EC2", "DescribeImages", "RequestLimitExceeded")
	if _, err := w.finder().Find(t.Context(), alias("al2023@latest")); !cloudprovider.IsThrottled(err) {
		t.Errorf("throttled by EC2: %v", err)
	}
	w.failEC2 = nil
	w.version = ""
	broken := image.New(image.Options{EC2: w, SSM: w, Now: func() time.Time { return w.now }, Version: noVersion})
	if _, err := broken.Find(t.Context(), alias("al2023@latest")); !errors.Is(err, errNoVersion) {
		t.Errorf("no version: %v", err)
	}
	w.publish("ami-1", "one", 1)
	if got := find(t, broken, class(awsv1.AMISelectorTerm{ID: "ami-1"})); got != "ami-1 amd64" {
		t.Errorf("an id needs no version; have %s", got)
	}
}

func TestFor(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	amis, err := w.finder().AMIs(t.Context(), alias("al2023@latest"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		labels map[string][]string
		want   string
	}{
		"m7i.large":    {labels("amd64"), "ami-v10"},
		"m7g.large":    {labels("arm64"), "ami-v11"},
		"g5.xlarge":    {labels("amd64", awsv1.InstanceGPUCountLabelKey), "ami-v12"},
		"g5g.xlarge":   {labels("arm64", awsv1.InstanceGPUCountLabelKey), "ami-v13"},
		"inf2.xlarge":  {labels("amd64", awsv1.InstanceAcceleratorCountLabelKey), "ami-v14"},
		"arm Neuron":   {labels("arm64", awsv1.InstanceAcceleratorCountLabelKey), ""},
		"nothing told": {nil, ""},
	} {
		got, ok := image.For(amis, c.labels)
		if got.ID != c.want || ok != (c.want != "") {
			t.Errorf("%s: have %s, want %s", name, got.ID, c.want)
		}
		if ok && !strings.HasPrefix(got.Name, "amazon-eks-node-al2023-") {
			t.Errorf("%s: the name is %q", name, got.Name)
		}
	}
	either := []awsv1.AMI{
		{ID: "ami-no", Requirements: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpNotIn,
			Values: []string{"1"}}}},
		{ID: "ami-odd", Requirements: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpGt,
			Values: []string{"0"}}}},
		{ID: "ami-in", Requirements: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpIn,
			Values: []string{"1", "2"}}}},
	}
	for value, want := range map[string]string{"1": "ami-in", "2": "ami-no"} {
		if got, _ := image.For(either, map[string][]string{"a": {value}}); got.ID != want {
			t.Errorf("a=%s: have %s, want %s", value, got.ID, want)
		}
	}
}

func labels(arch string, counts ...string) map[string][]string {
	out := map[string][]string{corev1.LabelArchStable: {arch}, corev1.LabelOSStable: {"linux"}}
	for _, key := range counts {
		out[key] = []string{"1"}
	}
	return out
}
