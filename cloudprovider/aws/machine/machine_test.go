package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
)

const region = "us-west-2"

func settings() machine.Settings {
	return machine.Settings{Region: region, VMMemoryOverheadPercent: 0.075}
}

func shapes() *machine.Shapes {
	return machine.NewShapes(settings(), machine.NewMemory(func() time.Time { return time.Time{} }))
}

func classOf(family string) *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: awsv1.EC2NodeClassSpec{AMIFamily: &family}}
}

func infoOf(t *testing.T, name string) *ec2types.InstanceTypeInfo {
	t.Helper()
	infos, err := catalog.Types()
	if err != nil {
		t.Fatal(err)
	}
	for i := range infos {
		if string(infos[i].InstanceType) == name {
			return &infos[i]
		}
	}
	t.Fatalf("the catalog lacks %s", name)
	return nil
}

func shape(t *testing.T, s *machine.Shapes, name string, class *awsv1.EC2NodeClass) *cloudprovider.InstanceType {
	t.Helper()
	it, err := s.Shape(infoOf(t, name), class)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return it
}

func kubelet(text string) awsv1.KubeletConfiguration {
	out := awsv1.KubeletConfiguration{}
	for line := range strings.SplitSeq(text, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		out[key] = apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return out
}

// TestPublished compares with the values that Karpenter's documentation publishes for AL2023 (AL2 for a1).
func TestPublished(t *testing.T) {
	for _, want := range []struct {
		name, family, cpu, memory string
		pods, podENI, efa, gpu    int64
	}{
		{"a1.medium", "AL2", "940m", "1392Mi", 8, 10, 0, 0},
		{"a1.large", "AL2", "1930m", "3055Mi", 29, 9, 0, 0},
		{"a1.metal", "AL2", "15890m", "27322Mi", 234, 54, 0, 0},
		{"c3.large", "AL2023", "1930m", "2878Mi", 29, 0, 0, 0},
		{"c4.8xlarge", "AL2023", "35840m", "53903Mi", 234, 0, 0, 0},
		{"m8gd.xlarge", "AL2023", "3920m", "14103Mi", 58, 18, 0, 0},
		{"m8gd.16xlarge", "AL2023", "63770m", "233962Mi", 737, 107, 0, 0},
		{"m8gd.metal-24xl", "AL2023", "95690m", "355203Mi", 737, 107, 1, 0},
		{"m8gd.48xlarge", "AL2023", "191450m", "718928Mi", 737, 107, 1, 0},
		{"p3.2xlarge", "AL2023", "7910m", "56786Mi", 58, 0, 0, 1},
		{"p3.16xlarge", "AL2023", "63770m", "459304Mi", 234, 0, 0, 8},
		{"p3dn.24xlarge", "AL2023", "95690m", "718987Mi", 737, 107, 1, 8},
		{"p4d.24xlarge", "AL2023", "95690m", "1082712Mi", 737, 62, 4, 8},
	} {
		left := shape(t, shapes(), want.name, classOf(want.family)).Allocatable()
		if q := resource.MustParse(want.cpu); left.Cpu().Cmp(q) != 0 {
			t.Errorf("%s: cpu %s, want %s", want.name, left.Cpu(), want.cpu)
		}
		if q := resource.MustParse(want.memory); left.Memory().Cmp(q) != 0 {
			t.Errorf("%s: memory %s, want %s", want.name, left.Memory(), want.memory)
		}
		if q := resource.MustParse("17Gi"); left.StorageEphemeral().Cmp(q) != 0 {
			t.Errorf("%s: disk %s, want 17Gi", want.name, left.StorageEphemeral())
		}
		for name, count := range map[corev1.ResourceName]int64{corev1.ResourcePods: want.pods,
			awsv1.ResourcePodENI: want.podENI, awsv1.ResourceEFA: want.efa, awsv1.ResourceNVIDIAGPU: want.gpu} {
			if q := left[name]; q.Value() != count {
				t.Errorf("%s: %s of %s, want %d", want.name, q.String(), name, count)
			}
		}
	}
}

// TestKubelet: what the class tells the kubelet, on an m5.large (2 cores, 7577 MiB, 29 pods by addresses).
func TestKubelet(t *testing.T) {
	for _, test := range []struct {
		name, family, kubelet, memory, cpu, disk string
		pods                                     int64
	}{
		{"nothing", "AL2023", ``, "6903Mi", "1930m", "17Gi", 29},
		{"maxPods; the memory kept follows from the addresses", "AL2023", `maxPods=110`, "6903Mi", "1930m",
			"17Gi", 110},
		{"maxPods; the memory kept follows from it", "Bottlerocket", `maxPods=110`, "6012Mi", "1930m", "17Gi", 110},
		{"podsPerCore", "AL2023", `podsPerCore=4`, "6903Mi", "1930m", "17Gi", 8},
		{"podsPerCore above maxPods", "AL2023", `podsPerCore=40;maxPods=20`, "6903Mi", "1930m", "17Gi", 20},
		{"podsPerCore where it is not known", "Bottlerocket", `podsPerCore=4`, "6903Mi", "1930m", "17Gi", 29},
		{"podsPerCore of nothing", "AL2023", `podsPerCore=0`, "6903Mi", "1930m", "17Gi", 29},
		{"Windows", "Windows2022", `podsPerCore=10`, "7002Mi", "1930m", "44Gi", 20},
		{"kubeReserved replaces", "AL2023", `kubeReserved={"cpu":"200m","memory":"1Gi"}`, "6453Mi", "1800m",
			"17Gi", 29},
		{"systemReserved adds", "AL2023", `systemReserved={"cpu":"100m","memory":"100Mi","ephemeral-storage":"1Gi"}`,
			"6803Mi", "1830m", "16Gi", 29},
		{"evictionHard by amount", "AL2023", `evictionHard={"memory.available":"500Mi","nodefs.available":"1Gi"}`,
			"6503Mi", "1930m", "18Gi", 29},
		{"evictionHard off", "AL2023", `evictionHard={"memory.available":"100%","nodefs.available":"100%"}`, "7003Mi",
			"1930m", "19Gi", 29},
		{"evictionSoft is a warning", "AL2023", `evictionSoft={"memory.available":"3Gi"}`, "6903Mi", "1930m",
			"17Gi", 29},
	} {
		t.Run(test.name, func(t *testing.T) {
			class := classOf(test.family)
			if test.kubelet != "" {
				class.Spec.Kubelet = kubelet(test.kubelet)
			}
			left := shape(t, shapes(), "m5.large", class).Allocatable()
			for text, got := range map[string]*resource.Quantity{test.memory: left.Memory(), test.cpu: left.Cpu(),
				test.disk: left.StorageEphemeral()} {
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

func TestEvictionPercentage(t *testing.T) {
	class := classOf(awsv1.AMIFamilyAL2023)
	class.Spec.Kubelet = kubelet(`evictionHard={"memory.available":"7.5%","nodefs.available":"15%"}`)
	it := shape(t, shapes(), "m5.large", class)
	memory, disk := it.Overhead[corev1.ResourceMemory], it.Overhead[corev1.ResourceEphemeralStorage]
	if want := int64(574<<20 + 595879527); memory.Value() != want { // 11·29+255 MiB, and 7.5 % of 7577 MiB rounded up
		t.Errorf("memory kept %d, want %d", memory.Value(), want)
	}
	if want := int64(1<<30 + 3221225472); disk.Value() != want {
		t.Errorf("disk kept %d, want %d", disk.Value(), want)
	}
}

func TestMistakesInTheClass(t *testing.T) {
	for text, want := range map[string]string{
		`kubeReserved={"memory":"lots"}`:           `spec.kubelet.kubeReserved[memory] is "lots"`,
		`systemReserved={"cpu":"1 core"}`:          `spec.kubelet.systemReserved[cpu] is "1 core"`,
		`evictionHard={"memory.available":"x%"}`:   `spec.kubelet.evictionHard[memory.available] is "x%"`,
		`evictionHard={"nodefs.available":"120%"}`: `spec.kubelet.evictionHard[nodefs.available] is "120%"`,
		`maxPods="max_pods / 2"`:                   `spec.kubelet.maxPods is "max_pods / 2"; write a number`,
		`podsPerCore="many"`:                       `spec.kubelet`,
	} {
		class := classOf(awsv1.AMIFamilyAL2023)
		class.Spec.Kubelet = kubelet(text)
		_, err := shapes().Shape(infoOf(t, "m5.large"), class)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(),
			"EC2NodeClass default") {
			t.Errorf("%s: error %v lacks %q", text, err, want)
		}
	}
}

func TestDisk(t *testing.T) {
	size := resource.MustParse("80Gi")
	raid := awsv1.InstanceStorePolicyRAID0
	for _, test := range []struct {
		name, instanceType, want string
		change                   func(*awsv1.EC2NodeClass)
	}{
		{"default", "m5d.large", "20Gi", func(*awsv1.EC2NodeClass) {}},
		{"joined disks", "m5d.large", "75G", func(c *awsv1.EC2NodeClass) { c.Spec.InstanceStorePolicy = &raid }},
		{"several joined disks", "i3en.24xlarge", "60000G", func(c *awsv1.EC2NodeClass) {
			c.Spec.InstanceStorePolicy = &raid
		}},
		{"no disks to join", "m5.large", "20Gi", func(c *awsv1.EC2NodeClass) { c.Spec.InstanceStorePolicy = &raid }},
		{"a volume of the class", "m5.large", "80Gi", func(c *awsv1.EC2NodeClass) {
			c.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"),
				EBS: &awsv1.BlockDevice{VolumeSize: &size}}}
		}},
	} {
		class := classOf(awsv1.AMIFamilyAL2023)
		test.change(class)
		it := shape(t, shapes(), test.instanceType, class)
		if want := resource.MustParse(test.want); it.Capacity.StorageEphemeral().Cmp(want) != 0 {
			t.Errorf("%s: %s has %s, want %s", test.name, test.instanceType, it.Capacity.StorageEphemeral(), test.want)
		}
	}
}

func TestReservedInterfaces(t *testing.T) {
	for reserved, want := range map[int]int64{0: 29, 1: 20, 2: 11} {
		s := settings()
		s.ReservedENIs = reserved
		it := shape(t, machine.NewShapes(s, machine.NewMemory(time.Now)), "m5.large", classOf(awsv1.AMIFamilyAL2023))
		if got := it.Capacity.Pods().Value(); got != want {
			t.Errorf("%d interfaces reserved: %d pods, want %d", reserved, got, want)
		}
	}
	s := settings()
	s.ReservedENIs = 3
	if it := shape(t, machine.NewShapes(s, machine.NewMemory(time.Now)), "m5.large",
		classOf(awsv1.AMIFamilyAL2023)); it != nil {
		t.Errorf("a type without interfaces for pods is offered with %d pods", it.Capacity.Pods().Value())
	}
}

// The images keep 11 MiB for each pod that all interfaces of the type could carry, whatever is reserved.
func TestReservedInterfacesKeepMemory(t *testing.T) {
	adapter := classOf(awsv1.AMIFamilyAL2023)
	adapter.Spec.NetworkInterfaces = interfaces(
		awsv1.NetworkInterface{InterfaceType: awsv1.InterfaceTypeInterface},
		awsv1.NetworkInterface{DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly})
	for _, test := range []struct {
		name  string
		class *awsv1.EC2NodeClass
	}{{"m5.large", classOf(awsv1.AMIFamilyAL2023)}, {"c5.24xlarge", classOf(awsv1.AMIFamilyAL2023)},
		{"p4d.24xlarge", adapter}} {
		want := shape(t, shapes(), test.name, classOf(awsv1.AMIFamilyAL2023)).Overhead.Memory()
		for reserved := range 3 {
			s := settings()
			s.ReservedENIs = reserved
			got := shape(t, machine.NewShapes(s, machine.NewMemory(time.Now)), test.name, test.class).Overhead.Memory()
			if got.Cmp(*want) != 0 {
				t.Errorf("%s with %d interfaces reserved keeps %s, want %s", test.name, reserved, got, want)
			}
		}
	}
}

// Only the Nitro system can tune its interfaces.
func TestNitroOnly(t *testing.T) {
	tracking, prefixes := classOf(awsv1.AMIFamilyAL2023), classOf(awsv1.AMIFamilyAL2023)
	tracking.Spec.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: aws.Int32(30)}
	prefixes.Spec.IPPrefixCount = aws.Int32(1)
	for _, class := range []*awsv1.EC2NodeClass{tracking, prefixes} {
		for name, want := range map[string]bool{"t2.small": false, "m5.large": true, "m5.metal": true} {
			if it := shape(t, shapes(), name, class); (it != nil) != want {
				t.Errorf("%s is offered: %v", name, it != nil)
			}
		}
	}
	if shape(t, shapes(), "t2.small", classOf(awsv1.AMIFamilyAL2023)) == nil {
		t.Error("t2.small is not offered though nothing is tuned")
	}
}

func TestPlacesOnACard(t *testing.T) {
	class := classOf(awsv1.AMIFamilyAL2023)
	for device, want := range map[int32]bool{1: true, 2: true, 3: false, 7: false} {
		class.Spec.NetworkInterfaces = interfaces(
			awsv1.NetworkInterface{InterfaceType: awsv1.InterfaceTypeInterface},
			awsv1.NetworkInterface{DeviceIndex: device, InterfaceType: awsv1.InterfaceTypeInterface})
		if it := shape(t, shapes(), "m5.large", class); (it != nil) != want {
			t.Errorf("m5.large, which has three places, is offered for the place %d: %v", device, it != nil)
		}
	}
	info := infoOf(t, "m5.large")
	info.NetworkInfo.EnaSupport = ec2types.EnaSupportUnsupported
	class.Spec.NetworkInterfaces = class.Spec.NetworkInterfaces[:1]
	if it, err := shapes().Shape(info, class); it != nil || err != nil {
		t.Errorf("a type without ENA is offered (%v)", err)
	}
}

func interfaces(list ...awsv1.NetworkInterface) []*awsv1.NetworkInterface {
	var out []*awsv1.NetworkInterface
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

func TestInterfacesOfTheClass(t *testing.T) {
	class := classOf(awsv1.AMIFamilyAL2023)
	class.Spec.NetworkInterfaces = interfaces(
		awsv1.NetworkInterface{NetworkCardIndex: 0, DeviceIndex: 0, InterfaceType: awsv1.InterfaceTypeInterface},
		awsv1.NetworkInterface{NetworkCardIndex: 0, DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly},
		awsv1.NetworkInterface{NetworkCardIndex: 1, DeviceIndex: 0, InterfaceType: awsv1.InterfaceTypeEFAOnly},
	)
	it := shape(t, shapes(), "p4d.24xlarge", class)
	if efa := it.Capacity[awsv1.ResourceEFA]; efa.Value() != 2 {
		t.Errorf("%s adapters, want the two that the class lists", efa.String())
	}
	if got := it.Capacity.Pods().Value(); got != 14*49+2 {
		t.Errorf("%d pods, want those of 14 interfaces: one of the card's 15 is an adapter's", got)
	}
	for _, name := range []string{"m5.large", "c5n.18xlarge"} { // No adapter; no second card.
		if it := shape(t, shapes(), name, class); it != nil {
			t.Errorf("%s is offered, though it lacks the interfaces of the class", name)
		}
	}
	class.Spec.NetworkInterfaces = nil
	for range 4 {
		class.Spec.NetworkInterfaces = append(class.Spec.NetworkInterfaces,
			interfaces(awsv1.NetworkInterface{InterfaceType: awsv1.InterfaceTypeInterface})...)
	}
	if it := shape(t, shapes(), "m5.large", class); it != nil {
		t.Error("m5.large is offered with four interfaces; it takes three")
	}
}

func TestNestedVirtualization(t *testing.T) {
	class := classOf(awsv1.AMIFamilyAL2023)
	class.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: aws.String("enabled")}
	info := infoOf(t, "m6i.large")
	if it, err := shapes().Shape(info, class); it != nil || err != nil {
		t.Errorf("a processor without nested virtualization is offered (%v)", err)
	}
	info.ProcessorInfo.SupportedFeatures =
		[]ec2types.SupportedAdditionalProcessorFeature{ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization}
	if it, err := shapes().Shape(info, class); it == nil || err != nil {
		t.Errorf("a processor with nested virtualization is not offered (%v)", err)
	}
	class.Spec.CPUOptions.NestedVirtualization = aws.String("disabled")
	if it := shape(t, shapes(), "m7i.large", class); it == nil {
		t.Error("a class without nested virtualization offers nothing")
	}
}

// TestHalfAnnounced: EC2 tells of new types before it tells all of them; nothing may break.
func TestHalfAnnounced(t *testing.T) {
	for name, spoil := range map[string]func(*ec2types.InstanceTypeInfo){
		"no processor": func(i *ec2types.InstanceTypeInfo) { i.ProcessorInfo = nil },
		"no vCPUs":     func(i *ec2types.InstanceTypeInfo) { i.VCpuInfo = nil },
		"no memory":    func(i *ec2types.InstanceTypeInfo) { i.MemoryInfo = nil },
		"no network":   func(i *ec2types.InstanceTypeInfo) { i.NetworkInfo = nil },
		"no cards":     func(i *ec2types.InstanceTypeInfo) { i.NetworkInfo.NetworkCards = nil },
		"no addresses": func(i *ec2types.InstanceTypeInfo) { i.NetworkInfo.Ipv4AddressesPerInterface = nil },
	} {
		info := infoOf(t, "m5.large")
		spoil(info)
		if it, err := shapes().Shape(info, classOf(awsv1.AMIFamilyAL2023)); it != nil || err != nil {
			t.Errorf("%s: %v, %v; want neither a type nor an error", name, it, err)
		}
	}
	info := infoOf(t, "p4d.24xlarge")
	info.EbsInfo, info.GpuInfo.Gpus[0].MemoryInfo, info.NetworkInfo.EfaInfo = nil, nil, nil
	if it, err := shapes().Shape(info, classOf(awsv1.AMIFamilyAL2023)); it == nil || err != nil {
		t.Errorf("a type of which only details are missing is not offered (%v)", err)
	}
}

func TestVolumeLimits(t *testing.T) {
	for _, test := range []struct {
		name, family string
		want         int32
	}{
		{"m5.large", "AL2023", 26},       // 28 slots, less the root volume and the first interface
		{"m5.large", "Bottlerocket", 25}, // two volumes from the start
		{"m5d.24xlarge", "AL2023", 22},   // four local disks
		{"g4dn.12xlarge", "AL2023", 21},  // a disk and four accelerators
		{"m4.large", "AL2023", 38},       // Xen shares with nothing
		{"m7i.large", "AL2023", 31},      // slots for volumes only
	} {
		it := shape(t, shapes(), test.name, classOf(test.family))
		if got := it.VolumeLimits["ebs.csi.aws.com"]; got != test.want {
			t.Errorf("%s with %s: %d volumes, want %d", test.name, test.family, got, test.want)
		}
	}
}
