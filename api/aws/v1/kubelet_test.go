package v1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func kubelet(t *testing.T, text string) KubeletConfiguration {
	t.Helper()
	var k KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKubeletSettings(t *testing.T) {
	got, err := kubelet(t, `{"maxPods": 20, "podsPerCore": 2, "cpuCFSQuota": false,
		"topologyManagerPolicy": "restricted",
		"kubeReserved": {"cpu": "100m"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"},
			"clusterDNS": ["10.0.1.100"]}`).Settings()
	if err != nil {
		t.Fatal(err)
	}
	if got.MaxPods.IntValue() != 20 || *got.PodsPerCore != 2 || *got.CPUCFSQuota || got.KubeReserved["cpu"] != "100m" ||
		got.EvictionSoftGracePeriod["memory.available"].Duration != 90*time.Second ||
		got.ClusterDNS[0] != "10.0.1.100" {
		t.Errorf("settings are %+v", got)
	}
	if got, err := KubeletConfiguration(nil).Settings(); err != nil || got == nil || got.MaxPods != nil {
		t.Errorf("no settings give %+v (%v)", got, err)
	}
	if got, err := kubelet(t, `{"maxPods": "vcpus * 4"}`).Settings(); err != nil || got.MaxPods.StrVal != "vcpus * 4" {
		t.Errorf("an expression gives %+v (%v)", got, err)
	}
	if _, err := kubelet(t, `{"podsPerCore": "two"}`).Settings(); err == nil || !strings.Contains(err.Error(),
		"podsPerCore") {
		t.Errorf("a word for a number gives %v, want an error that names podsPerCore", err)
	}
}

func TestKubeletTextIsSorted(t *testing.T) {
	if got := kubelet(t, `{"podsPerCore": 2, "maxPods":  20}`).String(); got != `{"maxPods":20,"podsPerCore":2}` {
		t.Errorf("text is %s", got)
	}
}

func TestFamilyAndAlias(t *testing.T) {
	cases := []struct {
		alias, named, family, version string
		aliased                       bool
	}{
		{"al2023@latest", "", "AL2023", "latest", true},
		{"bottlerocket@v1.20.0", "", "Bottlerocket", "v1.20.0", true},
		{"windows2025@latest", "", "Windows2025", "latest", true},
		{"al2@latest", "Custom", "Custom", "latest", true},
		{"", "AL2", "AL2", "", false},
		{"", "", "Custom", "", false},
		{"ubuntu@latest", "", "Custom", "", false},
		{"al2023@", "", "Custom", "", false},
	}
	for _, tc := range cases {
		class := &EC2NodeClass{Spec: EC2NodeClassSpec{AMISelectorTerms: []AMISelectorTerm{{Alias: tc.alias}}}}
		if tc.named != "" {
			class.Spec.AMIFamily = &tc.named
		}
		alias, ok := class.Alias()
		if class.AMIFamily() != tc.family || alias.Version != tc.version || ok != tc.aliased {
			t.Errorf("%q named %q: family %s, alias %+v %v", tc.alias, tc.named, class.AMIFamily(), alias, ok)
		}
	}
}
