package machine

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// overhead is what pods don't get of the capacity: what is kept for the kubelet, for the system, and what must stay
// free lest the kubelet evict pods.
func (b *build) overhead(capacity corev1.ResourceList, pods int64) (corev1.ResourceList, error) {
	kubelet, system := b.kubeReserved(pods), corev1.ResourceList{}
	for field, list := range map[string]corev1.ResourceList{kubeReserved: kubelet, systemReserved: system} {
		given, err := b.given(field, pods)
		if err != nil {
			return nil, err
		}
		maps.Copy(list, given)
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

// kubeReserved is what EKS's images keep for the kubelet and the container runtime by themselves: 255 MiB and 11 MiB
// for each pod, a part of the cores, and 1 GiB of disk. They count the pods of all interfaces of the type: they know
// nothing of interfaces that are kept from pods.
func (b *build) kubeReserved(pods int64) corev1.ResourceList {
	if b.family.Flags().ENILimitedMemory {
		pods = b.addressedPods(0)
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

// Settings of the kubelet that keep something from pods.
const (
	kubeReserved   = "kubeReserved"
	systemReserved = "systemReserved"
)

// given are the amounts that the class gives for the setting. One whose expression has no answer for this type is not
// among them.
func (b *build) given(field string, pods int64) (corev1.ResourceList, error) {
	texts := b.kubelet.KubeReserved
	if field == systemReserved {
		texts = b.kubelet.SystemReserved
	}
	out := corev1.ResourceList{}
	for key, text := range texts {
		name := corev1.ResourceName(key)
		q, err := resource.ParseQuantity(text)
		if err == nil {
			out[name] = q
			continue
		}
		if b.expressions == nil {
			return nil, fmt.Errorf("spec.kubelet.%s[%s] is %q; write a quantity such as 100m or 1Gi, or switch on "+
				"the feature gate NodeClassCEL for expressions", field, key, text)
		}
		if err := b.expressions.program(text).err; err != nil {
			return nil, fmt.Errorf("spec.kubelet.%s[%s] is neither a quantity nor an expression: %w", field, key, err)
		}
		if n, err := b.expressions.number(text, b.inputs(pods)); err == nil {
			if q, err := amount(name, n); err == nil {
				out[name] = q
			}
		}
	}
	return out, nil
}

// Kept is what a class keeps for the kubelet and the system on nodes of one type, with its expressions computed. Each
// is nil if the class has no expression there: what it says can then be handed over as it is.
type Kept struct{ KubeReserved, SystemReserved map[string]string }

// Kept computes the expressions of a class for a type.
func (s *Shapes) Kept(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (Kept, error) {
	if !s.settings.Expressions {
		return Kept{}, nil
	}
	b, _, err := s.newBuild(info, class)
	if err != nil || b == nil {
		return Kept{}, err
	}
	pods, err := b.pods()
	if err != nil {
		return Kept{}, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
	}
	var out Kept
	if out.KubeReserved, err = b.computed(kubeReserved, b.kubelet.KubeReserved, pods); err == nil {
		out.SystemReserved, err = b.computed(systemReserved, b.kubelet.SystemReserved, pods)
	}
	return out, err
}

// computed writes the amounts of a setting that has expressions.
func (b *build) computed(field string, texts map[string]string, pods int64) (map[string]string, error) {
	plain := true
	for _, text := range texts {
		if _, err := resource.ParseQuantity(text); err != nil {
			plain = false
		}
	}
	if plain {
		return nil, nil
	}
	list, err := b.given(field, pods)
	if err != nil {
		return nil, fmt.Errorf("EC2NodeClass %s: %w", b.class.Name, err)
	}
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out, nil
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
			return nil, fmt.Errorf("spec.kubelet.evictionHard[%s] is %q; write a percentage such as 5%% or a "+
				"quantity such as 100Mi", signal, text)
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
