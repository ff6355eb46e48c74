package machine_test

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/aws/vpc"
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
)

// TestWholeCatalog holds every instance type under every family of images against the formulas of the contract, which
// are written down here a second time, in another way.
func TestWholeCatalog(t *testing.T) {
	infos, err := catalog.Types()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket,
		awsv1.AMIFamilyWindows2022, awsv1.AMIFamilyCustom} {
		t.Run(family, func(t *testing.T) {
			families, sizes := map[string]int{}, map[string]int{}
			class := classOf(family)
			for i := range infos {
				info := &infos[i]
				name := string(info.InstanceType)
				got, err := shapes().Shape(info, class)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if (got != nil) != usable(info, family) {
					t.Errorf("%s: can be used: %v", name, got != nil)
				}
				if got == nil {
					continue
				}
				before, after, _ := strings.Cut(name, ".")
				families[before]++
				sizes[after]++
				checkLabels(t, got, wantLabels(info, class))
				checkAmounts(t, got, wantAmounts(info, family))
			}
			t.Logf("%d families in %d size classes", len(families), len(sizes))
			if len(families) < 80 || len(sizes) < 25 {
				t.Errorf("%d families and %d size classes were compared; the catalog has more", len(families),
					len(sizes))
			}
		})
	}
}

// usable: hardware virtualization and a processor that Kubernetes runs on; x86 for Windows, no first Graviton for
// AL2023.
func usable(info *ec2types.InstanceTypeInfo, family string) bool {
	name := string(info.InstanceType)
	arch := info.ProcessorInfo.SupportedArchitectures
	x86, arm := slices.Contains(arch, "x86_64"), slices.Contains(arch, "arm64")
	switch {
	case info.SupportedVirtualizationTypes[0] == "paravirtual", !x86 && !arm:
		return false
	case strings.HasPrefix(family, "Windows"):
		return x86 && wantAmounts(info, family).memoryLeft > 0 // 1 GiB doesn't hold the kubelet's share for 110 pods.
	case family == awsv1.AMIFamilyAL2023:
		return !strings.HasPrefix(name, "a1.")
	default:
		return true
	}
}

// amounts is what a node has, and what pods may use of it.
type amounts struct {
	pods, milliCPU, milliCPULeft       int64
	memory, memoryLeft, disk, diskLeft int64
	devices                            map[corev1.ResourceName]int64
}

func wantAmounts(info *ec2types.InstanceTypeInfo, family string) amounts {
	name := string(info.InstanceType)
	cores := int64(*info.VCpuInfo.DefaultVCpus)
	windows := strings.HasPrefix(family, "Windows")

	byAddress := int64(2)
	for range *info.NetworkInfo.NetworkCards[*info.NetworkInfo.DefaultNetworkCardIndex].MaximumNetworkInterfaces {
		byAddress += int64(*info.NetworkInfo.Ipv4AddressesPerInterface) - 1
	}
	a := amounts{pods: byAddress, milliCPU: 1000 * cores, disk: 20 << 30, devices: map[corev1.ResourceName]int64{}}
	if windows {
		a.pods, a.disk = 110, 50<<30
	}

	mib := *info.MemoryInfo.SizeInMiB
	if slices.Contains(info.ProcessorInfo.SupportedArchitectures, "arm64") {
		mib -= 64
	}
	a.memory = (mib - ceil(big.NewRat(mib*75, 1000))) << 20
	a.memoryLeft = a.memory - (255+11*a.pods+100)<<20 // No maxPods is set, so both ways of counting agree.

	kept := new(big.Rat)
	for core := int64(1); core <= cores; core++ {
		switch {
		case core == 1:
			kept.Add(kept, big.NewRat(60, 1))
		case core == 2:
			kept.Add(kept, big.NewRat(10, 1))
		case core <= 4:
			kept.Add(kept, big.NewRat(5, 1))
		default:
			kept.Add(kept, big.NewRat(5, 2))
		}
	}
	a.milliCPULeft = a.milliCPU - new(big.Int).Quo(kept.Num(), kept.Denom()).Int64()
	a.diskLeft = a.disk - 1<<30 - ceil(big.NewRat(a.disk, 10))
	wantDevices(info, vpc.Limits[name], windows, a.devices)
	return a
}

func ceil(r *big.Rat) int64 {
	quotient, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient.Int64()
}

