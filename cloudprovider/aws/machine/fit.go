package machine

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// architecture is the type's, as Kubernetes names it; false for types that no node can run on, such as those for macOS
// and those without hardware virtualization.
func architecture(info *ec2types.InstanceTypeInfo) (string, bool) {
	if info.ProcessorInfo == nil || !slices.Contains(info.SupportedVirtualizationTypes, ec2types.VirtualizationTypeHvm) {
		return "", false
	}
	for _, arch := range info.ProcessorInfo.SupportedArchitectures {
		switch arch {
		case ec2types.ArchitectureTypeX8664:
			return v1.ArchitectureAmd64, true
		case ec2types.ArchitectureTypeArm64:
			return v1.ArchitectureArm64, true
		}
	}
	return "", false
}

// complete tells whether EC2 has said enough of the type to compute with. Types are announced before all is known.
func complete(info *ec2types.InstanceTypeInfo) bool {
	if info.VCpuInfo == nil || aws.ToInt32(info.VCpuInfo.DefaultVCpus) <= 0 ||
		info.MemoryInfo == nil || aws.ToInt64(info.MemoryInfo.SizeInMiB) <= 0 {
		return false
	}
	n := info.NetworkInfo
	return n != nil && int(aws.ToInt32(n.DefaultNetworkCardIndex)) < len(n.NetworkCards) && aws.ToInt32(n.Ipv4AddressesPerInterface) > 0
}

// fits tells whether the class can launch the type at all.
func (b *build) fits() bool {
	if b.family.Excludes(b.name()) {
		return false
	}
	if b.family.OS() == corev1.Windows && b.arch != v1.ArchitectureAmd64 {
		return false
	}
	return b.virtualizes() && b.hasInterfaces() && b.tunes()
}

// virtualizes: nested virtualization needs a processor that has it.
func (b *build) virtualizes() bool {
	options := b.class.Spec.CPUOptions
	if options == nil || aws.ToString(options.NestedVirtualization) != "enabled" {
		return true
	}
	return slices.Contains(b.info.ProcessorInfo.SupportedFeatures, ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization)
}

// tunes: times of connection tracking and address prefixes need network interfaces of the Nitro system.
func (b *build) tunes() bool {
	prefixes := b.class.Spec.IPPrefixCount
	if b.class.Spec.ConnectionTracking == nil && (prefixes == nil || *prefixes == 0) {
		return true
	}
	return b.info.Hypervisor == ec2types.InstanceTypeHypervisorNitro || aws.ToBool(b.info.BareMetal)
}

// hasInterfaces: the network interfaces that the class asks for need cards with places for them, Elastic Network Adapters,
// and those with an Elastic Fabric Adapter a type that has one. A card has as many places as interfaces, numbered from 0.
func (b *build) hasInterfaces() bool {
	n := b.info.NetworkInfo
	if len(b.class.Spec.NetworkInterfaces) > 0 && n.EnaSupport == ec2types.EnaSupportUnsupported {
		return false
	}
	onCard, lastPlace := map[int32]int32{}, map[int32]int32{}
	fabric := int32(0)
	for _, want := range b.class.Spec.NetworkInterfaces {
		onCard[want.NetworkCardIndex]++
		lastPlace[want.NetworkCardIndex] = max(lastPlace[want.NetworkCardIndex], want.DeviceIndex)
		if want.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			fabric++
		}
	}
	for index, count := range onCard {
		i := slices.IndexFunc(n.NetworkCards, func(c ec2types.NetworkCardInfo) bool { return aws.ToInt32(c.NetworkCardIndex) == index })
		if i < 0 {
			return false
		}
		if room := aws.ToInt32(n.NetworkCards[i].MaximumNetworkInterfaces); count > room || lastPlace[index] >= room {
			return false
		}
	}
	return fabric <= b.fabricLimit()
}

// fabricLimit is how many Elastic Fabric Adapters the type can have.
func (b *build) fabricLimit() int32 {
	n := b.info.NetworkInfo
	if !aws.ToBool(n.EfaSupported) || n.EfaInfo == nil {
		return 0
	}
	return aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces)
}
