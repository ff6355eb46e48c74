package machine

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// labels are what a node of the type carries, whichever way it is bought. A label that says nothing of a type is not
// there: no hypervisor on bare metal, no accelerator where there is none.
func (b *build) labels() map[string][]string {
	l := labels{}
	l.set(corev1.LabelInstanceTypeStable, b.name())
	l.set(corev1.LabelArchStable, b.arch)
	l.set(corev1.LabelOSStable, string(b.family.OS()))
	l.set(corev1.LabelWindowsBuild, b.family.WindowsBuild())
	l.set(corev1.LabelTopologyRegion, b.settings.Region)
	l.set(awsv1.NodeClassLabelKey, b.class.Name)
	l.name(b.name())
	l.processor(b.info)
	l.number(awsv1.InstanceMemoryLabelKey, aws.ToInt64(b.info.MemoryInfo.SizeInMiB))
	l.network(b.info.NetworkInfo)
	l.storage(b.info)
	l.accelerators(b.info)
	l.set(awsv1.InstanceHypervisorLabelKey, string(b.info.Hypervisor))
	// The launch decides between the two; default, unless dedicated is asked for.
	l[awsv1.InstanceTenancyLabelKey] = []string{string(ec2types.TenancyDefault), string(ec2types.TenancyDedicated)}
	return l
}

type labels map[string][]string

func (l labels) set(key, value string) {
	if value != "" {
		l[key] = []string{value}
	}
}

func (l labels) number(key string, n int64) { l.set(key, strconv.FormatInt(n, 10)) }

// nameParts are the category and the generation in a family's name: m and 5 in m5dn, u and 1 in u-6tb1.
var nameParts = regexp.MustCompile(`^([a-z]+)(?:-\d+tb)?(\d+)`)

// name labels with what the type's name says.
func (l labels) name(name string) {
	if parts := nameParts.FindStringSubmatch(name); parts != nil {
		l.set(awsv1.InstanceCategoryLabelKey, parts[1])
		l.set(awsv1.InstanceGenerationLabelKey, parts[2])
	}
	family, size, _ := strings.Cut(name, ".")
	l.set(awsv1.InstanceFamilyLabelKey, family)
	l.set(awsv1.InstanceSizeLabelKey, size)
	l.set(awsv1.InstanceCapabilityFlexLabelKey, strconv.FormatBool(strings.Contains(family, "-flex")))
}

func (l labels) processor(info *ec2types.InstanceTypeInfo) {
	l.number(awsv1.InstanceCPULabelKey, int64(aws.ToInt32(info.VCpuInfo.DefaultVCpus)))
	l.set(awsv1.InstanceCPUManufacturerLabelKey, kebab(info.ProcessorInfo.Manufacturer))
	mhz := math.Round(aws.ToFloat64(info.ProcessorInfo.SustainedClockSpeedInGhz) * 1000)
	l.number(awsv1.InstanceCPUSustainedClockSpeedMhzLabelKey, int64(mhz))
}

// network labels with the bandwidth that is always there, all cards together, in Mbit/s.
func (l labels) network(n *ec2types.NetworkInfo) {
	l.set(awsv1.InstanceEncryptionInTransitSupportedLabelKey,
		strconv.FormatBool(aws.ToBool(n.EncryptionInTransitSupported)))
	if gbit := bandwidth(n); gbit > 0 {
		l.number(awsv1.InstanceNetworkBandwidthLabelKey, int64(math.Round(gbit*1000)))
	}
}

// performance is what EC2 says of a type's network if it is a figure that always holds: "100 Gigabit", "4x 100
// Gigabit".
var performance = regexp.MustCompile(`^(?:(\d+)x )?(\d+(?:\.\d+)?) Gigabit$`)

// bandwidth is what is always there, in Gbit/s. The type's own figure counts before those of its cards: a card may
// repeat the total of all (c6in.32xlarge), or tell half of its share (p6-b200.48xlarge). Where the type says "Up to",
// or a word such as "Moderate", it has one card, whose baseline is right.
func bandwidth(n *ec2types.NetworkInfo) float64 {
	if m := performance.FindStringSubmatch(aws.ToString(n.NetworkPerformance)); m != nil {
		times, err := strconv.ParseFloat(cmp.Or(m[1], "1"), 64)
		each, errEach := strconv.ParseFloat(m[2], 64)
		if err == nil && errEach == nil {
			return times * each
		}
	}
	gbit := 0.0
	for _, card := range n.NetworkCards {
		gbit += aws.ToFloat64(card.BaselineBandwidthInGbps)
	}
	return gbit
}

func (l labels) storage(info *ec2types.InstanceTypeInfo) {
	if s := info.InstanceStorageInfo; s != nil && s.TotalSizeInGB != nil &&
		s.NvmeSupport != ec2types.EphemeralNvmeSupportUnsupported {
		l.number(awsv1.InstanceLocalNVMELabelKey, *s.TotalSizeInGB)
	}
	e := info.EbsInfo
	if e != nil && e.EbsOptimizedInfo != nil && e.EbsOptimizedSupport == ec2types.EbsOptimizedSupportDefault {
		l.number(awsv1.InstanceEBSBandwidthLabelKey, int64(aws.ToInt32(e.EbsOptimizedInfo.MaximumBandwidthInMbps)))
	}
}

// accelerators are labelled where there is one kind of them; of two kinds the labels could name only one.
func (l labels) accelerators(info *ec2types.InstanceTypeInfo) {
	if g := info.GpuInfo; g != nil && len(g.Gpus) == 1 {
		l.set(awsv1.InstanceGPUNameLabelKey, kebab(g.Gpus[0].Name))
		l.set(awsv1.InstanceGPUManufacturerLabelKey, kebab(g.Gpus[0].Manufacturer))
		l.number(awsv1.InstanceGPUCountLabelKey, int64(aws.ToInt32(g.Gpus[0].Count)))
		if memory := g.Gpus[0].MemoryInfo; memory != nil {
			l.number(awsv1.InstanceGPUMemoryLabelKey, int64(aws.ToInt32(memory.SizeInMiB)))
		}
	}
	n, i := info.NeuronInfo, info.InferenceAcceleratorInfo
	switch {
	case n != nil && len(n.NeuronDevices) == 1:
		l.accelerator(n.NeuronDevices[0].Name, aws.String("aws"), n.NeuronDevices[0].Count)
	case n == nil && i != nil && len(i.Accelerators) == 1:
		l.accelerator(i.Accelerators[0].Name, i.Accelerators[0].Manufacturer, i.Accelerators[0].Count)
	}
}

func (l labels) accelerator(name, manufacturer *string, count *int32) {
	l.set(awsv1.InstanceAcceleratorNameLabelKey, kebab(name))
	l.set(awsv1.InstanceAcceleratorManufacturerLabelKey, kebab(manufacturer))
	l.number(awsv1.InstanceAcceleratorCountLabelKey, int64(aws.ToInt32(count)))
}

// kebab is a name as a label's value: Radeon Pro V520 is radeon-pro-v520.
func kebab(name *string) string {
	return strings.ToLower(strings.ReplaceAll(aws.ToString(name), " ", "-"))
}
