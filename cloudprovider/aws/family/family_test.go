package family_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

func named(t *testing.T, name string) family.Family {
	t.Helper()
	f, ok := family.Named(name)
	if !ok {
		t.Fatalf("no family %s", name)
	}
	return f
}

func class(change ...func(*awsv1.EC2NodeClass)) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{}
	for _, f := range change {
		f(c)
	}
	return c
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		alias, amiFamily, want string
	}{
		{"al2@latest", "", awsv1.AMIFamilyAL2},
		{"al2023@v20240807", "", awsv1.AMIFamilyAL2023},
		{"bottlerocket@latest", "", awsv1.AMIFamilyBottlerocket},
		{"windows2019@latest", "", awsv1.AMIFamilyWindows2019},
		{"al2023@latest", awsv1.AMIFamilyCustom, awsv1.AMIFamilyCustom},
		{"", awsv1.AMIFamilyWindows2025, awsv1.AMIFamilyWindows2025},
		{"", "Ubuntu", awsv1.AMIFamilyCustom},
		{"", "", awsv1.AMIFamilyCustom},
	} {
		got := family.Of(class(func(n *awsv1.EC2NodeClass) {
			n.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: c.alias}}
			if c.amiFamily != "" {
				n.Spec.AMIFamily = &c.amiFamily
			}
		})).Name()
		if got != c.want {
			t.Errorf("alias %q, family %q: have %s, want %s", c.alias, c.amiFamily, got, c.want)
		}
	}
}

func TestWhatFamiliesDo(t *testing.T) {
	linux := family.Flags{ENILimitedMemory: true, ENILimitedPods: true, PodsPerCore: true, InstanceStore: true}
	al2023 := linux
	al2023.RawKubelet, al2023.ServiceCIDR = true, true
	for _, c := range []struct {
		name, build string
		os          corev1.OSName
		flags       family.Flags
	}{
		{awsv1.AMIFamilyAL2, "", corev1.Linux, linux},
		{awsv1.AMIFamilyAL2023, "", corev1.Linux, al2023},
		{awsv1.AMIFamilyBottlerocket, "", corev1.Linux, family.Flags{ENILimitedPods: true, InstanceStore: true}},
		{awsv1.AMIFamilyWindows2019, "10.0.17763", corev1.Windows, family.Flags{PodsPerCore: true}},
		{awsv1.AMIFamilyWindows2022, "10.0.20348", corev1.Windows, family.Flags{PodsPerCore: true}},
		{awsv1.AMIFamilyWindows2025, "10.0.26100", corev1.Windows, family.Flags{PodsPerCore: true}},
		{awsv1.AMIFamilyCustom, "", corev1.Linux, family.Flags{ENILimitedMemory: true, ENILimitedPods: true,
			PodsPerCore: true}},
	} {
		f := named(t, c.name)
		if f.Name() != c.name || f.OS() != c.os || f.WindowsBuild() != c.build || f.Flags() != c.flags {
			t.Errorf("%s: have %s %s %q %+v, want %+v", c.name, f.Name(), f.OS(), f.WindowsBuild(), f.Flags(), c)
		}
		if got, want := f.Excludes("a1.large"), c.name == awsv1.AMIFamilyAL2023; got != want {
			t.Errorf("%s excludes a1.large: %t", c.name, got)
		}
		if f.Excludes("m7g.large") {
			t.Errorf("%s excludes m7g.large", c.name)
		}
	}
	if _, ok := family.Named("Ubuntu"); ok {
		t.Error("Ubuntu is a family")
	}
}

