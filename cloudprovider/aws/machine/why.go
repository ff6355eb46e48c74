package machine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// whyNoPods says why a node of the type would run no pod.
func (b *build) whyNoPods() string {
	if most := b.kubelet.MaxPods; most != nil {
		if most.Type == intstr.String {
			return fmt.Sprintf("can run no pod (spec.kubelet.maxPods is %q)", most.StrVal)
		}
		return fmt.Sprintf("can run no pod (spec.kubelet.maxPods is %d)", most.IntVal)
	}
	return "have no network interface left for pods (the setting reserved-enis, or spec.networkInterfaces)"
}

// whyNothingLeft says what takes all of a resource from pods: the largest part of it that the class asks for, if what
// it asks for is much, else the machine is too small for what every node keeps.
func (b *build) whyNothingLeft(name corev1.ResourceName, capacity resource.Quantity, pods int64) string {
	var largest asked
	var sum resource.Quantity
	for _, part := range b.asked(name, capacity, pods) {
		sum.Add(part.amount)
		if largest.field == "" || part.amount.Cmp(largest.amount) > 0 {
			largest = part
		}
	}
	sum.Add(sum)
	switch {
	case largest.field != "" && sum.Cmp(capacity) >= 0:
		return fmt.Sprintf("have no %s left for pods (%s is %s)", name, largest.field, largest.text)
	case name == corev1.ResourceEphemeralStorage && len(b.class.Spec.BlockDeviceMappings) > 0:
		return fmt.Sprintf("have no %s left for pods (the volumeSize in spec.blockDeviceMappings is %s)", name,
			capacity.String())
	}
	return fmt.Sprintf("have too little %s for a node", name)
}

// asked is an amount that a field of the class keeps from pods, and how it is written there.
type asked struct {
	field, text string
	amount      resource.Quantity
}

// asked lists what of a resource the class keeps from pods, always in the same order.
func (b *build) asked(name corev1.ResourceName, capacity resource.Quantity, pods int64) []asked {
	var out []asked
	for _, setting := range []string{kubeReserved, systemReserved} {
		texts := b.kubelet.KubeReserved
		if setting == systemReserved {
			texts = b.kubelet.SystemReserved
		}
		given, err := b.given(setting, pods)
		if amount, set := given[name]; err == nil && set {
			out = append(out, asked{fmt.Sprintf("spec.kubelet.%s.%s", setting, name), texts[string(name)], amount})
		}
	}
	signal := map[corev1.ResourceName]string{corev1.ResourceMemory: memoryAvailable,
		corev1.ResourceEphemeralStorage: nodeFSAvailable}[name]
	if text, set := b.kubelet.EvictionHard[signal]; set {
		if amount, err := threshold(text, capacity); err == nil {
			out = append(out, asked{"spec.kubelet.evictionHard." + signal, text, amount})
		}
	}
	return out
}
