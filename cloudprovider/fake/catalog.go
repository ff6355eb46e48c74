package fake

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// smallCatalog sells three sizes for two architectures, in three zones, on demand and for less on spot.
func smallCatalog() []*cloudprovider.InstanceType {
	return []*cloudprovider.InstanceType{
		machine("small", v1.ArchitectureAmd64, "2", "4Gi", 0.10),
		machine("medium", v1.ArchitectureAmd64, "4", "16Gi", 0.24),
		machine("large", v1.ArchitectureAmd64, "16", "64Gi", 0.90),
		machine("small-arm", v1.ArchitectureArm64, "2", "4Gi", 0.08),
		machine("large-arm", v1.ArchitectureArm64, "16", "64Gi", 0.72),
	}
}

func machine(name, arch, cpu, memory string, price float64) *cloudprovider.InstanceType {
	out := &cloudprovider.InstanceType{
		Name: name,
		Labels: map[string][]string{
			corev1.LabelInstanceTypeStable: {name},
			corev1.LabelArchStable:         {arch},
			corev1.LabelOSStable:           {string(corev1.Linux)},
		},
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(cpu),
			corev1.ResourceMemory:           resource.MustParse(memory),
			corev1.ResourcePods:             resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
		},
		Overhead: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("256Mi"),
		},
	}
	for i, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		spot := price * (0.3 + 0.05*float64(i)) // spot costs differ from zone to zone
		out.Offerings = append(out.Offerings, offering(zone, v1.CapacityTypeOnDemand, price),
			offering(zone, v1.CapacityTypeSpot, spot))
	}
	return out
}

func offering(zone, capacityType string, price float64) cloudprovider.Offering {
	return cloudprovider.Offering{
		Labels:    map[string]string{corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: capacityType},
		Price:     price,
		Available: true,
	}
}