func TestDevices(t *testing.T) {
	for name, want := range map[string]string{
		awsv1.AMIFamilyAL2:          "/dev/xvda=20Gi",
		awsv1.AMIFamilyAL2023:       "/dev/xvda=20Gi",
		awsv1.AMIFamilyBottlerocket: "/dev/xvda=4Gi /dev/xvdb=20Gi",
		awsv1.AMIFamilyWindows2022:  "/dev/sda1=50Gi",
		awsv1.AMIFamilyCustom:       "",
	} {
		var got []string
		for _, d := range named(t, name).Devices(class()) {
			got = append(got, *d.DeviceName+"="+d.EBS.VolumeSize.String())
			if !*d.EBS.Encrypted || !*d.EBS.DeleteOnTermination || *d.EBS.VolumeType != "gp3" {
				t.Errorf("%s: %s is %+v", name, *d.DeviceName, d.EBS)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: have %v, want %s", name, got, want)
		}
	}
	own := class(disk("/dev/xvda", "8Gi", false))
	given := named(t, awsv1.AMIFamilyBottlerocket).Devices(own)
	if len(given) != 1 || given[0].EBS.VolumeSize.String() != "8Gi" {
		t.Fatalf("a class's own disks: have %+v", given)
	}
	given[0].EBS.VolumeSize = nil
	if own.Spec.BlockDeviceMappings[0].EBS.VolumeSize == nil {
		t.Error("what Devices returns is the class's own")
	}
}

func disk(name, size string, root bool) func(*awsv1.EC2NodeClass) {
	return func(c *awsv1.EC2NodeClass) {
		d := &awsv1.BlockDeviceMapping{DeviceName: &name, RootVolume: root, EBS: &awsv1.BlockDevice{}}
		if size == "" {
			d.EBS.SnapshotID = new("snap-1")
		} else {
			d.EBS.VolumeSize = new(resource.MustParse(size))
		}
		c.Spec.BlockDeviceMappings = append(c.Spec.BlockDeviceMappings, d)
	}
}

func TestEphemeralStorage(t *testing.T) {
	for _, c := range []struct {
		name   string
		family string
		class  *awsv1.EC2NodeClass
		want   string
	}{
		{"the family's disk", awsv1.AMIFamilyAL2023, class(), "20Gi"},
		{"the family's second disk", awsv1.AMIFamilyBottlerocket, class(), "20Gi"},
		{"Windows", awsv1.AMIFamilyWindows2022, class(), "50Gi"},
		{"Custom knows nothing", awsv1.AMIFamilyCustom, class(), "20Gi"},
		{"the class's disk", awsv1.AMIFamilyAL2, class(disk("/dev/xvda", "100Gi", false), disk("/dev/xvdz", "7Gi",
			false)), "100Gi"},
		{"the class's data disk", awsv1.AMIFamilyBottlerocket, class(disk("/dev/xvda", "8Gi", false),
			disk("/dev/xvdb", "200Gi", false)), "200Gi"},
		{"the marked disk", awsv1.AMIFamilyBottlerocket, class(disk("/dev/xvda", "8Gi", true),
			disk("/dev/xvdb", "200Gi", false)), "8Gi"},
		{"from a snapshot", awsv1.AMIFamilyAL2, class(disk("/dev/xvda", "", false)), "20Gi"},
		{"another disk", awsv1.AMIFamilyAL2, class(disk("/dev/xvdz", "7Gi", false)), "20Gi"},
		{"another disk on Windows", awsv1.AMIFamilyWindows2022, class(disk("xvdf", "7Gi", false)), "50Gi"},
		{"the marked disk, from a snapshot", awsv1.AMIFamilyAL2, class(disk("/dev/xvdz", "", true),
			disk("/dev/xvda", "30Gi", false)), "30Gi"},
		{"Custom, from a snapshot", awsv1.AMIFamilyCustom, class(disk("/dev/a", "", false)), "20Gi"},
		{"Custom takes the last", awsv1.AMIFamilyCustom, class(disk("/dev/a", "7Gi", false),
			disk("/dev/b", "9Gi", false)), "9Gi"},
	} {
		got := named(t, c.family).EphemeralStorage(c.class)
		if got.String() != c.want {
			t.Errorf("%s: have %s, want %s", c.name, got.String(), c.want)
		}
	}
}

func TestUnsupportedKubeletSettings(t *testing.T) {
	k := kubelet(map[string]string{"maxPods": "10", "kubeAPIQPS": "50", "containerLogMaxSize": `"50Mi"`})
	if got := named(t, awsv1.AMIFamilyAL2023).Unsupported(k); got != nil {
		t.Errorf("AL2023: have %v", got)
	}
	for _, name := range []string{awsv1.AMIFamilyAL2, awsv1.AMIFamilyBottlerocket, awsv1.AMIFamilyWindows2022} {
		f := named(t, name)
		if got := strings.Join(f.Unsupported(k), " "); got != "containerLogMaxSize kubeAPIQPS" {
			t.Errorf("%s: have %s", name, got)
		}
		n := plain()
		n.Kubelet = k
		if _, err := f.UserData(n); err == nil || !strings.Contains(err.Error(), "spec.kubelet.containerLogMaxSize") {
			t.Errorf("%s: user data with it: %v", name, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name, family string
		change       func(*family.Node)
		want         string
	}{
		{"no CIDR", awsv1.AMIFamilyAL2023, func(n *family.Node) { n.ServiceCIDR = "" }, "service CIDR is not known"},
		{"another kind", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "apiVersion: v1\nkind: Pod\n"
		}, "kind Pod"},
		{"a broken NodeConfig", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "# ours\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: [broken\n"
		}, "begins like a NodeConfig but is not YAML"},
		{"another boundary", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"A\"\n\n--B\nContent-Type: " +
				"text/x-shellscript\n\n#!/bin/sh\n--B--\n"
		}, "no line is --A"},
		{"a NodeConfig for AL2", awsv1.AMIFamilyAL2, func(n *family.Node) {
			n.UserData = "kind: NodeConfig\napiVersion: node.eks.aws/v1alpha1\n"
		}, "only images of AL2023"},
		{"TOML for AL2", awsv1.AMIFamilyAL2, func(n *family.Node) {
			n.UserData = "[settings.kubernetes]\nmax-pods = 3\n"
		}, "only images of Bottlerocket"},
		{"TOML for AL2023", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "[settings]\nmotd = 'hi'\n"
		}, "only images of Bottlerocket"},
		{"bash for Windows", awsv1.AMIFamilyWindows2022, func(n *family.Node) {
			n.UserData = "#!/bin/bash\necho hi\n"
		}, "written for Linux"},
		{"PowerShell for AL2023", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "\n<PowerShell>\ndir\n</powershell>\n"
		}, "written for Windows"},
		{"remarks before TOML for AL2", awsv1.AMIFamilyAL2, func(n *family.Node) {
			n.UserData = "# ours\n\n[settings.kubernetes]\nmax-pods = 3\n"
		}, "only images of Bottlerocket"},
		{"a script for Bottlerocket", awsv1.AMIFamilyBottlerocket, func(n *family.Node) {
			n.UserData = "#!/bin/bash\nFOO=1\n"
		}, "is a script"},
		{"a NodeConfig as a script", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "Content-Type: text/x-shellscript\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
		}, "part 1 is a NodeConfig but says that it is a script"},
		{"another kind in an archive", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "Content-Type: application/node.eks.aws\n\nkind: KubeletConfiguration\n"
		}, "it is of kind KubeletConfiguration"},
		{"another group", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "apiVersion: v1\nkind: NodeConfig\n"
		}, "its apiVersion is v1"},
		{"a server without address", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.Kubelet = kubelet(map[string]string{"clusterDNS": `["not-an-ip"]`})
		}, "spec.kubelet.clusterDNS"},
		{"a part that is no YAML", awsv1.AMIFamilyAL2023, func(n *family.Node) {
			n.UserData = "Content-Type: application/node.eks.aws\n\nspec: [\n"
		}, "part 1"},
		{"an archive without boundary", awsv1.AMIFamilyAL2, func(n *family.Node) {
			n.UserData = "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nhello\n"
		}, "no boundary"},
		{"an archive without header", awsv1.AMIFamilyAL2, func(n *family.Node) {
			n.UserData = "MIME-Version: 1.0\n\nhello\n"
		}, "Content-Type"},
		{"no TOML", awsv1.AMIFamilyBottlerocket, func(n *family.Node) {
			n.UserData = "[settings]\n#!/bin/bash\necho hi\n"
		}, "line 3"},
		{"a value for a table", awsv1.AMIFamilyBottlerocket, func(n *family.Node) {
			n.UserData = "settings.kubernetes = 1\n"
		}, "settings.kubernetes"},
		{"a value for labels", awsv1.AMIFamilyBottlerocket, func(n *family.Node) {
			n.UserData = "[settings.kubernetes]\nnode-labels = 'a=b'\n"
		}, "node-labels"},
		{"a value for commands", awsv1.AMIFamilyBottlerocket, func(n *family.Node) {
			n.RAID0, n.UserData = true, "[settings]\nbootstrap-commands = 1\n"
		}, "bootstrap-commands"},
		{"a quantity that ends the argument", awsv1.AMIFamilyAL2, func(n *family.Node) {
			n.Kubelet = kubelet(map[string]string{"kubeReserved": `{"cpu": "1' ; reboot"}`})
		}, "kubeReserved"},
		{"a number that is none", awsv1.AMIFamilyWindows2022, func(n *family.Node) {
			n.Kubelet = kubelet(map[string]string{"podsPerCore": `"many"`})
		}, "spec.kubelet.podsPerCore"},
	} {
		n := plain()
		c.change(&n)
		got, err := named(t, c.family).UserData(n)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want one line with %q, have error %v and user data %q", c.name, c.want, err, got)
		}
	}
	if _, err := named(t, awsv1.AMIFamilyAL2023).UserData(family.Node{}); !errors.Is(err, family.ErrNoServiceCIDR) {
		t.Errorf("without CIDR: %v", err)
	}
}

