package machine

import (
	"fmt"
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
	if info.ProcessorInfo == nil || !slices.Contains(info.SupportedVirtualizationTypes,
		ec2types.VirtualizationTypeHvm) {
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
	return n != nil && int(aws.ToInt32(n.DefaultNetworkCardIndex)) < len(n.NetworkCards) &&
		aws.ToInt32(n.Ipv4AddressesPerInterface) > 0
}

// misfit says why the class can't launch the type at all; empty if it can.
func (b *build) misfit() string {
	if b.family.Excludes(b.name()) || b.family.OS() == corev1.Windows && b.arch != v1.ArchitectureAmd64 {
		return fmt.Sprintf("have a processor that images of amiFamily %s don't run on", b.family.Name())
	}
	for _, check := range []func() string{b.virtualizes, b.hasInterfaces, b.tunes} {
		if why := check(); why != "" {
			return why
		}
	}
	return ""
}

// virtualizes: nested virtualization needs a processor that has it.
func (b *build) virtualizes() string {
	options := b.class.Spec.CPUOptions
	if options == nil || aws.ToString(options.NestedVirtualization) != "enabled" ||
		slices.Contains(b.info.ProcessorInfo.SupportedFeatures,
			ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization) {
		return ""
	}
	return "can't run virtual machines (spec.cpuOptions.nestedVirtualization)"
}

// tunes: times of connection tracking and address prefixes need network interfaces of the Nitro system.
func (b *build) tunes() string {
	prefixes := b.class.Spec.IPPrefixCount
	asks := prefixes != nil && *prefixes > 0
	if b.class.Spec.ConnectionTracking == nil && !asks || b.info.Hypervisor == ec2types.InstanceTypeHypervisorNitro ||
		aws.ToBool(b.info.BareMetal) {
		return ""
	}
	if asks {
		return "are not of the Nitro system (spec.ipPrefixCount)"
	}
	return "are not of the Nitro system (spec.connectionTracking)"
}

// hasInterfaces: the network interfaces that the class asks for need cards with places for them, Elastic Network
// Adapters, and those with an Elastic Fabric Adapter a type that has one. A card has as many places as interfaces,
// numbered from 0.
func (b *build) hasInterfaces() string {
	n := b.info.NetworkInfo
	if len(b.class.Spec.NetworkInterfaces) > 0 && n.EnaSupport == ec2types.EnaSupportUnsupported {
		return "have no Elastic Network Adapter (spec.networkInterfaces)"
	}
	onCard := map[int32]int32{}
	fabric := int32(0)
	for i, want := range b.class.Spec.NetworkInterfaces {
		card := slices.IndexFunc(n.NetworkCards, func(c ec2types.NetworkCardInfo) bool {
			return aws.ToInt32(c.NetworkCardIndex) == want.NetworkCardIndex
		})
		if card < 0 {
			return fmt.Sprintf("have no network card %d (spec.networkInterfaces[%d].networkCardIndex)",
				want.NetworkCardIndex, i)
		}
		onCard[want.NetworkCardIndex]++
		room := aws.ToInt32(n.NetworkCards[card].MaximumNetworkInterfaces)
		if want.DeviceIndex >= room {
			return fmt.Sprintf("have no place %d on network card %d (spec.networkInterfaces[%d].deviceIndex)",
				want.DeviceIndex, want.NetworkCardIndex, i)
		}
		if onCard[want.NetworkCardIndex] > room {
			return fmt.Sprintf("have too few places on network card %d (spec.networkInterfaces)", want.NetworkCardIndex)
		}
		if want.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			fabric++
		}
	}
	if fabric > b.fabricLimit() {
		return fmt.Sprintf("can't have %d Elastic Fabric Adapters (spec.networkInterfaces with interfaceType efa-only)",
			fabric)
	}
	return ""
}

// fabricLimit is how many Elastic Fabric Adapters the type can have.
func (h hardware) fabricLimit() int32 {
	n := h.info.NetworkInfo
	if !aws.ToBool(n.EfaSupported) || n.EfaInfo == nil {
		return 0
	}
	return aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces)
}
