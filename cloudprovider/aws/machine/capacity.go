package machine

import (
	"fmt"
	"math"

	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/aws/vpc"
	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// capacity is what a node of the type has. What it has none of is not listed.
func (b *build) capacity(pods int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(b.cores(), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(b.memory(), resource.BinarySI),
		corev1.ResourceEphemeralStorage: b.storage(),
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
	}
	for name, count := range b.devices() {
		if count > 0 {
			list[name] = *resource.NewQuantity(count, resource.DecimalSI)
		}
	}
	return list
}

func (h hardware) cores() int64 { return int64(aws.ToInt32(h.info.VCpuInfo.DefaultVCpus)) }

// gravitonKeeps is memory that Graviton's kernel keeps for devices, in MiB.
const gravitonKeeps = 64

// memory is what the kubelet will see, in bytes: what nodes of the kind were seen with, else the machine's memory less
// what the hypervisor and the kernel are thought to keep, in whole MiB.
func (b *build) memory() int64 {
	if b.learnt > 0 {
		return b.learnt
	}
	size := aws.ToInt64(b.info.MemoryInfo.SizeInMiB)
	if b.arch == v1.ArchitectureArm64 {
		size -= gravitonKeeps
	}
	kept := math.Ceil(float64(size*mib) * b.settings.VMMemoryOverheadPercent / 1024 / 1024)
	return (size - int64(kept)) * mib
}

// storage is the disk that pods' files are on: the joined disks of the instance if the class asks for that and there
// are any, else a volume.
func (b *build) storage() resource.Quantity {
	local := b.info.InstanceStorageInfo
	if p := b.class.Spec.InstanceStorePolicy; p != nil && *p == awsv1.InstanceStorePolicyRAID0 && local != nil &&
		aws.ToInt64(local.TotalSizeInGB) > 0 {
		return *resource.NewScaledQuantity(*local.TotalSizeInGB, resource.Giga)
	}
	return b.family.EphemeralStorage(b.class)
}

// devices are the extended resources that device plugins and the VPC's controller will announce.
func (b *build) devices() map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{}
	if g := b.info.GpuInfo; g != nil {
		for _, gpu := range g.Gpus {
			out[gpuResource(aws.ToString(gpu.Manufacturer))] += int64(aws.ToInt32(gpu.Count))
		}
		delete(out, "")
	}
	if n := b.info.NeuronInfo; n != nil {
		for _, device := range n.NeuronDevices {
			count := int64(aws.ToInt32(device.Count))
			out[awsv1.ResourceNeuron] += count
			if device.CoreInfo != nil {
				out[awsv1.ResourceNeuronCore] += count * int64(aws.ToInt32(device.CoreInfo.Count))
			}
		}
	}
	out[awsv1.ResourceEFA] = b.fabrics()
	if limits, ok := vpc.Limits[b.name()]; ok {
		if limits.IsTrunkingCompatible {
			out[awsv1.ResourcePodENI] = int64(limits.BranchInterface)
		}
		if b.family.OS() == corev1.Windows {
			// Windows pods get the addresses of one interface, which keeps one for itself.
			out[awsv1.ResourcePrivateIPv4Address] = int64(limits.IPv4PerInterface - 1)
		}
	}
	return out
}

func gpuResource(manufacturer string) corev1.ResourceName {
	switch manufacturer {
	case "NVIDIA":
		return awsv1.ResourceNVIDIAGPU
	case "AMD":
		return awsv1.ResourceAMDGPU
	case "Habana":
		return awsv1.ResourceHabanaGaudi
	default:
		return ""
	}
}

// fabrics is how many Elastic Fabric Adapters a node has: those that the class lists, if it lists interfaces, else all
// that the type can have, since they are attached when a pod asks for them.
func (b *build) fabrics() int64 {
	if len(b.class.Spec.NetworkInterfaces) == 0 {
		return int64(b.fabricLimit())
	}
	count := int64(0)
	for _, i := range b.class.Spec.NetworkInterfaces {
		if i.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			count++
		}
	}
	return count
}

// pods is how many pods the kubelet will take.
func (b *build) pods() (int64, error) {
	count := int64(family.DefaultPods)
	if b.family.Flags().ENILimitedPods {
		count = b.addressedPods(b.reservedENIs())
	}
	if most := b.kubelet.MaxPods; most != nil && most.Type == intstr.String {
		given, err := b.computedPods(most.StrVal, count)
		if err != nil {
			return 0, err
		}
		count = given
	} else if most != nil {
		count = int64(most.IntVal)
	}
	if each := b.kubelet.PodsPerCore; each != nil && *each > 0 && b.family.Flags().PodsPerCore {
		count = min(count, int64(*each)*b.cores())
	}
	return count, nil
}

// computedPods is what the expression for maxPods gives; usual is what holds without one, and also if the expression
// has no answer for this type.
func (b *build) computedPods(text string, usual int64) (int64, error) {
	if b.expressions == nil {
		return 0, fmt.Errorf("spec.kubelet.maxPods is %q; write a number, or switch on the feature gate NodeClassCEL "+
			"for expressions", text)
	}
	if err := b.expressions.program(text).err; err != nil {
		return 0, fmt.Errorf("spec.kubelet.maxPods is no expression: %w", err)
	}
	n, err := b.expressions.number(text, b.inputs(usual))
	if err != nil || n < 0 || n > math.MaxInt32 {
		return usual, nil
	}
	return n, nil
}

// inputs are what expressions see; pods is how many the node runs as far as that is known.
func (b *build) inputs(pods int64) inputs {
	return inputs{
		cores: b.cores(), memory: aws.ToInt64(b.info.MemoryInfo.SizeInMiB), enis: b.interfaces(),
		addresses: int64(aws.ToInt32(b.info.NetworkInfo.Ipv4AddressesPerInterface)), pods: pods, name: b.name(),
	}
}

// interfaces is how many network interfaces the default network card takes.
func (h hardware) interfaces() int64 {
	n := h.info.NetworkInfo
	return int64(aws.ToInt32(n.NetworkCards[aws.ToInt32(n.DefaultNetworkCardIndex)].MaximumNetworkInterfaces))
}

// reservedENIs is how many interfaces of the default network card have no addresses for pods.
func (b *build) reservedENIs() int64 {
	count := int64(b.settings.ReservedENIs)
	for _, i := range b.class.Spec.NetworkInterfaces {
		if i.NetworkCardIndex == 0 && i.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			count++
		}
	}
	return count
}

// addressedPods is how many pods get an address of their own from the interfaces of the default network card, without
// the reserved ones: each keeps one address for itself, and two pods use the host's.
func (b *build) addressedPods(reserved int64) int64 {
	usable := b.interfaces() - reserved
	if usable <= 0 {
		return 0
	}
	return usable*(int64(aws.ToInt32(b.info.NetworkInfo.Ipv4AddressesPerInterface))-1) + 2
}
