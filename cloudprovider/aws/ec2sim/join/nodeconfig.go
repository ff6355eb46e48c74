package join

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const nodeConfigType = "application/node.eks.aws"

// nodeConfig is the part of a NodeConfig that shows on a node.
type nodeConfig struct {
	Kind string `json:"kind"`
	Spec struct {
		Cluster struct {
			Name     string `json:"name"`
			Endpoint string `json:"apiServerEndpoint"`
			CA       string `json:"certificateAuthority"`
			CIDR     string `json:"cidr"`
		} `json:"cluster"`
		Instance struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
		Kubelet struct {
			Config kubeletConfig `json:"config"`
			Flags  []string      `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

type kubeletConfig struct {
	MaxPods            int64             `json:"maxPods"`
	PodsPerCore        int64             `json:"podsPerCore"`
	KubeReserved       map[string]string `json:"kubeReserved"`
	SystemReserved     map[string]string `json:"systemReserved"`
	EvictionHard       map[string]string `json:"evictionHard"`
	RegisterWithTaints []corev1.Taint    `json:"registerWithTaints"`
}

// readNodeConfig merges the NodeConfig objects of the user data in their order, as the image does: decoding one over
// the other keeps what the later one does not speak of. Flags add up.
func readNodeConfig(text string) (settings, error) {
	all, err := parts(text)
	if err != nil {
		return settings{}, err
	}
	var merged nodeConfig
	var flags []string
	for _, p := range all {
		if p.kind != "" && p.kind != nodeConfigType {
			continue
		}
		merged.Spec.Kubelet.Flags = nil
		if err := yaml.Unmarshal([]byte(p.text), &merged); err != nil {
			return settings{}, fmt.Errorf("reading a NodeConfig: %w", err)
		}
		flags = append(flags, merged.Spec.Kubelet.Flags...)
	}
	if merged.Kind != "NodeConfig" {
		return settings{}, errors.New("there is no NodeConfig")
	}
	if err := merged.check(); err != nil {
		return settings{}, err
	}
	return merged.settings(flags)
}

// check refuses what the image refuses.
func (c *nodeConfig) check() error {
	for _, field := range []struct{ name, value string }{
		{"name", c.Spec.Cluster.Name}, {"apiServerEndpoint", c.Spec.Cluster.Endpoint},
		{"certificateAuthority", c.Spec.Cluster.CA}, {"cidr", c.Spec.Cluster.CIDR},
	} {
		if field.value == "" {
			return fmt.Errorf("the NodeConfig's spec.cluster.%s is missing", field.name)
		}
	}
	return nil
}

func (c *nodeConfig) settings(flags []string) (settings, error) {
	config := c.Spec.Kubelet.Config
	s := settings{
		Cluster: c.Spec.Cluster.Name, Taints: config.RegisterWithTaints, MaxPods: config.MaxPods,
		PodsPerCore:  config.PodsPerCore,
		KubeReserved: config.KubeReserved, SystemReserved: config.SystemReserved, EvictionHard: config.EvictionHard,
		RAID0: c.Spec.Instance.LocalStorage.Strategy == "RAID0",
	}
	for _, t := range s.Taints {
		if err := checkEffect(t); err != nil {
			return s, err
		}
	}
	return s, s.flags(flags)
}
