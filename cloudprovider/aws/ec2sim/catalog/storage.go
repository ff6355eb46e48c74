package catalog

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// ebs: where EC2 doesn't say it, current types are EBS-optimized without asking; a previous one can be if the source
// has a bandwidth for it.
func (r *row) ebs() *ec2types.EbsInfo {
	info := &ec2types.EbsInfo{
		EbsOptimizedSupport: ec2types.EbsOptimizedSupportUnsupported,
		EncryptionSupport:   ec2types.EbsEncryptionSupportSupported,
		NvmeSupport:         ec2types.EbsNvmeSupportRequired,
	}
	if r.hypervisor() == ec2types.InstanceTypeHypervisorXen {
		info.NvmeSupport = ec2types.EbsNvmeSupportUnsupported
	}
	r.attachments(info)
	if r.ebsMaxMbps == 0 {
		return info
	}
	switch {
	case r.ebsOptimized != "":
		info.EbsOptimizedSupport = ec2types.EbsOptimizedSupport(r.ebsOptimized)
	case r.previous:
		info.EbsOptimizedSupport = ec2types.EbsOptimizedSupportSupported
	default:
		info.EbsOptimizedSupport = ec2types.EbsOptimizedSupportDefault
	}
	info.EbsOptimizedInfo = &ec2types.EbsOptimizedInfo{
		BaselineBandwidthInMbps:  aws.Int32(int32(r.ebsMbps)),
		BaselineIops:             aws.Int32(int32(r.ebsIOPS)),
		BaselineThroughputInMBps: aws.Float64(float64(r.ebsMbps) / 8),
		MaximumBandwidthInMbps:   aws.Int32(int32(r.ebsMaxMbps)),
		MaximumIops:              aws.Int32(int32(r.ebsMaxIOPS)),
		MaximumThroughputInMBps:  aws.Float64(float64(r.ebsMaxMbps) / 8),
	}
	return info
}

// attachments: on Xen a limit of its own; on Nitro 28 shared with network interfaces and local disks; from the seventh
// generation on dedicated to volumes and growing with the size.
func (r *row) attachments(info *ec2types.EbsInfo) {
	info.AttachmentLimitType = ec2types.AttachmentLimitTypeShared
	limit := 28
	switch {
	case r.hypervisor() == ec2types.InstanceTypeHypervisorXen:
		limit = 39
	case r.generation >= 7:
		info.AttachmentLimitType = ec2types.AttachmentLimitTypeDedicated
		limit = min(max(32, r.vcpu), 128)
	}
	info.MaximumEbsAttachments = aws.Int32(int32(limit))
}

// storage is the disks that are in the machine.
func (r *row) storage() *ec2types.InstanceStorageInfo {
	if r.disks == 0 {
		return nil
	}
	info := &ec2types.InstanceStorageInfo{
		Disks: []ec2types.DiskInfo{{
			Count:    aws.Int32(int32(r.disks)),
			SizeInGB: aws.Int64(int64(r.diskGB)),
			Type:     ec2types.DiskTypeSsd,
		}},
		EncryptionSupport: ec2types.InstanceStorageEncryptionSupportUnsupported,
		NvmeSupport:       ec2types.EphemeralNvmeSupportUnsupported,
		TotalSizeInGB:     aws.Int64(int64(r.disks) * int64(r.diskGB)),
	}
	if strings.HasPrefix(r.diskKind, "hdd") {
		info.Disks[0].Type = ec2types.DiskTypeHdd
	}
	if strings.HasSuffix(r.diskKind, "nvme") {
		info.NvmeSupport = ec2types.EphemeralNvmeSupportRequired
		info.EncryptionSupport = ec2types.InstanceStorageEncryptionSupportRequired
	}
	return info
}
