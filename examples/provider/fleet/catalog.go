package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// SizeLabel is a label of the cloud's own, by which pods and pools may select.
const SizeLabel = Group + "/size"

// zones are where machines are started.
func zones() []string { return []string{"north", "south"} }

// catalog is what a class sells, by name: three types, in each of its zones, on demand and for less on spot. A real
// provider asks its cloud.
func catalog(class *FleetNodeClass) []*cloudprovider.InstanceType {
	return []*cloudprovider.InstanceType{
		instanceType(class, "fleet-large", "large", "16", "64Gi", 0.80),
		instanceType(class, "fleet-medium", "medium", "4", "16Gi", 0.20),
		instanceType(class, "fleet-small", "small", "2", "8Gi", 0.11),
	}
}

func instanceType(class *FleetNodeClass, name, size, cpu, memory string, price float64) *cloudprovider.InstanceType {
	out := &cloudprovider.InstanceType{
		Name: name,
		Labels: map[string][]string{
			corev1.LabelInstanceTypeStable: {name},
			corev1.LabelArchStable:         {v1.ArchitectureAmd64},
			corev1.LabelOSStable:           {string(corev1.Linux)},
			SizeLabel:                      {size},
		},
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(cpu),
			corev1.ResourceMemory:           resource.MustParse(memory),
			corev1.ResourcePods:             resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("50Gi"),
		},
		// What the kubelet and the system keep for themselves.
		Overhead: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("500Mi"),
		},
	}
	for _, zone := range zones() {
		if len(class.Spec.Zones) > 0 && !slices.Contains(class.Spec.Zones, zone) {
			continue
		}
		out.Offerings = append(out.Offerings,
			offering(zone, v1.CapacityTypeOnDemand, price), offering(zone, v1.CapacityTypeSpot, 0.4*price))
	}
	return out
}

// offering is one way to buy a type: where, on which terms, for how many dollars per hour.
func offering(zone, terms string, price float64) cloudprovider.Offering {
	return cloudprovider.Offering{
		Labels:    map[string]string{corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: terms},
		Price:     price,
		Available: true,
	}
}
