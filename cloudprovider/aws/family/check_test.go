package family_test

import (
	"strings"
	"testing"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

func classWith(name, userData string) *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMIFamily: &name, UserData: &userData}}
}

// shared is an archive for nodes of AL2 and of AL2023.
const shared = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n" +
	"--B\nContent-Type: text/x-shellscript\n\n#!/bin/bash\necho hi\n" +
	"--B\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: " +
	"{}\n--B--\n"

// What a node can be told passes the check; what it can't is refused before anything is launched.
func TestCheckUserData(t *testing.T) {
	const config = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      " +
		"maxPods: 3\n"
	for _, c := range []struct{ family, userData, want string }{
		{awsv1.AMIFamilyAL2023, "", ""},
		{awsv1.AMIFamilyAL2023, "#!/bin/bash\n[settings] || echo hi\n", ""},
		{awsv1.AMIFamilyAL2023, "hello world", ""},
		{awsv1.AMIFamilyAL2023, config, ""},
		{awsv1.AMIFamilyAL2023, "Content-Type: application/node.eks.aws\n\n" + config, ""},
		{awsv1.AMIFamilyAL2023, config + "  containerd: [broken\n", "spec.userData begins like a NodeConfig but is " +
			"not YAML"},
		{awsv1.AMIFamilyAL2, "yum install -y htop", ""},
		{awsv1.AMIFamilyAL2, "#cloud-config\npackages: [htop]\n", ""},
		{awsv1.AMIFamilyAL2, config, "only images of AL2023 read"},
		{awsv1.AMIFamilyAL2, shared, ""},
		{awsv1.AMIFamilyAL2023, shared, ""},
		{awsv1.AMIFamilyAL2, "Content-Type: text/x-shellscript\n\n" + config, "says that it is a script"},
		{awsv1.AMIFamilyBottlerocket, "[settings.kubernetes]\nmax-pods = 3\n", ""},
		{awsv1.AMIFamilyBottlerocket, config, "spec.userData is not TOML"},
		{awsv1.AMIFamilyWindows2022, "Get-Date", ""},
		{awsv1.AMIFamilyWindows2022, "#includes helper functions\nGet-Date\n", ""},
		{awsv1.AMIFamilyWindows2022, config, "written for Linux"},
		{awsv1.AMIFamilyWindows2022, "#cloud-config-archive\n- type: text/plain\n", "written for Linux"},
		{awsv1.AMIFamilyWindows2022, "#include-once\nhttps://example.com/x\n", "written for Linux"},
		{awsv1.AMIFamilyAL2023, "kind: NodeConfig\nspec: {kubelet: 5}\n", "spec.userData is no NodeConfig: " +
			"spec.kubelet must be an object"},
		{awsv1.AMIFamilyAL2023, "kind: NodeConfig\nspec: all\n", "spec.userData is no NodeConfig: spec must be an " +
			"object"},
		{awsv1.AMIFamilyAL2023, "Content-Type: application/node.eks.aws\n\nspec: {kubelet: 5}\n",
			"spec.userData: part 1 of type application/node.eks.aws is no NodeConfig: spec.kubelet must be an object"},
		{awsv1.AMIFamilyAL2023, "Content-Type: application/node.eks.aws\n\n5\n", "is no NodeConfig: it must be an " +
			"object"},
		{awsv1.AMIFamilyCustom, "[settings", ""},
	} {
		err := family.CheckUserData(classWith(c.family, c.userData))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s, %q: %v", c.family, c.userData, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(),
			"spec.userData")):
			t.Errorf("%s, %q: error is %v, want %q", c.family, c.userData, err, c.want)
		}
	}
	class := classWith(awsv1.AMIFamilyBottlerocket, "[settings]\nbootstrap-commands = 1\n")
	class.Spec.InstanceStorePolicy = new(awsv1.InstanceStorePolicyRAID0)
	if err := family.CheckUserData(class); err == nil || !strings.Contains(err.Error(), "bootstrap-commands") {
		t.Errorf("with RAID0 the error is %v", err)
	}
}

// What may work after all is only doubted.
func TestDoubtUserData(t *testing.T) {
	const head = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
	for _, c := range []struct {
		family, userData string
		want             []string
	}{
		{awsv1.AMIFamilyCustom, "#!/bin/bash\n/join\n", nil},
		{awsv1.AMIFamilyCustom, " \n", []string{"spec.userData is empty"}},
		{awsv1.AMIFamilyAL2023, "", nil},
		{awsv1.AMIFamilyAL2023, "hello world", nil},
		{awsv1.AMIFamilyAL2023, head + "spec:\n  cluster: {name: a}\n  instance: {localStorage: {strategy: RAID0, " +
			"mountPath: /x}}\n  kubelet: {config: {anything: 1}, flags: [--v=2], maxPodsExpression: max_pods}\n", nil},
		{awsv1.AMIFamilyAL2023, head + "spec:\n  kubeletz: {}\n  kubelet: {conf: {}}\n",
			[]string{"spec.kubelet.conf is no field", "spec.kubeletz is no field"}},
		{awsv1.AMIFamilyAL2023, "Content-Type: application/node.eks.aws\n\nspec: {}\n", []string{"has no apiVersion",
			"has no kind"}},
		{awsv1.AMIFamilyBottlerocket, "[settings]\nmotd = 'hi'\n", nil},
		{awsv1.AMIFamilyBottlerocket, "max-pods = 3\n[kubernetes]\nx = 1\n", []string{"kubernetes, max-pods outside " +
			"of settings"}},
		{awsv1.AMIFamilyAL2, "hello world", nil},
		{awsv1.AMIFamilyAL2, shared, []string{"part 2 is a NodeConfig, which images of AL2 pass over"}},
		{awsv1.AMIFamilyAL2023, shared, nil},
	} {
		got := family.DoubtUserData(classWith(c.family, c.userData))
		if len(got) != len(c.want) {
			t.Errorf("%s, %q: doubts are %q, want %q", c.family, c.userData, got, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s, %q: doubts are %q, want %q", c.family, c.userData, got, c.want)
			}
		}
	}
}
