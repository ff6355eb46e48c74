package image

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// kind is a kind of instance types that an image is made for.
type kind struct {
	accelerator string // one of the variants below, or empty if nothing is known
	build       string // of Windows
}

// Variants of images: which accelerators they have drivers for.
const (
	standard = "standard"
	nvidia   = "nvidia"
	neuron   = "neuron"
)

// requirements are what the labels of such an instance type have in common.
func (k kind) requirements() []corev1.NodeSelectorRequirement {
	is := func(label string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: label, Operator: operator, Values: values}
	}
	var out []corev1.NodeSelectorRequirement
	switch k.accelerator {
	case standard:
		out = append(out, is(awsv1.InstanceAcceleratorCountLabelKey, corev1.NodeSelectorOpDoesNotExist),
			is(awsv1.InstanceGPUCountLabelKey, corev1.NodeSelectorOpDoesNotExist))
	case nvidia:
		out = append(out, is(awsv1.InstanceGPUCountLabelKey, corev1.NodeSelectorOpExists))
	case neuron:
		out = append(out, is(awsv1.InstanceAcceleratorCountLabelKey, corev1.NodeSelectorOpExists))
	}
	if k.build != "" {
		out = append(out, is(corev1.LabelOSStable, corev1.NodeSelectorOpIn, string(corev1.Windows)),
			is(corev1.LabelWindowsBuild, corev1.NodeSelectorOpIn, k.build))
	}
	return out
}

// published is an image that AWS publishes under a parameter of Systems Manager.
type published struct {
	parameter string
	kinds     []kind
}

// publishedAs lists what an alias stands for with a version of Kubernetes, such as 1.33. Not every image exists in
// every region, version and release.
func publishedAs(alias awsv1.Alias, kubernetes string) []published {
	switch alias.Family {
	case awsv1.AMIFamilyAL2:
		return publishedAL2(alias.Version, kubernetes)
	case awsv1.AMIFamilyAL2023:
		return publishedAL2023(alias.Version, kubernetes)
	case awsv1.AMIFamilyBottlerocket:
		return publishedBottlerocket(alias.Version, kubernetes)
	case awsv1.AMIFamilyWindows2019, awsv1.AMIFamilyWindows2022, awsv1.AMIFamilyWindows2025:
		return publishedWindows(alias.Family, kubernetes)
	default:
		return nil
	}
}

// publishedAL2: one image serves both GPUs and Neuron chips, and only on amd64.
func publishedAL2(release, kubernetes string) []published {
	var out []published
	for _, i := range []struct {
		folder, prefix string
		kinds          []kind
	}{
		{"amazon-linux-2", "amazon-eks-node", []kind{{accelerator: standard}}},
		{"amazon-linux-2-arm64", "amazon-eks-arm64-node", []kind{{accelerator: standard}}},
		{"amazon-linux-2-gpu", "amazon-eks-gpu-node", []kind{{accelerator: nvidia}, {accelerator: neuron}}},
	} {
		name := "recommended"
		if release != awsv1.AliasVersionLatest {
			name = fmt.Sprintf("%s-%s-%s", i.prefix, kubernetes, release)
		}
		out = append(out, published{fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/%s/image_id", kubernetes,
			i.folder, name), i.kinds})
	}
	return out
}

func publishedAL2023(release, kubernetes string) []published {
	var out []published
	for _, i := range []struct{ arch, variant string }{
		{"x86_64", standard}, {"arm64", standard}, {"x86_64", nvidia}, {"arm64", nvidia}, {"x86_64", neuron},
	} {
		name := "recommended"
		if release != awsv1.AliasVersionLatest {
			name = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", i.arch, i.variant, kubernetes, release)
		}
		path := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", kubernetes, i.arch,
			i.variant, name)
		out = append(out, published{path, []kind{{accelerator: i.variant}}})
	}
	return out
}

// publishedBottlerocket: the plain image also has what Neuron chips need. Releases are written with a v everywhere but
// in the parameters, so both are taken.
func publishedBottlerocket(release, kubernetes string) []published {
	release = strings.TrimPrefix(release, "v")
	var out []published
	for _, i := range []struct {
		arch, suffix string
		kinds        []kind
	}{
		{"x86_64", "", []kind{{accelerator: standard}, {accelerator: neuron}}},
		{"arm64", "", []kind{{accelerator: standard}}},
		{"x86_64", "-nvidia", []kind{{accelerator: nvidia}}},
		{"arm64", "-nvidia", []kind{{accelerator: nvidia}}},
	} {
		out = append(out, published{fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes,
			i.suffix, i.arch, release), i.kinds})
	}
	return out
}

// publishedWindows: the Core edition, of which only the latest has a parameter.
func publishedWindows(name, kubernetes string) []published {
	f, _ := family.Named(name)
	year := strings.TrimPrefix(name, "Windows")
	path := fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id",
		year, kubernetes)
	return []published{{path, []kind{{build: f.WindowsBuild()}}}}
}
