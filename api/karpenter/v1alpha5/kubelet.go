package v1alpha5

import corev1 "k8s.io/api/core/v1"

// KubeletConfiguration holds settings of the kubelet, by the names of its own configuration. In v1 they belong to the
// NodeClass.
type KubeletConfiguration struct {
	// clusterDNS are the addresses of the DNS servers of pods.
	// +listType=atomic
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`

	// containerRuntime was containerd or dockerd. Nodes have containerd today, so it has no effect.
	// +optional
	ContainerRuntime *string `json:"containerRuntime,omitempty"`

	// maxPods is how many pods a node may run.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`

	// podsPerCore is how many pods a node may run for each of its cores.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`

	// systemReserved is kept for what runs beside Kubernetes.
	// +optional
	SystemReserved corev1.ResourceList `json:"systemReserved,omitempty"`

	// kubeReserved is kept for the parts of Kubernetes on the node.
	// +optional
	KubeReserved corev1.ResourceList `json:"kubeReserved,omitempty"`

	// evictionHard are the amounts below which the kubelet evicts pods at once, such as memory.available: 5%.
	// +optional
	EvictionHard map[string]string `json:"evictionHard,omitempty"`

	// evictionSoft are the amounts below which the kubelet evicts pods after a while.
	// +optional
	EvictionSoft map[string]string `json:"evictionSoft,omitempty"`

	// evictionSoftGracePeriod is how long that while is, such as memory.available: 1m30s.
	// +optional
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitempty"`

	// evictionMaxPodGracePeriod is the longest grace period, in seconds, that a pod gets in a soft eviction.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`

	// imageGCHighThresholdPercent is how full the disk may be before images are removed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`

	// imageGCLowThresholdPercent is how full the disk may be when that stops.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`

	// cpuCFSQuota says whether CPU limits of containers are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}
