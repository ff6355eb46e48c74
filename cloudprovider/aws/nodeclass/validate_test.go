package nodeclass_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
)

// kubeletCase are settings and what is wrong with them; nothing is wanted of those that are fine.
type kubeletCase struct{ settings, want, family string }

func kubeletCases() []kubeletCase {
	return []kubeletCase{
		{
			settings: `{"maxPods": 20, "podsPerCore": 2, "systemReserved": {"cpu": "100m", "memory": "100Mi",
				"ephemeral-storage": "1Gi"}, "kubeReserved": {"cpu": "200m", "pid": "100"},
			"evictionHard": {"memory.available": "5%", "nodefs.available": "10%", "nodefs.inodesFree": "10%"},
			"evictionSoft": {"memory.available": "500Mi", "nodefs.available": "15%"},
			 "evictionSoftGracePeriod": {"memory.available": "1m", "nodefs.available": "1m30s"},
			"evictionMaxPodGracePeriod": 60, "imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80,
				"cpuCFSQuota": true, "clusterDNS": ["10.0.1.100"]}`,
		},
		{settings: `{"topologyManagerPolicy": "restricted", "featureGates": {"A": true}, "shutdownGracePeriod": ` +
			`"30s", "logging": {"format": "json"}, "memoryThrottlingFactor": 0.9}`},
		{settings: `{"maxPod": 20}`, want: "spec.kubelet.maxPod is no setting of the kubelet"},
		{settings: `{"registerWithTaints": []}`, want: "spec.kubelet.registerWithTaints can't be set"},
		{settings: `{"podsPerCore": "two"}`, want: "spec.kubelet.podsPerCore must be a whole number"},
		{settings: `{"cpuCFSQuota": "yes"}`, want: "spec.kubelet.cpuCFSQuota must be true or false"},
		{settings: `{"clusterDNS": "10.0.0.1"}`, want: "spec.kubelet.clusterDNS must be a list of texts"},
		{settings: `{"shutdownGracePeriod": 30}`, want: "spec.kubelet.shutdownGracePeriod must be a duration"},
		{settings: `{"logging": "json"}`, want: "spec.kubelet.logging must be an object"},
		{settings: `{"reservedMemory": {}}`, want: "spec.kubelet.reservedMemory must be a list"},
		{settings: `{"kubeReserved": {"cpu": 1}}`, want: "spec.kubelet.kubeReserved must be texts by name"},
		{settings: `{"maxPods": "vcpus * 8"}`, want: "switch expressions on with the feature gate NodeClassCEL"},
		{settings: `{"clusterDNS": ["10.0.1.100", "not-an-ip"]}`,
			want: `spec.kubelet.clusterDNS[1] is "not-an-ip"; write an IP address`},
		{settings: `{"clusterDNS": ["fd00::10"]}`},
		{settings: `{"maxPods": ""}`, want: "spec.kubelet.maxPods is the text"},
		{settings: `{"maxPods": 2147483648}`, want: "spec.kubelet.maxPods must be a whole number of up to 2147483647"},
		{settings: `{"podPidsLimit": 9007199254740993, "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": ` +
			`"KubeletConfiguration"}`},
		{settings: `{"kind": "Pod"}`, want: "spec.kubelet.kind must be KubeletConfiguration"},
		{settings: `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "maxPods": 10}`, family: "al2@latest"},
		{settings: `{"maxPods": -1}`, want: "spec.kubelet.maxPods is -1; write 0 or more"},
		{settings: `{"podsPerCore": -1}`, want: "spec.kubelet.podsPerCore is -1; write 0 or more"},
		{settings: `{"imageGCHighThresholdPercent": 101}`, want: "write a percentage from 0 to 100"},
		{settings: `{"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50}`,
			want: "imageGCHighThresholdPercent (50) must be greater than imageGCLowThresholdPercent (50)"},
		{settings: `{"kubeReserved": {"gpu": "1"}}`, want: "spec.kubelet.kubeReserved: gpu can't be reserved"},
		{settings: `{"systemReserved": {"cpu": "-1"}}`, want: `spec.kubelet.systemReserved.cpu is "-1"`},
		{settings: `{"systemReserved": {"cpu": "vcpus * 10"}}`,
			want: `spec.kubelet.systemReserved.cpu is "vcpus * 10"`},
		{settings: `{"evictionHard": {"memory.free": "5%"}}`, want: "spec.kubelet.evictionHard: memory.free is no " +
			"signal"},
		{settings: `{"evictionHard": {"memory.available": "105%"}}`, want: "write a percentage from 0% to 100%"},
		{settings: `{"evictionHard": {"memory.available": "few"}}`, want: "write a quantity of 0 or more"},
		{settings: `{"evictionSoft": {"memory.available": "5%"}}`, want: "evictionSoft.memory.available has no grace " +
			"period"},
		{settings: `{"evictionSoftGracePeriod": {"memory.available": "1m"}}`,
			want: "evictionSoftGracePeriod.memory.available has no threshold"},
		{settings: `{"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": ` +
			`"soon"}}`, want: "write a duration"},
		{settings: `{"topologyManagerPolicy": "restricted"}`, family: "al2@latest", want: "can't be handed to nodes " +
			"of the AMI family AL2; remove it, or use AL2023"},
	}
}

