package machine

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// overhead is what pods don't get of the capacity: what is kept for the kubelet, for the system, and what must stay free
// lest the kubelet evict pods.
func (b *build) overhead(capacity corev1.ResourceList, pods int64) (corev1.ResourceList, error) {
	kubelet := b.kubeReserved(pods)
	if err := override(kubelet, b.kubelet.KubeReserved, "kubeReserved"); err != nil {
		return nil, err
	}
	system := corev1.ResourceList{}
	if err := override(system, b.kubelet.SystemReserved, "systemReserved"); err != nil {
		return nil, err
	}
	eviction, err := b.evictionThreshold(capacity)
	if err != nil {
		return nil, err
	}
	out := corev1.ResourceList{}
	for _, name := range shared() {
		var sum resource.Quantity
		for _, part := range []corev1.ResourceList{kubelet, system, eviction} {
			sum.Add(part[name])
		}
		out[name] = sum
	}
	return out, nil
}

// kubeReserved is what EKS's images keep for the kubelet and the container runtime by themselves: 255 MiB and 11 MiB for
// each pod, a part of the cores, and 1 GiB of disk.
func (b *build) kubeReserved(pods int64) corev1.ResourceList {
	if b.family.Flags().ENILimitedMemory {
		pods = b.addressedPods()
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(reservedMilliCPU(b.cores()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity((11*pods+255)*mib, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(gib, resource.BinarySI),
	}
}

// reservedMilliCPU is 6 % of the first core, 1 % of the second, 0.5 % of the next two and 0.25 % of the rest, in whole
// thousandths of a core.
func reservedMilliCPU(cores int64) int64 {
	first := min(cores, 1)
	second := min(max(cores-1, 0), 1)
	nextTwo := min(max(cores-2, 0), 2)
	rest := max(cores-4, 0)
	return (600*first + 100*second + 50*nextTwo + 25*rest) / 10
}

// override replaces amounts by those that the class gives.
func override(list corev1.ResourceList, given map[string]string, field string) error {
	for name, text := range given {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("spec.kubelet.%s[%s] is %q; write a quantity such as 100m or 1Gi", field, name, text)
		}
		list[corev1.ResourceName(name)] = q
	}
	return nil
}

const (
	memoryAvailable = "memory.available"
	nodeFSAvailable = "nodefs.available"
)

// evictionThreshold is what the kubelet keeps free: 100 MiB of memory and a tenth of the disk, unless evictionHard says
// otherwise. evictionSoft is a warning and keeps nothing.
func (b *build) evictionThreshold(capacity corev1.ResourceList) (corev1.ResourceList, error) {
	disk := capacity[corev1.ResourceEphemeralStorage]
	out := corev1.ResourceList{
		corev1.ResourceMemory:           *resource.NewQuantity(100*mib, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(share(disk.Value(), 10), resource.BinarySI),
	}
	for signal, name := range map[string]corev1.ResourceName{
		memoryAvailable: corev1.ResourceMemory,
		nodeFSAvailable: corev1.ResourceEphemeralStorage,
	} {
		text, ok := b.kubelet.EvictionHard[signal]
		if !ok {
			continue
		}
		q, err := threshold(text, capacity[name])
		if err != nil {
			return nil, fmt.Errorf("spec.kubelet.evictionHard[%s] is %q; write a percentage such as 5%% or a quantity such as 100Mi", signal, text)
		}
		out[name] = q
	}
	return out, nil
}

// threshold is an amount, or a percentage of the capacity. To the kubelet, 100 % means that there is no threshold.
func threshold(text string, capacity resource.Quantity) (resource.Quantity, error) {
	number, percentage := strings.CutSuffix(text, "%")
	if !percentage {
		return resource.ParseQuantity(text)
	}
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || percent < 0 || percent > 100 {
		return resource.Quantity{}, fmt.Errorf("%q is not a percentage", text)
	}
	if percent == 100 {
		percent = 0
	}
	return *resource.NewQuantity(share(capacity.Value(), percent), resource.BinarySI), nil
}

// share is so many percent of an amount, rounded up.
func share(amount int64, percent float64) int64 {
	return int64(math.Ceil(float64(amount) / 100 * percent))
}
