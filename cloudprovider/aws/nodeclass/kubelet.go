package nodeclass

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
)

// kubeletProblems lists what is wrong with spec.kubelet. The API server takes anything there, and a kubelet that is
// told something wrong does not start, or passes over it in silence, so this is the place to hear of it. expressions
// says whether values may be computed from the instance type.
func kubeletProblems(class *awsv1.EC2NodeClass, expressions bool) []string {
	settings := class.Spec.Kubelet
	var out []string
	known := kubeletFields()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if want, ok := family.KubeletIdentity()[name]; ok {
			var have string
			if err := json.Unmarshal(settings[name].Raw, &have); err != nil || have != want {
				out = append(out, fmt.Sprintf("spec.kubelet.%s must be %s, or be left out", name, want))
			}
			continue
		}
		if name == "registerWithTaints" {
			out = append(out, "spec.kubelet.registerWithTaints can't be set: nodes get the taints of their NodePool; "+
				"put them there")
			continue
		}
		shape, ok := known[name]
		if !ok {
			out = append(out, fmt.Sprintf("spec.kubelet.%s is no setting of the kubelet; correct its name or remove it",
				name))
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
	out = append(numberProblems(k), maxPodsProblems(k, expressions)...)
	out = append(out, addressProblems(settings)...)
	out = append(out, reservedProblems(k, expressions)...)
	for _, name := range family.Of(class).Unsupported(settings) {
		out = append(out, fmt.Sprintf("spec.kubelet.%s can't be handed to nodes of the AMI family %s; remove it, or "+
			"use AL2023", name, class.AMIFamily()))
	}
	return out
}

// gate is how expressions are switched on.
const gate = "the feature gate NodeClassCEL (--aws-feature-gates NodeClassCEL=true)"

// maxPodsProblems checks a number, or an expression that gives one.
func maxPodsProblems(k *awsv1.KubeletSettings, expressions bool) []string {
	most := k.MaxPods
	switch {
	case most == nil:
		return nil
	case most.Type == intstr.Int && most.IntVal < 0:
		return []string{fmt.Sprintf("spec.kubelet.maxPods is %d; write 0 or more", most.IntVal)}
	case most.Type == intstr.Int:
		return nil
	case !expressions:
		return []string{fmt.Sprintf("spec.kubelet.maxPods is the text %q; write a number, or switch expressions on "+
			"with %s", most.StrVal, gate)}
	}
	if err := machine.CheckExpression(most.StrVal); err != nil {
		return []string{fmt.Sprintf("spec.kubelet.maxPods is %q: %s; write a number, or an expression such as "+
			"min(max_pods, vcpus * 8)", most.StrVal, err)}
	}
	return nil
}

// expression tells whether a value is an expression over the instance type, which gets a problem of its own.
func expression(name string, raw []byte) bool {
	var text string
	return name == "maxPods" && json.Unmarshal(raw, &text) == nil
}

// addressProblems checks the addresses of DNS servers.
func addressProblems(settings awsv1.KubeletConfiguration) []string {
	var addresses, out []string
	if raw := settings["clusterDNS"].Raw; len(raw) > 0 && json.Unmarshal(raw, &addresses) != nil {
		return nil // its shape has been told
	}
	for i, address := range addresses {
		if _, err := netip.ParseAddr(address); err != nil {
			out = append(out, fmt.Sprintf("spec.kubelet.clusterDNS[%d] is %q; write an IP address, such as 10.100.0.10",
				i, address))
		}
	}
	return out
}

func numberProblems(k *awsv1.KubeletSettings) []string {
	var out []string
	for name, value := range map[string]*int32{"podsPerCore": k.PodsPerCore,
		"evictionMaxPodGracePeriod": k.EvictionMaxPodGracePeriod} {
		if value != nil && *value < 0 {
			out = append(out, fmt.Sprintf("spec.kubelet.%s is %d; write 0 or more", name, *value))
		}
	}
	for name, value := range map[string]*int32{
		"imageGCHighThresholdPercent": k.ImageGCHighThresholdPercent,
		"imageGCLowThresholdPercent":  k.ImageGCLowThresholdPercent} {
		if value != nil && (*value < 0 || *value > 100) {
			out = append(out, fmt.Sprintf("spec.kubelet.%s is %d; write a percentage from 0 to 100", name, *value))
		}
	}
	high, low := k.ImageGCHighThresholdPercent, k.ImageGCLowThresholdPercent
	if high != nil && low != nil && *high <= *low {
		out = append(out, fmt.Sprintf("spec.kubelet.imageGCHighThresholdPercent (%d) must be greater than "+
			"imageGCLowThresholdPercent (%d)", *high, *low))
	}
	slices.Sort(out)
	return out
}

// reservedProblems checks what is kept for the system. The kubelet would pass over a resource that it does not know.
func reservedProblems(k *awsv1.KubeletSettings, expressions bool) []string {
	var out []string
	for _, field := range []struct {
		name   string
		values map[string]string
	}{{"kubeReserved", k.KubeReserved}, {"systemReserved", k.SystemReserved}} {
		for _, key := range slices.Sorted(maps.Keys(field.values)) {
			if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, key) {
				out = append(out, fmt.Sprintf("spec.kubelet.%s: %s can't be reserved; use cpu, memory, "+
					"ephemeral-storage or pid", field.name, key))
				continue
			}
			if problem := reservedProblem(field.values[key], expressions); problem != "" {
				out = append(out, fmt.Sprintf("spec.kubelet.%s.%s is %q; %s", field.name, key,
					field.values[key], problem))
			}
		}
	}
	return out
}

