package join

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
)

// bottlerocketSettings is the part of Bottlerocket's settings that shows on a node.
type bottlerocketSettings struct {
	Settings struct {
		Kubernetes struct {
			Cluster        string            `toml:"cluster-name"`
			Server         string            `toml:"api-server"`
			CA             string            `toml:"cluster-certificate"`
			Labels         map[string]string `toml:"node-labels"`
			Taints         map[string]any    `toml:"node-taints"`
			MaxPods        int64             `toml:"max-pods"`
			KubeReserved   map[string]string `toml:"kube-reserved"`
			SystemReserved map[string]string `toml:"system-reserved"`
			EvictionHard   map[string]string `toml:"eviction-hard"`
		} `toml:"kubernetes"`
		Commands map[string]struct {
			Commands [][]string `toml:"commands"`
		} `toml:"bootstrap-commands"`
	} `toml:"settings"`
}

func readTOML(text string) (settings, error) {
	var all bottlerocketSettings
	if err := toml.Unmarshal([]byte(text), &all); err != nil {
		return settings{}, fmt.Errorf("reading TOML: %w", err)
	}
	k := all.Settings.Kubernetes
	for _, field := range []struct{ name, value string }{{"cluster-name", k.Cluster}, {"api-server", k.Server},
		{"cluster-certificate", k.CA}} {
		if field.value == "" {
			return settings{}, fmt.Errorf("settings.kubernetes.%s is missing", field.name)
		}
	}
	s := settings{
		Cluster: k.Cluster, Labels: k.Labels, MaxPods: k.MaxPods,
		KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved, EvictionHard: k.EvictionHard,
	}
	for _, c := range all.Settings.Commands {
		for _, words := range c.Commands {
			// apiclient ephemeral-storage init makes one array of all local disks.
			s.RAID0 = s.RAID0 || strings.HasPrefix(strings.Join(words, " "), "apiclient ephemeral-storage init")
		}
	}
	var err error
	s.Taints, err = tomlTaints(k.Taints)
	return s, err
}

// tomlTaints reads key = "value:Effect", or a list of such.
func tomlTaints(table map[string]any) ([]corev1.Taint, error) {
	var all []corev1.Taint
	for key, value := range table {
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		for _, item := range list {
			text := fmt.Sprint(item)
			at := strings.LastIndexByte(text, ':')
			if at < 0 {
				return nil, fmt.Errorf("settings.kubernetes.node-taints: %s = %q has no effect", key, text)
			}
			taint := corev1.Taint{Key: key, Value: text[:at], Effect: corev1.TaintEffect(text[at+1:])}
			if err := checkEffect(taint); err != nil {
				return nil, err
			}
			all = append(all, taint)
		}
	}
	return all, nil
}
