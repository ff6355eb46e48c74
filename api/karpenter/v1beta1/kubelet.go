package v1beta1

// KubeletConfiguration holds settings of the kubelet, by the names that its own configuration has. The order of the
// fields is the one that the compatibility annotation is written in.
// +kubebuilder:validation:XValidation:rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoft) || self.evictionSoft.all(key, has(self.evictionSoftGracePeriod) && key in self.evictionSoftGracePeriod)",message="a signal of evictionSoft has no entry in evictionSoftGracePeriod; add one"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(key, has(self.evictionSoft) && key in self.evictionSoft)",message="a signal of evictionSoftGracePeriod has no entry in evictionSoft; add one"
type KubeletConfiguration struct {
	// clusterDNS are the addresses of the cluster's DNS servers.
	// +listType=atomic
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`

	// maxPods is how many pods a node may run.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`

	// podsPerCore is how many pods a node may run for each of its cores; maxPods bounds it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`

	// systemReserved is what the operating system keeps for itself: cpu, memory, ephemeral-storage and pid.
	// +kubebuilder:validation:XValidation:rule="self.all(key, key in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="systemReserved knows cpu, memory, ephemeral-storage and pid; remove the others"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !self[key].startsWith('-'))",message="a value of systemReserved is negative; give 0 or more"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	SystemReserved map[string]string `json:"systemReserved,omitempty"`

	// kubeReserved is what Kubernetes' own daemons keep for themselves: cpu, memory, ephemeral-storage and pid.
	// +kubebuilder:validation:XValidation:rule="self.all(key, key in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="kubeReserved knows cpu, memory, ephemeral-storage and pid; remove the others"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !self[key].startsWith('-'))",message="a value of kubeReserved is negative; give 0 or more"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`

	// evictionHard says at which signals the kubelet ends pods at once.
	// +kubebuilder:validation:XValidation:rule="self.all(key, key in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="evictionHard has an unknown signal; it knows memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	EvictionHard map[string]string `json:"evictionHard,omitempty"`

	// evictionSoft says at which signals the kubelet ends pods after a while.
	// +kubebuilder:validation:XValidation:rule="self.all(key, key in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="evictionSoft has an unknown signal; it knows memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	EvictionSoft map[string]string `json:"evictionSoft,omitempty"`

	// evictionSoftGracePeriod is how long each signal of evictionSoft must last.
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitempty"`

	// evictionMaxPodGracePeriod is the longest grace period, in seconds, that pods get when a soft signal ends them.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`

	// imageGCHighThresholdPercent is how full a disk may be before images are removed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`

	// imageGCLowThresholdPercent is how full the disk is when no more images are removed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`

	// cpuCFSQuota says whether limits on CPU are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}
