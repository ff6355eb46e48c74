package join

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/aws/vpc"
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

const (
	mib = 1 << 20
	gib = 1 << 30
	// Hypervisor, firmware and kernel keep some memory for themselves before the kubelet counts. On Nitro machines it
	// is between five and six percent for most sizes; 64 MiB more on arm64, for contiguous memory.
	keptPerMille = 55
	keptOnARM    = 64 * mib
)

// machine is what a kubelet finds when it starts.
type machine struct {
	info     ec2types.InstanceTypeInfo
	instance cloud.Instance
	image    system
	settings settings
}

// capacity is what the kubelet and the device plugins would count.
func (m machine) capacity() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(m.cpus()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(m.memory(), resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(m.pods(), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(m.disk(), resource.BinarySI),
	}
	for name, n := range m.devices() {
		if n > 0 {
			list[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	return list
}

func (m machine) cpus() int {
	if m.info.VCpuInfo == nil {
		return 0
	}
	cpus := int(aws.ToInt32(m.info.VCpuInfo.DefaultVCpus))
	if m.instance.Request != nil && m.instance.Request.CpuOptions != nil {
		o := m.instance.Request.CpuOptions
		if cores := int(aws.ToInt32(o.CoreCount)); cores > 0 {
			cpus = cores * max(1, int(aws.ToInt32(o.ThreadsPerCore)))
		}
	}
	return cpus
}

// memory is what is left for the kubelet to count, in whole KiB as the kernel does.
func (m machine) memory() int64 {
	if m.info.MemoryInfo == nil {
		return 0
	}
	total := aws.ToInt64(m.info.MemoryInfo.SizeInMiB) * mib
	total -= total / 1000 * keptPerMille
	if m.instance.Architecture == "arm64" {
		total -= keptOnARM
	}
	return total / 1024 * 1024
}

// pods is how many pods the kubelet takes.
func (m machine) pods() int64 {
	n := m.settings.MaxPods
	if n == 0 {
		n = 110
		if m.image != windows {
			n = m.interfacePods()
		}
	}
	if per := m.settings.PodsPerCore; per > 0 {
		n = min(n, per*int64(m.cpus()))
	}
	return n
}

// interfacePods is how many pods get an address of their own: one for each secondary address, and two that use the
// host's.
func (m machine) interfacePods() int64 {
	n := m.info.NetworkInfo
	if n == nil {
		return 110
	}
	interfaces := aws.ToInt32(n.MaximumNetworkInterfaces)
	card := aws.ToInt32(n.DefaultNetworkCardIndex)
	for _, c := range n.NetworkCards {
		if aws.ToInt32(c.NetworkCardIndex) == card && c.MaximumNetworkInterfaces != nil {
			interfaces = *c.MaximumNetworkInterfaces
		}
	}
	return int64(interfaces)*int64(aws.ToInt32(n.Ipv4AddressesPerInterface)-1) + 2
}

// disk is the size of what pods write to: the array of local disks, Bottlerocket's data volume, or the root volume.
func (m machine) disk() int64 {
	if store := m.info.InstanceStorageInfo; m.settings.RAID0 && store != nil {
		return aws.ToInt64(store.TotalSizeInGB) * 1_000_000_000
	}
	root := int64(0)
	for i, v := range m.instance.Volumes {
		data := m.image == bottlerocket && v.Device == "/dev/xvdb"
		if i == 0 || data {
			root = int64(v.SizeGiB) * gib
		}
		if data {
			break
		}
	}
	return root
}

// devices are what plugins would offer. kwok runs no plugin, so the machine itself does.
func (m machine) devices() map[corev1.ResourceName]int64 {
	list := map[corev1.ResourceName]int64{}
	if m.info.GpuInfo != nil {
		for _, g := range m.info.GpuInfo.Gpus {
			if name, ok := gpuResource(aws.ToString(g.Manufacturer)); ok {
				list[name] += int64(aws.ToInt32(g.Count))
			}
		}
	}
	if m.info.NeuronInfo != nil {
		for _, d := range m.info.NeuronInfo.NeuronDevices {
			list["aws.amazon.com/neuron"] += int64(aws.ToInt32(d.Count))
			if d.CoreInfo != nil {
				list["aws.amazon.com/neuroncore"] += int64(aws.ToInt32(d.Count) * aws.ToInt32(d.CoreInfo.Count))
			}
		}
	}
	for _, n := range m.instance.Interfaces {
		if strings.HasPrefix(n.Type, "efa") {
			list["vpc.amazonaws.com/efa"]++
		}
	}
	limits := vpc.Limits[m.instance.Type]
	switch {
	case limits == nil:
	case m.image == windows:
		list["vpc.amazonaws.com/PrivateIPv4Address"] = int64(limits.IPv4PerInterface - 1)
	case limits.IsTrunkingCompatible:
		list["vpc.amazonaws.com/pod-eni"] = int64(limits.BranchInterface)
	}
	return list
}

func gpuResource(manufacturer string) (corev1.ResourceName, bool) {
	switch strings.ToUpper(manufacturer) {
	case "NVIDIA":
		return "nvidia.com/gpu", true
	case "AMD":
		return "amd.com/gpu", true
	case "HABANA":
		return "habana.ai/gaudi", true
	}
	return "", false
}

// allocatable is the capacity without what is kept for the kubelet, the system, and eviction.
func (m machine) allocatable(capacity corev1.ResourceList) (corev1.ResourceList, error) {
	list := capacity.DeepCopy()
	for _, kept := range []map[string]string{m.kubeReserved(), m.settings.SystemReserved} {
		for name, text := range kept {
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, fmt.Errorf("reading the reserved %s %q: %w", name, text, err)
			}
			subtract(list, corev1.ResourceName(name), q)
		}
	}
	for signal, name := range map[string]corev1.ResourceName{"memory.available": corev1.ResourceMemory,
		"nodefs.available": corev1.ResourceEphemeralStorage} {
		kept, err := m.evicted(signal, capacity[name])
		if err != nil {
			return nil, err
		}
		subtract(list, name, kept)
	}
	return list, nil
}

func subtract(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	have, ok := list[name]
	if !ok {
		return
	}
	have.Sub(q)
	if have.Sign() < 0 {
		have = resource.Quantity{}
	}
	list[name] = have
}

// kubeReserved is what the image reserves for the kubelet, with what the user data says instead. The image counts the
// pods that the interfaces allow, but for Bottlerocket and Windows, which count those that there will be.
func (m machine) kubeReserved() map[string]string {
	pods := m.pods()
	if m.image != bottlerocket && m.image != windows {
		pods = m.interfacePods()
	}
	kept := map[string]string{
		"cpu": fmt.Sprintf("%dm", reservedCPU(m.cpus())), "memory": fmt.Sprintf("%dMi", 11*pods+255),
		"ephemeral-storage": "1Gi",
	}
	for name, text := range m.settings.KubeReserved {
		kept[name] = text
	}
	return kept
}

// reservedCPU is, in millicores, 6 percent of the first core, 1 of the second, half a percent of the next two, a
// quarter beyond.
func reservedCPU(cpus int) int {
	tenths := 0 // of a millicore
	for n := 1; n <= cpus; n++ {
		switch {
		case n == 1:
			tenths += 600
		case n == 2:
			tenths += 100
		case n <= 4:
			tenths += 50
		default:
			tenths += 25
		}
	}
	return tenths / 10
}

// evicted is what must stay free of a resource: 100 MiB of memory and a tenth of the disk, if the user data says
// nothing. The kubelet takes a given table as a whole: what it does not name is not watched.
func (m machine) evicted(signal string, capacity resource.Quantity) (resource.Quantity, error) {
	text, given := m.settings.EvictionHard[signal]
	if !given && len(m.settings.EvictionHard) > 0 {
		return resource.Quantity{}, nil
	}
	if !given {
		text = map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"}[signal]
	}
	percent, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return q, fmt.Errorf("reading the eviction threshold %s %q: %w", signal, text, err)
		}
		return q, nil
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("reading the eviction threshold %s %q: %w", signal, text, err)
	}
	if share >= 100 { // which switches it off
		share = 0
	}
	return *resource.NewQuantity(int64(float64(capacity.Value())*share/100), resource.BinarySI), nil
}

// volumesLeft is how many more volumes can be attached, as EBS's driver counts. Where one limit is for all that is
// plugged in, network interfaces, local disks and accelerators count too.
func (m machine) volumesLeft() int {
	e := m.info.EbsInfo
	if e == nil {
		return 1
	}
	left := int(aws.ToInt32(e.MaximumEbsAttachments)) - len(m.instance.Volumes)
	if e.AttachmentLimitType == ec2types.AttachmentLimitTypeShared &&
		m.info.Hypervisor != ec2types.InstanceTypeHypervisorXen {
		left -= len(m.instance.Interfaces) + m.localDisks()
		for _, n := range m.accelerators() {
			left -= n
		}
	}
	return max(left, 1)
}

// localDisks are the NVMe disks that the machine has by itself.
func (m machine) localDisks() int {
	s, n := m.info.InstanceStorageInfo, 0
	if s == nil || s.NvmeSupport == ec2types.EphemeralNvmeSupportUnsupported {
		return 0
	}
	for _, d := range s.Disks {
		n += int(aws.ToInt32(d.Count))
	}
	return n
}

// accelerators counts the devices of each kind.
func (m machine) accelerators() []int {
	var out []int
	if g := m.info.GpuInfo; g != nil {
		for _, gpu := range g.Gpus {
			out = append(out, int(aws.ToInt32(gpu.Count)))
		}
	}
	if n := m.info.NeuronInfo; n != nil {
		for _, d := range n.NeuronDevices {
			out = append(out, int(aws.ToInt32(d.Count)))
		}
	}
	return out
}
