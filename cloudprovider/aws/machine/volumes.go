package machine

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// ebsDriver is the name of EBS's CSI driver.
const ebsDriver = "ebs.csi.aws.com"

// volumeLimits is how many volumes EBS's driver will say that a node can attach: what EC2 allows, less the volumes that
// the node is launched with. On Nitro before its seventh generation the slots are shared with network interfaces, local
// disks and accelerators. Interfaces that come later take slots as well; the node tells of those once it has joined.
func (b *build) volumeLimits() map[string]int32 {
	e := b.info.EbsInfo
	if e == nil || aws.ToInt32(e.MaximumEbsAttachments) == 0 {
		return nil
	}
	left := aws.ToInt32(e.MaximumEbsAttachments) - int32(max(1, len(b.family.Devices(b.class))))
	if e.AttachmentLimitType == ec2types.AttachmentLimitTypeShared &&
		b.info.Hypervisor != ec2types.InstanceTypeHypervisorXen {
		left -= int32(max(1, len(b.class.Spec.NetworkInterfaces))) + b.slotsTaken()
	}
	return map[string]int32{ebsDriver: max(left, 1)}
}

// slotsTaken are those of local disks and accelerators.
func (h hardware) slotsTaken() int32 {
	taken := int32(0)
	if s := h.info.InstanceStorageInfo; s != nil && s.NvmeSupport != ec2types.EphemeralNvmeSupportUnsupported {
		for _, disk := range s.Disks {
			taken += aws.ToInt32(disk.Count)
		}
	}
	if g := h.info.GpuInfo; g != nil {
		for _, gpu := range g.Gpus {
			taken += aws.ToInt32(gpu.Count)
		}
	}
	if n := h.info.NeuronInfo; n != nil {
		for _, device := range n.NeuronDevices {
			taken += aws.ToInt32(device.Count)
		}
	}
	return taken
}