// What expressions came to takes the place of the expressions.
func TestResolvedSettings(t *testing.T) {
	n := plain()
	n.Kubelet = kubelet(map[string]string{"maxPods": `"max_pods / 2"`, "kubeReserved": `{"cpu": "vcpus * 10"}`,
		"systemReserved": `{"memory": "1 + 1"}`})
	n.MaxPods = 29
	n.KubeReserved = map[string]string{"cpu": "40m"}
	n.SystemReserved = map[string]string{"memory": "2Mi"}
	for _, name := range []string{awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket,
		awsv1.AMIFamilyWindows2022} {
		got, err := named(t, name).UserData(n)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range []string{"29", "40m", "2Mi"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s:\n%s", name, want, got)
			}
		}
		if strings.Contains(got, "vcpus") || strings.Contains(got, "max_pods") {
			t.Errorf("%s has an expression in it:\n%s", name, got)
		}
	}
}

func TestEncode(t *testing.T) {
	small := strings.Repeat("x", family.MaxUserData)
	got, err := named(t, awsv1.AMIFamilyWindows2022).Encode(small)
	if data, _ := base64.StdEncoding.DecodeString(got); err != nil || string(data) != small {
		t.Errorf("user data of just the right size: %v", err)
	}

	large := small + "y"
	if _, err := named(t, awsv1.AMIFamilyWindows2022).Encode(large); !tooLarge(err) {
		t.Errorf("Windows can't unpack; have %v", err)
	}
	got, err = named(t, awsv1.AMIFamilyAL2023).Encode(large)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(got)
	if err != nil || len(packed) > family.MaxUserData {
		t.Fatalf("packed to %d bytes, %v", len(packed), err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if back, err := io.ReadAll(r); err != nil || string(back) != large {
		t.Errorf("unpacked it is another: %v", err)
	}

	noise := make([]byte, 3*family.MaxUserData)
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(dice.Uint32())
	}
	if _, err := named(t, awsv1.AMIFamilyAL2023).Encode(string(noise)); !tooLarge(err) {
		t.Errorf("what can't be packed: %v", err)
	}
}

func tooLarge(err error) bool {
	e, ok := errors.AsType[*family.TooLargeError](err)
	return ok && e.Bytes > family.MaxUserData && strings.Contains(e.Error(), "spec.userData")
}

// nodeadm decodes and unpacks the parts of an archive, so what an archive says in base64 counts as well.
func TestEncodedNodeConfig(t *testing.T) {
	config := "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n%s"
	joined := "    - --register-with-taints=example.com/own:NoSchedule\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := fmt.Fprintf(w, config, joined); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	encoded := func(data []byte) string {
		return "Content-Type: application/node.eks.aws\nContent-Transfer-Encoding: base64\n\n" +
			base64.StdEncoding.EncodeToString(data) + "\n"
	}
	plainPart := func(flags string) string {
		return "Content-Type: application/node.eks.aws\n\n" + fmt.Sprintf(config, flags)
	}
	for name, userData := range map[string]string{
		"base64":          encoded([]byte(fmt.Sprintf(config, joined))),
		"packed":          encoded(packed.Bytes()),
		"plain":           plainPart(joined),
		"in two items":    plainPart("    - --register-with-taints\n    - example.com/own:NoSchedule\n"),
		"after a space":   plainPart("    - --register-with-taints example.com/own:NoSchedule\n"),
		"and other flags": plainPart("    - --v=2\n" + joined + "    - --feature-gates=A=true\n"),
	} {
		n := plain()
		n.UserData = userData
		got, err := named(t, awsv1.AMIFamilyAL2023).UserData(n)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := "--register-with-taints=example.com/own:NoSchedule,karpenter.sh/unregistered:NoExecute"
		if !strings.Contains(got, want) {
			t.Errorf("%s: the kubelet is not told %s:\n%s", name, want, got)
		}
	}
	for name, userData := range map[string]string{
		"a text":         "Content-Type: application/node.eks.aws\n\nhello\n",
		"no base64":      "Content-Type: application/node.eks.aws\nContent-Transfer-Encoding: base64\n\n!!!\n",
		"flags as text":  plainPart("") + "    - 1\n",
		"flags as a map": "Content-Type: application/node.eks.aws\n\nspec: {kubelet: {flags: {a: b}}}\n",
	} {
		n := plain()
		n.UserData = userData
		_, err := named(t, awsv1.AMIFamilyAL2023).UserData(n)
		if err == nil || !strings.Contains(err.Error(), "part 1") || strings.Contains(err.Error(), "Go value") ||
			strings.Contains(err.Error(), "struct") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// EC2 reads the element in any case, and all of them.
func TestPowerShellElements(t *testing.T) {
	n := plain()
	n.UserData = "<PowerShell>\nfirst\n</POWERSHELL>\n<persist>true</persist>\n<powershell>\nsecond\n</powershell>\n"
	got, err := named(t, awsv1.AMIFamilyWindows2022).UserData(n)
	if err != nil {
		t.Fatal(err)
	}
	lower := strings.ToLower(got)
	if strings.Count(lower, "<powershell>") != 1 || strings.Count(lower, "</powershell>") != 1 ||
		!strings.HasSuffix(got, "</powershell>\n<persist>true</persist>\n") {
		t.Errorf("elements are nested or lost:\n%s", got)
	}
	first, second, join := strings.Index(got, "first"), strings.Index(got, "second"),
		strings.Index(got, "Start-EKSBootstrap")
	if first < 0 || second < first || join < second {
		t.Errorf("the commands are not before the node joins:\n%s", got)
	}
}

// A number where the kubelet takes a text would stop it.
func TestNumbersWhereTextsBelong(t *testing.T) {
	n := plain()
	n.Kubelet = kubelet(map[string]string{"kubeReserved": `{"cpu": 1}`})
	if _, err := named(t, awsv1.AMIFamilyAL2).UserData(n); err == nil || !strings.Contains(err.Error(),
		"spec.kubelet.kubeReserved") {
		t.Errorf("error is %v", err)
	}
}
