package family_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

var update = flag.Bool("update", false, "write testdata/*.out anew; read the difference before you keep it")

// plain is a node with as little as a node can have.
func plain() family.Node {
	return family.Node{
		Cluster: family.Cluster{
			Name:        "orchard",
			Endpoint:    "https://0123456789ABCDEF.gr7.us-west-2.eks.amazonaws.com",
			CABundle:    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
			ServiceCIDR: "10.100.0.0/16",
			DNS:         "10.100.0.10",
		},
		MaxPods: 58,
		Labels: map[string]string{
			"karpenter.sh/nodepool":          "default",
			"karpenter.sh/capacity-type":     "spot",
			"karpenter.k8s.aws/ec2nodeclass": "default",
			"example.com/team":               "pears",
			"topology.kubernetes.io/zone":    "us-west-2a", // the kubelet may not say this of itself
		},
	}
}

// full is a node with everything a class can ask for.
func full() family.Node {
	n := plain()
	n.RAID0 = true
	n.Taints = []corev1.Taint{
		{Key: "example.com/dedicated", Value: "pears", Effect: corev1.TaintEffectNoSchedule},
		{Key: "example.com/dedicated", Value: "pears", Effect: corev1.TaintEffectNoExecute},
		{Key: "cilium.io/agent-not-ready", Effect: corev1.TaintEffectNoExecute},
	}
	n.Kubelet = kubelet(map[string]string{
		"clusterDNS":                  `["10.100.0.53", "10.100.0.54"]`,
		"podsPerCore":                 `8`,
		"systemReserved":              `{"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "1Gi"}`,
		"kubeReserved":                `{"cpu": "1", "memory": "200Mi"}`,
		"evictionHard":                `{"memory.available": "5%", "nodefs.available": "10%"}`,
		"evictionSoft":                `{"memory.available": "500Mi"}`,
		"evictionSoftGracePeriod":     `{"memory.available": "1m30s"}`,
		"evictionMaxPodGracePeriod":   `60`,
		"imageGCHighThresholdPercent": `85`,
		"imageGCLowThresholdPercent":  `80`,
		"cpuCFSQuota":                 `false`,
	})
	return n
}

func kubelet(values map[string]string) awsv1.KubeletConfiguration {
	out := awsv1.KubeletConfiguration{}
	for key, value := range values {
		out[key] = apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return out
}

// with changes a node.
func with(n family.Node, change func(*family.Node)) family.Node {
	change(&n)
	return n
}

// raw adds settings that only AL2023 can hand over.
func raw(n *family.Node) {
	n.Kubelet["shutdownGracePeriod"] = apiextensionsv1.JSON{Raw: []byte(`"30s"`)}
	n.Kubelet["kubeAPIQPS"] = apiextensionsv1.JSON{Raw: []byte(`50`)}
	n.Kubelet["featureGates"] = apiextensionsv1.JSON{Raw: []byte(`{"GracefulNodeShutdown": true}`)}
	n.Kubelet["podPidsLimit"] = apiextensionsv1.JSON{Raw: []byte(`9007199254740993`)} // no float holds it
}

func ipv6(n *family.Node) { n.ServiceCIDR, n.DNS = "fd12:3456::/108", "fd12:3456::a" }

func noTaintsOnlyOneDNS(n *family.Node) { n.Taints, n.RAID0, n.DNS = nil, false, "" }

// TestGolden compares user data with what it should be, byte for byte. A case's own user data is in testdata/<name>.in.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name   string
		family string
		node   family.Node
	}{
		{"al2-plain", awsv1.AMIFamilyAL2, plain()},
		{"al2-full", awsv1.AMIFamilyAL2, full()},
		{"al2-script", awsv1.AMIFamilyAL2, plain()},
		{"al2-cloud-config", awsv1.AMIFamilyAL2, plain()},
		{"al2-archive", awsv1.AMIFamilyAL2, plain()},
		{"al2-ipv6", awsv1.AMIFamilyAL2, with(plain(), ipv6)},
		{"al2023-plain", awsv1.AMIFamilyAL2023, plain()},
		{"al2023-full", awsv1.AMIFamilyAL2023, with(full(), raw)},
		{"al2023-script", awsv1.AMIFamilyAL2023, plain()},
		{"al2023-nodeconfig", awsv1.AMIFamilyAL2023, plain()},
		{"al2023-archive", awsv1.AMIFamilyAL2023, plain()},
		{"al2023-taint-flag", awsv1.AMIFamilyAL2023, full()},
		{"bottlerocket-plain", awsv1.AMIFamilyBottlerocket, plain()},
		{"bottlerocket-full", awsv1.AMIFamilyBottlerocket, with(full(), func(n *family.Node) {
			n.ImageName = "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a"
		})},
		{"bottlerocket-settings", awsv1.AMIFamilyBottlerocket, with(full(), func(n *family.Node) {
			n.ImageName = "bottlerocket-aws-k8s-1.30-x86_64-v1.20.3-5d9ac849"
		})},
		{"windows2022-plain", awsv1.AMIFamilyWindows2022, with(plain(), noTaintsOnlyOneDNS)},
		{"windows2022-commands", awsv1.AMIFamilyWindows2022, full()},
		{"windows2025-element", awsv1.AMIFamilyWindows2025, plain()},
		{"custom-verbatim", awsv1.AMIFamilyCustom, full()},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := named(t, c.family)
			if in, err := os.ReadFile(filepath.Join("testdata", c.name+".in")); err == nil {
				c.node.UserData = string(in)
			} else if !os.IsNotExist(err) {
				t.Fatal(err)
			}
			got, err := f.UserData(c.node)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", c.name+".out"), got)
			for range 20 { // the order of a map's keys differs from one time to the next
				if again, err := f.UserData(c.node); err != nil || again != got {
					t.Fatalf("asked again (error %v) the user data is another:\n%s", err, again)
				}
			}
		})
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	have, should := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(have), len(should)) {
		if i >= len(have) || i >= len(should) || have[i] != should[i] {
			t.Fatalf("%s differs from line %d on; have:\n%s", path, i+1, got)
		}
	}
}
