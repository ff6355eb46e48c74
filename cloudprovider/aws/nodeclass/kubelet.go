package nodeclass

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// kubeletProblems lists what is wrong with spec.kubelet. The API server takes anything there, and a kubelet that is told
// something wrong does not start, or passes over it in silence, so this is the place to hear of it.
func kubeletProblems(class *awsv1.EC2NodeClass) []string {
	settings := class.Spec.Kubelet
	var out []string
	known := kubeletFields()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name == "registerWithTaints" {
			out = append(out, "spec.kubelet.registerWithTaints can't be set: nodes get the taints of their NodePool; put them there")
			continue
		}
		shape, ok := known[name]
		if !ok {
			out = append(out, fmt.Sprintf("spec.kubelet.%s is no setting of the kubelet; correct its name or remove it", name))
			continue
		}
		if problem := shape.check(settings[name].Raw); problem != "" && !expression(name, settings[name].Raw) {
			out = append(out, fmt.Sprintf("spec.kubelet.%s %s", name, problem))
		}
	}
	out = append(out, evictionProblems(settings)...)
	if len(out) > 0 {
		return out
	}
	k, err := settings.Settings()
	if err != nil {
		return []string{err.Error()}
	}
	out = append(numberProblems(k), reservedProblems(k)...)
	for _, name := range family.Of(class).Unsupported(settings) {
		out = append(out, fmt.Sprintf("spec.kubelet.%s can't be handed to nodes of the AMI family %s; remove it, or use AL2023", name, class.AMIFamily()))
	}
	return out
}

// expression tells whether a value is an expression over the instance type, which gets a problem of its own.
func expression(name string, raw []byte) bool {
	var text string
	return name == "maxPods" && json.Unmarshal(raw, &text) == nil
}

func numberProblems(k *awsv1.KubeletSettings) []string {
	var out []string
	if k.MaxPods != nil && k.MaxPods.StrVal != "" {
		out = append(out, fmt.Sprintf("spec.kubelet.maxPods is the expression %q, which needs the feature gate NodeClassCEL; write a number", k.MaxPods.StrVal))
	} else if k.MaxPods != nil && k.MaxPods.IntVal < 0 {
		out = append(out, fmt.Sprintf("spec.kubelet.maxPods is %d; write 0 or more", k.MaxPods.IntVal))
	}
	for name, value := range map[string]*int32{"podsPerCore": k.PodsPerCore, "evictionMaxPodGracePeriod": k.EvictionMaxPodGracePeriod} {
		if value != nil && *value < 0 {
			out = append(out, fmt.Sprintf("spec.kubelet.%s is %d; write 0 or more", name, *value))
		}
	}
	for name, value := range map[string]*int32{
		"imageGCHighThresholdPercent": k.ImageGCHighThresholdPercent, "imageGCLowThresholdPercent": k.ImageGCLowThresholdPercent} {
		if value != nil && (*value < 0 || *value > 100) {
			out = append(out, fmt.Sprintf("spec.kubelet.%s is %d; write a percentage from 0 to 100", name, *value))
		}
	}
	high, low := k.ImageGCHighThresholdPercent, k.ImageGCLowThresholdPercent
	if high != nil && low != nil && *high <= *low {
		out = append(out, fmt.Sprintf("spec.kubelet.imageGCHighThresholdPercent (%d) must be greater than imageGCLowThresholdPercent (%d)", *high, *low))
	}
	slices.Sort(out)
	return out
}

// reservedProblems checks what is kept for the system. The kubelet would pass over a resource that it does not know.
func reservedProblems(k *awsv1.KubeletSettings) []string {
	var out []string
	for _, field := range []struct {
		name   string
		values map[string]string
	}{{"kubeReserved", k.KubeReserved}, {"systemReserved", k.SystemReserved}} {
		for _, key := range slices.Sorted(maps.Keys(field.values)) {
			if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, key) {
				out = append(out, fmt.Sprintf("spec.kubelet.%s: %s can't be reserved; use cpu, memory, ephemeral-storage or pid", field.name, key))
				continue
			}
			if q, err := resource.ParseQuantity(field.values[key]); err != nil || q.Sign() < 0 {
				out = append(out, fmt.Sprintf("spec.kubelet.%s.%s is %q; write a quantity of 0 or more, such as 100m or 1Gi (an expression needs the feature gate NodeClassCEL)", field.name, key, field.values[key]))
			}
		}
	}
	return out
}

// evictionProblems checks the four maps of eviction signals, and that soft thresholds and grace periods go together.
func evictionProblems(settings awsv1.KubeletConfiguration) []string {
	var out []string
	for _, field := range []string{"evictionHard", "evictionSoft", "evictionMinimumReclaim", "evictionSoftGracePeriod"} {
		values := texts(settings, field)
		for _, signal := range slices.Sorted(maps.Keys(values)) {
			if !slices.Contains(evictionSignals(), signal) {
				out = append(out, fmt.Sprintf("spec.kubelet.%s: %s is no signal of the kubelet; use one of %s", field, signal, strings.Join(evictionSignals(), ", ")))
			} else if problem := evictionValue(field, values[signal]); problem != "" {
				out = append(out, fmt.Sprintf("spec.kubelet.%s.%s %s", field, signal, problem))
			}
		}
	}
	soft, grace := texts(settings, "evictionSoft"), texts(settings, "evictionSoftGracePeriod")
	for _, signal := range slices.Sorted(maps.Keys(soft)) {
		if _, ok := grace[signal]; !ok {
			out = append(out, fmt.Sprintf("spec.kubelet.evictionSoft.%s has no grace period; add evictionSoftGracePeriod.%s", signal, signal))
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(grace)) {
		if _, ok := soft[signal]; !ok {
			out = append(out, fmt.Sprintf("spec.kubelet.evictionSoftGracePeriod.%s has no threshold; add evictionSoft.%s", signal, signal))
		}
	}
	return out
}

func evictionSignals() []string {
	return []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"}
}

func evictionValue(field, value string) string {
	if field == "evictionSoftGracePeriod" {
		if d, err := time.ParseDuration(value); err != nil || d < 0 {
			return fmt.Sprintf("is %q; write a duration, such as 1m30s", value)
		}
		return ""
	}
	if number, ok := strings.CutSuffix(value, "%"); ok {
		if f, err := strconv.ParseFloat(number, 64); err != nil || f < 0 || f > 100 {
			return fmt.Sprintf("is %q; write a percentage from 0%% to 100%%", value)
		}
		return ""
	}
	if q, err := resource.ParseQuantity(value); err != nil || q.Sign() < 0 {
		return fmt.Sprintf("is %q; write a quantity of 0 or more, such as 500Mi, or a percentage, such as 5%%", value)
	}
	return ""
}

// texts is a setting that maps names to texts; nil if it is not there.
func texts(settings awsv1.KubeletConfiguration, field string) map[string]string {
	var out map[string]string
	if raw := settings[field].Raw; len(raw) > 0 && json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}
