package catalog

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// info is the type as DescribeInstanceTypes tells it.
func (r *row) info(families map[string]family) ec2types.InstanceTypeInfo {
	hypervisor := r.hypervisor()
	nitro := hypervisor == ec2types.InstanceTypeHypervisorNitro
	info := ec2types.InstanceTypeInfo{
		InstanceType:                  ec2types.InstanceType(r.name),
		AutoRecoverySupported:         aws.Bool(!r.metal() && r.disks == 0),
		BareMetal:                     aws.Bool(r.metal()),
		BurstablePerformanceSupported: aws.Bool(r.category == "t"),
		CurrentGeneration:             aws.Bool(!r.previous),
		DedicatedHostsSupported:       aws.Bool(r.category != "t" && r.category != "hpc"),
		EbsInfo:                       r.ebs(),
		FpgaInfo:                      r.fpgaInfo(),
		FreeTierEligible:              aws.Bool(r.name == "t2.micro" || r.name == "t3.micro"),
		GpuInfo:                       r.gpuInfo(),
		HibernationSupported:          aws.Bool(!r.metal() && r.gpus == 0 && r.memoryMiB <= 150*1024),
		Hypervisor:                    hypervisor,
		InferenceAcceleratorInfo:      r.inferenceInfo(),
		InstanceStorageInfo:           r.storage(),
		InstanceStorageSupported:      aws.Bool(r.disks > 0),
		MediaAcceleratorInfo:          r.mediaInfo(),
		MemoryInfo:                    &ec2types.MemoryInfo{SizeInMiB: aws.Int64(int64(r.memoryMiB))},
		NetworkInfo:                   r.networkInfo(families[r.family]),
		NeuronInfo:                    r.neuronInfo(),
		NitroEnclavesSupport:          r.enclaves(),
		NitroTpmSupport:               ec2types.NitroTpmSupportUnsupported,
		PhcSupport:                    ec2types.PhcSupportUnsupported,
		PlacementGroupInfo:            r.placementInfo(),
		ProcessorInfo:                 r.processorInfo(families),
		SupportedBootModes:            r.bootModes(),
		SupportedRootDeviceTypes:      r.rootDevices(),
		SupportedUsageClasses: []ec2types.UsageClassType{ec2types.UsageClassTypeOnDemand,
			ec2types.UsageClassTypeSpot},
		SupportedVirtualizationTypes: []ec2types.VirtualizationType{ec2types.VirtualizationTypeHvm},
		VCpuInfo:                     r.vcpus(),
	}
	if r.paravirtual {
		info.SupportedVirtualizationTypes = []ec2types.VirtualizationType{ec2types.VirtualizationTypeParavirtual}
	}
	if nitro {
		info.NitroTpmSupport = ec2types.NitroTpmSupportSupported
		info.NitroTpmInfo = &ec2types.NitroTpmInfo{SupportedVersions: []string{"2.0"}}
	}
	return info
}

// hypervisor: the interface limits know it; of the few types that they lack, all are Nitro.
func (r *row) hypervisor() ec2types.InstanceTypeHypervisor {
	if r.metal() {
		return ""
	}
	if limits, ok := r.limits(); ok {
		return ec2types.InstanceTypeHypervisor(limits.Hypervisor)
	}
	return ec2types.InstanceTypeHypervisorNitro
}

// manufacturer is the first word of the processor's name, unless it is about something else ("High Frequency Intel").
func (r *row) manufacturer() string {
	for _, name := range []string{"AWS", "AMD", "Apple"} {
		if strings.HasPrefix(r.processor, name) {
			return name
		}
	}
	return "Intel"
}

// processorInfo: where the source has no clock speed, the type runs at that of its processor elsewhere.
func (r *row) processorInfo(families map[string]family) *ec2types.ProcessorInfo {
	info := &ec2types.ProcessorInfo{Manufacturer: aws.String(r.manufacturer())}
	for _, arch := range r.arch {
		info.SupportedArchitectures = append(info.SupportedArchitectures, ec2types.ArchitectureType(arch))
	}
	clock := r.clockMHz
	if clock == 0 {
		clock = clockOf(families, r.processor)
	}
	if clock > 0 {
		info.SustainedClockSpeedInGhz = aws.Float64(float64(clock) / 1000)
	}
	for _, feature := range r.features {
		info.SupportedFeatures = append(info.SupportedFeatures, ec2types.SupportedAdditionalProcessorFeature(feature))
	}
	return info
}

// vcpus: an x86 core is two threads, except where a vCPU is a core: T2 and older burstable types, HPC, and AMD from the
// seventh generation on.
func (r *row) vcpus() *ec2types.VCpuInfo {
	threads := 2
	wholeCores := r.category == "hpc" || r.family == "t2" || r.family == "t1" || (r.manufacturer() == "AMD" &&
		r.generation >= 7)
	if r.arm() || wholeCores || r.vcpu == 1 {
		threads = 1
	}
	return &ec2types.VCpuInfo{
		DefaultVCpus:          aws.Int32(int32(r.vcpu)),
		DefaultCores:          aws.Int32(int32(r.vcpu / threads)),
		DefaultThreadsPerCore: aws.Int32(int32(threads)),
	}
}

// enclaves: a virtual Nitro machine with at least four vCPUs that is not burstable can give some of them away.
func (r *row) enclaves() ec2types.NitroEnclavesSupport {
	if r.hypervisor() == ec2types.InstanceTypeHypervisorNitro && r.vcpu >= 4 && r.category != "t" {
		return ec2types.NitroEnclavesSupportSupported
	}
	return ec2types.NitroEnclavesSupportUnsupported
}

func (r *row) placementInfo() *ec2types.PlacementGroupInfo {
	strategies := []ec2types.PlacementGroupStrategy{ec2types.PlacementGroupStrategyPartition,
		ec2types.PlacementGroupStrategySpread}
	if r.placement && r.category != "t" {
		strategies = slices.Insert(strategies, 0, ec2types.PlacementGroupStrategyCluster)
	}
	return &ec2types.PlacementGroupInfo{SupportedStrategies: strategies}
}

// bootModes: Graviton boots by UEFI only, other Nitro machines by both, Xen by BIOS only.
func (r *row) bootModes() []ec2types.BootModeType {
	switch {
	case r.arm():
		return []ec2types.BootModeType{ec2types.BootModeTypeUefi}
	case r.hypervisor() == ec2types.InstanceTypeHypervisorXen:
		return []ec2types.BootModeType{ec2types.BootModeTypeLegacyBios}
	default:
		return []ec2types.BootModeType{ec2types.BootModeTypeLegacyBios, ec2types.BootModeTypeUefi}
	}
}

func (r *row) rootDevices() []ec2types.RootDeviceType {
	devices := []ec2types.RootDeviceType{ec2types.RootDeviceTypeEbs}
	if r.hypervisor() == ec2types.InstanceTypeHypervisorXen && r.disks > 0 {
		devices = append(devices, ec2types.RootDeviceTypeInstanceStore)
	}
	return devices
}
