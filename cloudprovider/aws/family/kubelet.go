package family

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// modelled are the settings of the kubelet that every family can hand over, each in its own way.
func modelled() []string {
	return []string{
		"clusterDNS", "cpuCFSQuota", "evictionHard", "evictionMaxPodGracePeriod", "evictionSoft",
		"evictionSoftGracePeriod",
		"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "kubeReserved", "maxPods", "podsPerCore",
		"systemReserved",
	}
}

// KubeletIdentity is what a KubeletConfiguration says of its own kind. A class may repeat it; it is no setting.
func KubeletIdentity() map[string]string {
	return map[string]string{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
}

// settings are the modelled settings with their types.
type settings struct {
	ClusterDNS                  []string          `json:"clusterDNS"`
	CPUCFSQuota                 *bool             `json:"cpuCFSQuota"`
	EvictionHard                map[string]string `json:"evictionHard"`
	EvictionMaxPodGracePeriod   *int64            `json:"evictionMaxPodGracePeriod"`
	EvictionSoft                map[string]string `json:"evictionSoft"`
	EvictionSoftGracePeriod     map[string]string `json:"evictionSoftGracePeriod"`
	ImageGCHighThresholdPercent *int64            `json:"imageGCHighThresholdPercent"`
	ImageGCLowThresholdPercent  *int64            `json:"imageGCLowThresholdPercent"`
	KubeReserved                map[string]string `json:"kubeReserved"`
	MaxPods                     *int64            `json:"maxPods"`
	PodsPerCore                 *int64            `json:"podsPerCore"`
	SystemReserved              map[string]string `json:"systemReserved"`
}

// config is the kubelet's configuration: the class's, with what the node knows better in its place.
func (n Node) config() (map[string]any, error) {
	out := map[string]any{}
	for key, value := range n.Kubelet {
		if _, ok := KubeletIdentity()[key]; ok {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(value.Raw))
		dec.UseNumber() // a large number must come out as it went in
		var decoded any
		if err := dec.Decode(&decoded); err != nil {
			return nil, fmt.Errorf("read spec.kubelet.%s: %w", key, err)
		}
		out[key] = decoded
	}
	if n.MaxPods > 0 {
		out["maxPods"] = n.MaxPods
	}
	if n.KubeReserved != nil {
		out["kubeReserved"] = n.KubeReserved
	}
	if n.SystemReserved != nil {
		out["systemReserved"] = n.SystemReserved
	}
	return out, nil
}

// settings reads the modelled part of the configuration.
func (n Node) settings() (settings, error) {
	var out settings
	config, err := n.config()
	if err != nil {
		return out, err
	}
	for _, key := range modelled() {
		value, ok := config[key]
		if !ok {
			continue
		}
		encoded, err := json.Marshal(map[string]any{key: value})
		if err != nil {
			return out, fmt.Errorf("read spec.kubelet.%s: %w", key, err)
		}
		if err := json.Unmarshal(encoded, &out); err != nil {
			return out, fmt.Errorf("read spec.kubelet.%s: %w", key, err)
		}
	}
	out.ClusterDNS = n.dns(out)
	if err := n.checkWords(); err != nil {
		return out, err
	}
	return out, out.check()
}

// endsArgument are characters that would end an argument of the kubelet's command line early, or begin another.
const endsArgument = " \t\r\n,'\"`$\\"

// checkWords refuses labels and taints that would. Kubernetes takes none of them either.
func (n Node) checkWords() error {
	labels := n.labels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.ContainsAny(key+labels[key], endsArgument) {
			return fmt.Errorf("label %q has the value %q; a node takes letters, digits, -, _ and . there", key,
				labels[key])
		}
	}
	for _, t := range n.taints() {
		if strings.ContainsAny(t.Key+t.Value+string(t.Effect), endsArgument) {
			return fmt.Errorf("taint %q is %q; a node takes letters, digits, -, _ and . there", t.Key, t.ToString())
		}
	}
	return nil
}

// tables are the settings that map names to quantities, percentages or durations.
func (s settings) tables() map[string]map[string]string {
	return map[string]map[string]string{
		"evictionHard": s.EvictionHard, "evictionSoft": s.EvictionSoft,
		"evictionSoftGracePeriod": s.EvictionSoftGracePeriod,
		"kubeReserved":            s.KubeReserved, "systemReserved": s.SystemReserved,
	}
}

// check refuses values that would end an argument of the command line early. They are quantities, percentages and
// durations, none of which has such characters.
func (s settings) check() error {
	tables := s.tables()
	for _, field := range slices.Sorted(maps.Keys(tables)) {
		values := tables[field]
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if strings.ContainsAny(key+values[key], endsArgument) {
				return fmt.Errorf("spec.kubelet.%s[%q] is %q, which is no quantity, percentage or duration; write it "+
					"without spaces, commas and quotes",
					field, key, values[key])
			}
		}
	}
	for _, address := range s.ClusterDNS {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("spec.kubelet.clusterDNS has %q, which is no IP address", address)
		}
	}
	return nil
}

// argument is one of the kubelet's command line.
type argument struct{ flag, value string }

// arguments are the settings as the kubelet's command line has them, in a fixed order.
func (s settings) arguments() []argument {
	var args []argument
	number := func(flag string, value *int64) {
		if value != nil {
			args = append(args, argument{flag, strconv.FormatInt(*value, 10)})
		}
	}
	table := func(flag string, values map[string]string, sign string) {
		if len(values) > 0 {
			args = append(args, argument{flag, joined(values, sign)})
		}
	}
	if len(s.ClusterDNS) > 1 { // a single address is a parameter of the bootstrap scripts
		args = append(args, argument{"--cluster-dns", strings.Join(s.ClusterDNS, ",")})
	}
	number("--max-pods", s.MaxPods)
	number("--pods-per-core", s.PodsPerCore)
	table("--system-reserved", s.SystemReserved, "=")
	table("--kube-reserved", s.KubeReserved, "=")
	table("--eviction-hard", s.EvictionHard, "<")
	table("--eviction-soft", s.EvictionSoft, "<")
	table("--eviction-soft-grace-period", s.EvictionSoftGracePeriod, "=")
	number("--eviction-max-pod-grace-period", s.EvictionMaxPodGracePeriod)
	number("--image-gc-high-threshold", s.ImageGCHighThresholdPercent)
	number("--image-gc-low-threshold", s.ImageGCLowThresholdPercent)
	if s.CPUCFSQuota != nil {
		args = append(args, argument{"--cpu-cfs-quota", strconv.FormatBool(*s.CPUCFSQuota)})
	}
	return args
}

// kubeletArguments are all arguments of the kubelet: who the node is, and its settings.
func (n Node) kubeletArguments(s settings) []argument {
	var args []argument
	if labels := n.labelList(); labels != "" {
		args = append(args, argument{"--node-labels", labels})
	}
	args = append(args, argument{"--register-with-taints", taintList(n.taints())})
	return append(args, s.arguments()...)
}

// joined writes a table as the kubelet reads it, sorted by key.
func joined(values map[string]string, sign string) string {
	var entries []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		entries = append(entries, key+sign+values[key])
	}
	return strings.Join(entries, ",")
}