func wantDevices(info *ec2types.InstanceTypeInfo, limits *vpc.VPCLimits, windows bool,
	out map[corev1.ResourceName]int64) {
	if info.GpuInfo != nil {
		resource := map[string]corev1.ResourceName{"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu",
			"Habana": "habana.ai/gaudi"}[*info.GpuInfo.Gpus[0].Manufacturer]
		out[resource] = int64(*info.GpuInfo.Gpus[0].Count)
	}
	if info.NeuronInfo != nil {
		device := info.NeuronInfo.NeuronDevices[0]
		out["aws.amazon.com/neuron"] = int64(*device.Count)
		out["aws.amazon.com/neuroncore"] = int64(*device.Count * *device.CoreInfo.Count)
	}
	if info.NetworkInfo.EfaInfo != nil {
		out["vpc.amazonaws.com/efa"] = int64(*info.NetworkInfo.EfaInfo.MaximumEfaInterfaces)
	}
	if limits == nil {
		return
	}
	if limits.IsTrunkingCompatible && limits.BranchInterface > 0 {
		out["vpc.amazonaws.com/pod-eni"] = int64(limits.BranchInterface)
	}
	if windows {
		out["vpc.amazonaws.com/PrivateIPv4Address"] = int64(limits.IPv4PerInterface) - 1
	}
}

func checkAmounts(t *testing.T, got *cloudprovider.InstanceType, want amounts) {
	t.Helper()
	left := got.Allocatable()
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"pods", got.Capacity.Pods().Value(), want.pods},
		{"allocatable pods", left.Pods().Value(), want.pods},
		{"milli-CPU", got.Capacity.Cpu().MilliValue(), want.milliCPU},
		{"allocatable milli-CPU", left.Cpu().MilliValue(), want.milliCPULeft},
		{"memory", got.Capacity.Memory().Value(), want.memory},
		{"allocatable memory", left.Memory().Value(), want.memoryLeft},
		{"disk", got.Capacity.StorageEphemeral().Value(), want.disk},
		{"allocatable disk", left.StorageEphemeral().Value(), want.diskLeft},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s is %d, want %d", got.Name, c.what, c.got, c.want)
		}
	}
	for resource, q := range got.Capacity {
		if strings.Contains(string(resource), "/") && want.devices[resource] != q.Value() {
			t.Errorf("%s: %s of %s, want %d", got.Name, q.String(), resource, want.devices[resource])
		}
	}
	for resource, count := range want.devices {
		if q := left[resource]; q.Value() != count {
			t.Errorf("%s: %s of %s is allocatable, want %d", got.Name, q.String(), resource, count)
		}
	}
}

func checkLabels(t *testing.T, got *cloudprovider.InstanceType, want map[string][]string) {
	t.Helper()
	for key, values := range got.Labels {
		if !slices.Equal(values, want[key]) {
			t.Errorf("%s: label %s is %v, want %v", got.Name, key, values, want[key])
		}
	}
	for key, values := range want {
		if len(got.Labels[key]) == 0 {
			t.Errorf("%s: no label %s, want %v", got.Name, key, values)
		}
	}
}

func wantLabels(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) map[string][]string {
	const prefix = "karpenter.k8s.aws/"
	name := string(info.InstanceType)
	family, size, _ := strings.Cut(name, ".")
	want := map[string]string{
		"node.kubernetes.io/instance-type":   name,
		"kubernetes.io/os":                   "linux",
		"kubernetes.io/arch":                 "amd64",
		"topology.kubernetes.io/region":      region,
		prefix + "ec2nodeclass":              class.Name,
		prefix + "instance-family":           family,
		prefix + "instance-size":             size,
		prefix + "instance-capability-flex":  strconv.FormatBool(strings.HasSuffix(family, "-flex")),
		prefix + "instance-cpu":              strconv.Itoa(int(*info.VCpuInfo.DefaultVCpus)),
		prefix + "instance-cpu-manufacturer": strings.ToLower(*info.ProcessorInfo.Manufacturer),
		prefix + "instance-cpu-sustained-clock-speed-mhz": strconv.FormatFloat(
			aws.ToFloat64(info.ProcessorInfo.SustainedClockSpeedInGhz)*1000, 'f', 0, 64),
		prefix + "instance-memory": strconv.FormatInt(*info.MemoryInfo.SizeInMiB, 10),
		prefix + "instance-encryption-in-transit-supported": strconv.FormatBool(
			*info.NetworkInfo.EncryptionInTransitSupported),
	}
	want[prefix+"instance-category"], want[prefix+"instance-generation"] = nameParts(family)
	if slices.Contains(info.ProcessorInfo.SupportedArchitectures, "arm64") {
		want["kubernetes.io/arch"] = "arm64"
	}
	if strings.HasPrefix(class.AMIFamily(), "Windows") {
		want["kubernetes.io/os"], want["node.kubernetes.io/windows-build"] = "windows", "10.0.20348"
	}
	if !strings.HasPrefix(size, "metal") {
		want[prefix+"instance-hypervisor"] = string(info.Hypervisor)
	}
	wantParts(info, prefix, want)
	out := map[string][]string{prefix + "instance-tenancy": {"default", "dedicated"}}
	for key, value := range want {
		out[key] = []string{value}
	}
	return out
}

