package v1

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// KubeletConfiguration holds settings of the kubelet by name, as they were written. It is open, so that a new kubelet's
// settings can be used without a new API.
type KubeletConfiguration map[string]apiextensionsv1.JSON

// String is the settings as JSON with sorted names, which goes into the hash; none at all are null.
func (k KubeletConfiguration) String() string {
	text, err := json.Marshal(k)
	if err != nil {
		// What was read from JSON can be written as JSON.
		return err.Error()
	}
	return string(text)
}

// KubeletSettings are those settings of the kubelet that Tenon itself understands: they decide how much room a node has
// or are handed over by families that can't take the whole configuration.
// +kubebuilder:object:generate=false
type KubeletSettings struct {
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is a number, or the text of an expression over the instance type.
	MaxPods                     *intstr.IntOrString        `json:"maxPods,omitempty"`
	PodsPerCore                 *int32                     `json:"podsPerCore,omitempty"`
	SystemReserved              map[string]string          `json:"systemReserved,omitempty"`
	KubeReserved                map[string]string          `json:"kubeReserved,omitempty"`
	EvictionHard                map[string]string          `json:"evictionHard,omitempty"`
	EvictionSoft                map[string]string          `json:"evictionSoft,omitempty"`
	EvictionSoftGracePeriod     map[string]metav1.Duration `json:"evictionSoftGracePeriod,omitempty"`
	EvictionMaxPodGracePeriod   *int32                     `json:"evictionMaxPodGracePeriod,omitempty"`
	ImageGCHighThresholdPercent *int32                     `json:"imageGCHighThresholdPercent,omitempty"`
	ImageGCLowThresholdPercent  *int32                     `json:"imageGCLowThresholdPercent,omitempty"`
	CPUCFSQuota                 *bool                      `json:"cpuCFSQuota,omitempty"`
}

// Settings reads the settings that Tenon understands. The others are left alone.
func (k KubeletConfiguration) Settings() (*KubeletSettings, error) {
	out := &KubeletSettings{}
	if len(k) == 0 {
		return out, nil
	}
	text, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("reading spec.kubelet: %w", err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("reading spec.kubelet: %w", err)
	}
	return out, nil
}
