package machine_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
)

func withExpressions() *machine.Shapes {
	s := settings()
	s.Expressions = true
	return machine.NewShapes(s, machine.NewMemory(func() time.Time { return time.Time{} }))
}

// TestExpressions computes what a class keeps on an m5.large: 2 cores, 8192 MiB, 3 interfaces with 10 addresses, 29
// pods.
func TestExpressions(t *testing.T) {
	for _, test := range []struct {
		name, kubelet, memory, cpu string
		pods                       int64
	}{
		{"of cores", `maxPods="vcpus * 8"`, "6903Mi", "1930m", 16},
		{"of the usual number", `maxPods="min(max_pods, 20)"`, "6903Mi", "1930m", 20},
		{"of interfaces", `maxPods="default_enis * (ips_per_eni - 1) * 2"`, "6903Mi", "1930m", 54},
		{"whole and broken numbers are not mixed", `maxPods="vcpus * 4.2"`, "", "", 0},
		{"of a broken number the whole part counts", `maxPods="max(double(vcpus) * 4.2, 3)"`, "6903Mi", "1930m", 8},
		{"no number is dropped", `maxPods="0.0 / 0.0"`, "6903Mi", "1930m", 29},
		{"too much is dropped", `maxPods="1e12 * double(vcpus)"`, "6903Mi", "1930m", 29},
		{"memory of a broken number", `systemReserved={"memory":"double(vcpus) * 8.1"}`, "6887Mi", "1930m", 29},
		{"by name", `maxPods="instance_type.startsWith('m5.') ? 7 : 110"`, "6903Mi", "1930m", 7},
		{"a cap after it", `maxPods="100";podsPerCore=4`, "6903Mi", "1930m", 8},
		{"too little is dropped", `maxPods="0 - vcpus"`, "6903Mi", "1930m", 29},
		{"a division by zero is dropped", `maxPods="vcpus / (vcpus - 2)"`, "6903Mi", "1930m", 29},
		{"one that computes for too long is dropped", `maxPods="` + strings.Repeat("[0,1,2,3,4,5,6,7,8,9].map(x, ", 5) +
			"vcpus" + strings.Repeat(")", 5) + `.size()"`, "6903Mi", "1930m", 29},
		{"cores in steps of 10m", `kubeReserved={"cpu":"vcpus * 33"}`, "6903Mi", "1930m", 29},
		{"memory in steps of 16Mi", `kubeReserved={"memory":"memory_mib / 10"}`, "6645Mi", "1930m", 29},
		{"the pods that it came to", `maxPods="10";kubeReserved={"memory":"max_pods * 16"}`, "7317Mi", "1930m", 10},
		{"beside plain amounts", `systemReserved={"cpu":"100m","memory":"vcpus * 8"}`, "6887Mi", "1830m", 29},
		{"a plain number is a quantity, here of bytes", `systemReserved={"memory":"1048576"}`, "6902Mi", "1930m", 29},
		{"one that fails leaves the image's own", `kubeReserved={"memory":"1 / (vcpus - 2)"}`, "6903Mi", "1930m", 29},
	} {
		t.Run(test.name, func(t *testing.T) {
			class := classOf(awsv1.AMIFamilyAL2023)
			class.Spec.Kubelet = kubelet(test.kubelet)
			it, err := withExpressions().Shape(infoOf(t, "m5.large"), class)
			if test.pods == 0 {
				if err == nil || !strings.Contains(err.Error(), "spec.kubelet.maxPods") {
					t.Errorf("error is %v, want that the types don't fit", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			left := it.Allocatable()
			for text, got := range map[string]*resource.Quantity{test.memory: left.Memory(), test.cpu: left.Cpu()} {
				if want := resource.MustParse(text); got.Cmp(want) != 0 {
					t.Errorf("got %s, want %s", got, text)
				}
			}
			if left.Pods().Value() != test.pods {
				t.Errorf("%d pods, want %d", left.Pods().Value(), test.pods)
			}
		})
	}
}

// What was computed is handed to nodes; what a class says in plain words needs no computing.
func TestKept(t *testing.T) {
	class := classOf(awsv1.AMIFamilyAL2023)
	class.Spec.Kubelet = kubelet(
		`kubeReserved={"cpu":"vcpus * 33","memory":"1Gi","pid":"1 / (vcpus - 2)"};systemReserved={"cpu":"100m"}`)
	got, err := withExpressions().Kept(infoOf(t, "m5.large"), class)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.KubeReserved) != 2 || got.KubeReserved["cpu"] != "70m" || got.KubeReserved["memory"] != "1Gi" ||
		got.SystemReserved != nil {
		t.Errorf("kept are %+v", got)
	}
	if got, err := shapes().Kept(infoOf(t, "m5.large"), classOf(awsv1.AMIFamilyAL2023)); err != nil ||
		got.KubeReserved != nil {
		t.Errorf("without the gate kept are %+v (%v)", got, err)
	}
}

func TestExpressionsNeedTheGate(t *testing.T) {
	for _, text := range []string{`maxPods="vcpus * 8"`, `maxPods=""`, `kubeReserved={"cpu":"vcpus * 8"}`} {
		class := classOf(awsv1.AMIFamilyAL2023)
		class.Spec.Kubelet = kubelet(text)
		if _, err := shapes().Shape(infoOf(t, "m5.large"), class); err == nil || !strings.Contains(err.Error(),
			"NodeClassCEL") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCheckExpression(t *testing.T) {
	for text, want := range map[string]string{
		"vcpus * 8": "", "min(max_pods, vcpus * 10)": "", "memory_mib / 100": "", "2.5": "",
		"": "character", "vcpus *": "character", "cores * 8": "undeclared", "instance_type": "must give a number",
		"vcpus > 2": "must give a number",
	} {
		err := machine.CheckExpression(text)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := machine.CheckExpression("[1,2,3].map(x, x * x).size()"); err != nil {
		t.Errorf("a list: %v", err)
	}
}