// reservedProblem says what is wrong with an amount; empty if nothing is.
func reservedProblem(value string, expressions bool) string {
	const quantity = "write a quantity of 0 or more, such as 100m or 1Gi"
	q, err := resource.ParseQuantity(value)
	switch {
	case err == nil && q.Sign() >= 0:
		return ""
	case err == nil:
		return quantity
	case !expressions:
		return quantity + ", or switch expressions on with " + gate
	}
	if err := machine.CheckExpression(value); err != nil {
		return fmt.Sprintf("%s, or an expression such as max(60, vcpus * 30): %s", quantity, err)
	}
	return ""
}

// evictionProblems checks the four maps of eviction signals, and that soft thresholds and grace periods go together.
func evictionProblems(settings awsv1.KubeletConfiguration) []string {
	var out []string
	for _, field := range []string{"evictionHard", "evictionSoft", "evictionMinimumReclaim",
		"evictionSoftGracePeriod"} {
		values := texts(settings, field)
		for _, signal := range slices.Sorted(maps.Keys(values)) {
			if !slices.Contains(evictionSignals(), signal) {
				out = append(out, fmt.Sprintf("spec.kubelet.%s: %s is no signal of the kubelet; use one of %s", field,
					signal, strings.Join(evictionSignals(), ", ")))
			} else if problem := evictionValue(field, values[signal]); problem != "" {
				out = append(out, fmt.Sprintf("spec.kubelet.%s.%s %s", field, signal, problem))
			}
		}
	}
	soft, grace := texts(settings, "evictionSoft"), texts(settings, "evictionSoftGracePeriod")
	for _, signal := range slices.Sorted(maps.Keys(soft)) {
		if _, ok := grace[signal]; !ok {
			out = append(out, fmt.Sprintf("spec.kubelet.evictionSoft.%s has no grace period; add "+
				"evictionSoftGracePeriod.%s", signal, signal))
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(grace)) {
		if _, ok := soft[signal]; !ok {
			out = append(out, fmt.Sprintf("spec.kubelet.evictionSoftGracePeriod.%s has no threshold; add "+
				"evictionSoft.%s", signal, signal))
		}
	}
	return out
}

func evictionSignals() []string {
	return []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available",
		"imagefs.inodesFree", "pid.available"}
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