func TestKubeletSettings(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	for _, tc := range kubeletCases() {
		var settings awsv1.KubeletConfiguration
		if err := json.Unmarshal([]byte(tc.settings), &settings); err != nil {
			t.Fatal(err)
		}
		w.update(func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet, c.Spec.AMISelectorTerms[0].Alias = settings, "al2023@latest"
			if tc.family != "" {
				c.Spec.AMISelectorTerms[0].Alias = tc.family
			}
		})
		class, _, _ := w.look()
		c := condition(class, awsv1.ConditionTypeValidationSucceeded)
		if tc.want == "" {
			if c.Status != metav1.ConditionTrue {
				t.Errorf("%s: ValidationSucceeded is %+v", tc.settings, c)
			}
			continue
		}
		if c.Status != metav1.ConditionFalse || c.Reason != "InvalidKubeletConfiguration" ||
			!strings.Contains(c.Message, tc.want) {
			t.Errorf("%s: ValidationSucceeded is %+v, want %q", tc.settings, c, tc.want)
		}
	}
}

// With the gate on, expressions are read where they may stand, and what is wrong with one is told.
func TestKubeletExpressions(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.options.Expressions = true
	w.keeper = nodeclass.New(w.options)
	for settings, want := range map[string]string{
		`{"maxPods": "min(max_pods, vcpus * 8)", "kubeReserved": {"cpu": "max(60, vcpus * 30)", "memory": "1Gi"}, ` +
			`"systemReserved": {"memory": "memory_mib / 100"}}`: "",
		`{"maxPods": "cores * 8"}`:                        "undeclared reference",
		`{"maxPods": "instance_type"}`:                    "must give a number",
		`{"maxPods": ""}`:                                 "spec.kubelet.maxPods is",
		`{"kubeReserved": {"cpu": "vcpus * "}}`:           "spec.kubelet.kubeReserved.cpu is",
		`{"kubeReserved": {"cpu": "-1"}}`:                 "write a quantity of 0 or more",
		`{"evictionHard": {"memory.available": "vcpus"}}`: "write a quantity of 0 or more",
	} {
		var kubelet awsv1.KubeletConfiguration
		if err := json.Unmarshal([]byte(settings), &kubelet); err != nil {
			t.Fatal(err)
		}
		w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = kubelet })
		class, _, _ := w.look()
		c := condition(class, awsv1.ConditionTypeValidationSucceeded)
		if (want == "") != (c.Status == metav1.ConditionTrue) || !strings.Contains(c.Message, want) ||
			strings.Contains(c.Message, "\n") {
			t.Errorf("%s: ValidationSucceeded is %+v, want %q", settings, c, want)
		}
	}
}

// The contract passes over podsPerCore on Bottlerocket; it is said where a user looks.
func TestSettingWithoutEffect(t *testing.T) {
	class := newClass()
	class.Spec.AMISelectorTerms[0].Alias = "bottlerocket@latest"
	class.Spec.Kubelet = awsv1.KubeletConfiguration{"podsPerCore": {Raw: []byte("4")}}
	w := newWorld(t, account.Options{}, class)
	if c := condition(w.ready(), awsv1.ConditionTypeValidationSucceeded); !strings.Contains(c.Message,
		"podsPerCore has no effect") {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
}

func TestTags(t *testing.T) {
	named := manyTags(45)
	named["Name"] = "x"
	w := newWorld(t, account.Options{}, newClass())
	for want, tags := range map[string]map[string]string{
		"spec.tags has 45 tags and EC2 takes 50, of which the controller needs 6; remove 1": manyTags(45),
		"spec.tags has 46 tags and EC2 takes 50, of which the controller needs 5; remove 1": named,
		"keys that begin with aws: are AWS's own; rename aws:mine":                          {"aws:mine": "x"},
		"has 129 characters and EC2 takes 128": {strings.Repeat("k",
			129): "x"},
		"the value of team has 257 characters and EC2 takes 256": {"team": strings.Repeat(
			"v", 257)},
		"the controller sets kubernetes.io/cluster/lab itself": {"kubernetes.io/cluster/lab": "owned"},
		"the controller sets tenon.sh/claims-2 itself":         {"tenon.sh/claims-2": "x"},
		"": {"team": strings.Repeat("v", 256), strings.Repeat("k", 128): ""},
	} {
		w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Tags = tags })
		class, _, _ := w.look()
		c := condition(class, awsv1.ConditionTypeValidationSucceeded)
		if want == "" && c.Status != metav1.ConditionTrue || want != "" && (c.Reason != "TagValidationFailed" ||
			!strings.Contains(c.Message, want)) {
			t.Errorf("ValidationSucceeded is %+v, want %q", c, want)
		}
	}
}

func manyTags(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("key-%d", i)] = "x"
	}
	return out
}

// With so many tags that a launch has no room for its own, nodes are launched one by one. It works, and the user is
// told.
func TestTagsThatFillUp(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	named := manyTags(44)
	named["Name"] = "x"
	for _, tc := range []struct {
		tags  map[string]string
		doubt bool
	}{{manyTags(41), false}, {manyTags(42), true}, {manyTags(44), true}, {named, true}} {
		w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Tags = tc.tags })
		c := condition(w.ready(), awsv1.ConditionTypeValidationSucceeded)
		want := fmt.Sprintf("spec.tags has %d tags, which leaves no room to launch nodes together", len(tc.tags))
		if (c.Message != "") != tc.doubt || tc.doubt && (!strings.Contains(c.Message, want) ||
			!strings.Contains(c.Message, "keep to 41")) {
			t.Errorf("with %d tags ValidationSucceeded is %+v", len(tc.tags), c)
		}
	}
}
