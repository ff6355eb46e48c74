package join

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// settings is what a machine learns from its user data before its kubelet starts.
type settings struct {
	Cluster        string
	Labels         map[string]string
	Taints         []corev1.Taint
	MaxPods        int64 // zero: the machine works it out
	PodsPerCore    int64
	KubeReserved   map[string]string
	SystemReserved map[string]string
	EvictionHard   map[string]string
	RAID0          bool // local disks become one that pods use
}

// flags applies the kubelet's command line. Labels of several flags add up; of the others the last counts.
func (s *settings) flags(words []string) error {
	for i := 0; i < len(words); i++ {
		name, isFlag := strings.CutPrefix(words[i], "--")
		if !isFlag {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		if !given && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			i++
			value = words[i]
		}
		if err := s.flag(name, strings.Trim(value, `"'`)); err != nil {
			return fmt.Errorf("reading the kubelet's flag --%s: %w", name, err)
		}
	}
	return nil
}

func (s *settings) flag(name, value string) error {
	var err error
	switch name {
	case "node-labels":
		for key, v := range pairs(value, "=") {
			s.label(key, v)
		}
	case "register-with-taints":
		s.Taints, err = taints(value)
	case "max-pods":
		s.MaxPods, err = strconv.ParseInt(value, 10, 64)
	case "pods-per-core":
		s.PodsPerCore, err = strconv.ParseInt(value, 10, 64)
	case "kube-reserved":
		s.KubeReserved = pairs(value, "=")
	case "system-reserved":
		s.SystemReserved = pairs(value, "=")
	case "eviction-hard":
		s.EvictionHard = pairs(value, "<")
	}
	return err
}

func (s *settings) label(key, value string) {
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[key] = value
}

// pairs reads a=b,c=d, or with another sign between.
func pairs(list, sign string) map[string]string {
	out := map[string]string{}
	for item := range strings.SplitSeq(list, ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(item), sign); ok {
			out[key] = value
		}
	}
	return out
}

// taints reads key=value:Effect,key:Effect.
func taints(list string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		at := strings.LastIndexByte(item, ':')
		if at < 0 {
			return nil, fmt.Errorf("%q has no effect", item)
		}
		key, value, _ := strings.Cut(item[:at], "=")
		taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(item[at+1:])}
		if err := checkEffect(taint); err != nil {
			return nil, err
		}
		out = append(out, taint)
	}
	return out, nil
}

func checkEffect(t corev1.Taint) error {
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return nil
	}
	return fmt.Errorf("taint %s has the unknown effect %q", t.Key, t.Effect)
}

// checkLabels refuses what a kubelet refuses: labels in Kubernetes' own namespaces, except for some.
func checkLabels(labels map[string]string) error {
	for key := range labels {
		namespace, _, ok := strings.Cut(key, "/")
		if !ok || !within(namespace, "kubernetes.io") && !within(namespace, "k8s.io") {
			continue
		}
		if within(namespace, "kubelet.kubernetes.io") || within(namespace, "node.kubernetes.io") || allowedLabel(key) {
			continue
		}
		return fmt.Errorf("the kubelet does not start: unknown 'kubernetes.io' or 'k8s.io' label %s specified with "+
			"--node-labels", key)
	}
	return nil
}

func within(namespace, domain string) bool {
	return namespace == domain || strings.HasSuffix(namespace, "."+domain)
}

func allowedLabel(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelTopologyZone,
		corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType,
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return true
	}
	return false
}
