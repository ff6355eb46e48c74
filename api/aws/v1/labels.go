package v1

import corev1 "k8s.io/api/core/v1"

// Labels of nodes on EC2 that pods and pools may select by. What each is worth follows from the instance type, except
// for those of the second group, which follow from how the instance was bought.
const (
	InstanceCategoryLabelKey                     = Group + "/instance-category"
	InstanceFamilyLabelKey                       = Group + "/instance-family"
	InstanceGenerationLabelKey                   = Group + "/instance-generation"
	InstanceSizeLabelKey                         = Group + "/instance-size"
	InstanceCapabilityFlexLabelKey               = Group + "/instance-capability-flex"
	InstanceCPULabelKey                          = Group + "/instance-cpu"
	InstanceCPUManufacturerLabelKey              = Group + "/instance-cpu-manufacturer"
	InstanceCPUSustainedClockSpeedMhzLabelKey    = Group + "/instance-cpu-sustained-clock-speed-mhz"
	InstanceMemoryLabelKey                       = Group + "/instance-memory"            // MiB
	InstanceEBSBandwidthLabelKey                 = Group + "/instance-ebs-bandwidth"     // Mbit/s
	InstanceNetworkBandwidthLabelKey             = Group + "/instance-network-bandwidth" // Mbit/s
	InstanceHypervisorLabelKey                   = Group + "/instance-hypervisor"
	InstanceEncryptionInTransitSupportedLabelKey = Group + "/instance-encryption-in-transit-supported"
	InstanceLocalNVMELabelKey                    = Group + "/instance-local-nvme" // GB
	InstanceGPUNameLabelKey                      = Group + "/instance-gpu-name"
	InstanceGPUManufacturerLabelKey              = Group + "/instance-gpu-manufacturer"
	InstanceGPUCountLabelKey                     = Group + "/instance-gpu-count"
	InstanceGPUMemoryLabelKey                    = Group + "/instance-gpu-memory" // MiB
	InstanceAcceleratorNameLabelKey              = Group + "/instance-accelerator-name"
	InstanceAcceleratorManufacturerLabelKey      = Group + "/instance-accelerator-manufacturer"
	InstanceAcceleratorCountLabelKey             = Group + "/instance-accelerator-count"
	NitroSandboxLabelKey                         = Group + "/nitro-sandbox"

	InstanceTenancyLabelKey                  = Group + "/instance-tenancy" // default or dedicated
	CapacityReservationIDLabelKey            = Group + "/capacity-reservation-id"
	CapacityReservationTypeLabelKey          = Group + "/capacity-reservation-type"
	CapacityReservationInterruptibleLabelKey = Group + "/capacity-reservation-interruptible"
	PlacementGroupIDLabelKey                 = Group + "/placement-group-id"
	PlacementGroupPartitionLabelKey          = Group + "/placement-group-partition"

	// ZoneIDLabelKey is the zone's id, such as use1-az4, which is the same zone in every account; a zone's name is not.
	ZoneIDLabelKey = "topology.k8s.aws/zone-id"
	// NodeClassLabelKey names the EC2NodeClass of a Node or NodeClaim.
	NodeClassLabelKey = Group + "/ec2nodeclass"
)

// Annotations.
const (
	// HashAnnotationKey is the hash of the spec, on the EC2NodeClass; and of the spec that it was launched from, on a
	// NodeClaim. A difference means drift.
	HashAnnotationKey = Group + "/ec2nodeclass-hash"
	// HashVersionAnnotationKey says how the hash was computed; hashes of different versions are not compared.
	HashVersionAnnotationKey = Group + "/ec2nodeclass-hash-version"
	// InstanceTaggedAnnotationKey is "true" on a NodeClaim once its instance carries the names of node and claim as
	// tags.
	InstanceTaggedAnnotationKey = Group + "/tagged"
	// InstanceProfileAnnotationKey on a NodeClaim names the instance profile that its instance was launched with.
	InstanceProfileAnnotationKey = Group + "/instance-profile-name"
)

// HashVersion is the version of the hash that HashVersionAnnotationKey carries.
const HashVersion = "v6"

// TerminationFinalizer holds an EC2NodeClass until no NodeClaim needs it and what was made for it in AWS is gone.
const TerminationFinalizer = Group + "/termination"

// Tags on what Tenon makes in AWS.
const (
	NodePoolTagKey       = "karpenter.sh/nodepool"
	NodeClaimTagKey      = "karpenter.sh/nodeclaim"
	NodeClassTagKey      = NodeClassLabelKey
	EKSClusterNameTagKey = "eks:eks-cluster-name"
	NameTagKey           = "Name"
	// ClusterTagPrefix before a cluster's name, with the value "owned", is how Kubernetes' own AWS tools know what
	// belongs to a cluster.
	ClusterTagPrefix = "kubernetes.io/cluster/"
)

// DiscoveryTagKey is the tag by which clusters customarily mark what their nodes may use; its value is the cluster's
// name.
const DiscoveryTagKey = "karpenter.sh/discovery"

// DefaultRolePrefix before the cluster's name is the role that the set-up instructions make for nodes.
const DefaultRolePrefix = "KarpenterNodeRole-"

// LaunchTemplatePrefix begins the name of every launch template that Tenon makes.
const LaunchTemplatePrefix = Group + "/"

// Extended resources of nodes on EC2.
const (
	ResourceNVIDIAGPU          corev1.ResourceName = "nvidia.com/gpu"
	ResourceAMDGPU             corev1.ResourceName = "amd.com/gpu"
	ResourceNeuron             corev1.ResourceName = "aws.amazon.com/neuron"
	ResourceNeuronCore         corev1.ResourceName = "aws.amazon.com/neuroncore"
	ResourceHabanaGaudi        corev1.ResourceName = "habana.ai/gaudi"
	ResourcePodENI             corev1.ResourceName = "vpc.amazonaws.com/pod-eni"
	ResourcePrivateIPv4Address corev1.ResourceName = "vpc.amazonaws.com/PrivateIPv4Address"
	ResourceEFA                corev1.ResourceName = "vpc.amazonaws.com/efa"
)