// wantParts are the labels of what only some machines have.
func wantParts(info *ec2types.InstanceTypeInfo, prefix string, want map[string]string) {
	lower := func(s *string) string { return strings.ToLower(strings.Join(strings.Fields(*s), "-")) }
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	if gbit := wantGbit(info.NetworkInfo); gbit > 0 {
		want[prefix+"instance-network-bandwidth"] = strconv.FormatFloat(gbit*1000, 'f', 0, 64)
	}
	if e := info.EbsInfo; e.EbsOptimizedSupport == "default" {
		want[prefix+"instance-ebs-bandwidth"] = number(*e.EbsOptimizedInfo.MaximumBandwidthInMbps)
	}
	if s := info.InstanceStorageInfo; s != nil && s.NvmeSupport == "required" {
		want[prefix+"instance-local-nvme"] = strconv.FormatInt(*s.TotalSizeInGB, 10)
	}
	if info.GpuInfo != nil {
		gpu := info.GpuInfo.Gpus[0]
		want[prefix+"instance-gpu-name"], want[prefix+"instance-gpu-manufacturer"] = lower(gpu.Name),
			lower(gpu.Manufacturer)
		want[prefix+"instance-gpu-count"], want[prefix+"instance-gpu-memory"] = number(*gpu.Count),
			number(*gpu.MemoryInfo.SizeInMiB)
	}
	if info.NeuronInfo != nil {
		device := info.NeuronInfo.NeuronDevices[0]
		want[prefix+"instance-accelerator-name"], want[prefix+"instance-accelerator-manufacturer"] = lower(device.Name),
			"aws"
		want[prefix+"instance-accelerator-count"] = number(*device.Count)
	}
}

// wantGbit is what the words of EC2 promise, if they do, and else the baseline of the only card.
func wantGbit(n *ec2types.NetworkInfo) float64 {
	words := strings.Fields(strings.Replace(aws.ToString(n.NetworkPerformance), "x ", " ", 1))
	total := 1.0
	for _, word := range words {
		figure, err := strconv.ParseFloat(word, 64)
		switch {
		case err == nil:
			total *= figure
		case word != "Gigabit":
			return aws.ToFloat64(n.NetworkCards[0].BaselineBandwidthInGbps)
		}
	}
	return total
}

// nameParts walks through a family's name: letters are the category, the number after them, or after a size in
// terabytes, the generation.
func nameParts(family string) (category, generation string) {
	rest := strings.TrimLeftFunc(family, unicode.IsLetter)
	category = strings.TrimSuffix(family, rest)
	if _, after, found := strings.Cut(rest, "tb"); found && strings.HasPrefix(rest, "-") {
		rest = after
	}
	generation = rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsDigit))]
	return category, generation
}

func TestLabelsAreValid(t *testing.T) {
	infos, err := catalog.Types()
	if err != nil {
		t.Fatal(err)
	}
	for i := range infos {
		it, err := shapes().Shape(&infos[i], classOf(awsv1.AMIFamilyAL2))
		if err != nil {
			t.Fatal(err)
		}
		if it == nil {
			continue // TestWholeCatalog says which may be missing.
		}
		for key, values := range it.Labels {
			for _, value := range values {
				if errs := validation.IsValidLabelValue(value); value == "" || len(errs) > 0 {
					t.Errorf("%s: label %s=%q: %v", it.Name, key, value, errs)
				}
			}
		}
		for name, kept := range it.Overhead {
			if have := it.Capacity[name]; kept.Sign() <= 0 || have.Cmp(kept) <= 0 {
				t.Errorf("%s: overhead of %s is %s, capacity %s", it.Name, name, kept.String(), have.String())
			}
		}
	}
}
