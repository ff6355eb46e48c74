// Package catalog says what the simulated cloud sells: by default EC2's shapes and prices in one region, from a small
// embedded file, or whatever a JSON file in the format of Karpenter's kwok provider lists.
//
// It belongs to the kwok provider, an edge: it turns files into cloudprovider values and touches nothing else.
package catalog

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

//go:generate go run -C gen . -out ../ec2.csv -types ../../../aws/ec2sim/catalog/types.csv -prices ../../../aws/price/prices.txt

//go:embed ec2.csv
var ec2CSV string

// Default returns the embedded catalog, ordered by name. Every call builds it anew, so the caller owns it.
func Default() ([]*cloudprovider.InstanceType, error) {
	types, err := parseEC2(strings.NewReader(ec2CSV))
	if err != nil {
		return nil, fmt.Errorf("reading the embedded catalog: %w", err)
	}
	return types, nil
}

// Load reads an instance types file; an empty path means the embedded catalog.
func Load(path string) ([]*cloudprovider.InstanceType, error) {
	if path == "" {
		return Default()
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the instance types file: %w", err)
	}
	defer file.Close()
	types, err := Parse(file)
	if err != nil {
		return nil, fmt.Errorf("reading the instance types file %s: %w", path, err)
	}
	return types, nil
}

func sortByName(types []*cloudprovider.InstanceType) {
	slices.SortFunc(types, func(a, b *cloudprovider.InstanceType) int { return strings.Compare(a.Name, b.Name) })
}

// sizeInName is the part of a name such as m5.large or m7i.metal-24xl that says how big a member of its family is.
var sizeInName = regexp.MustCompile(`^[\w-]+\.((?:nano|micro|small|medium|large|\d*xlarge|metal)(?:-\d+xl)?)$`)

// familyAndSize reads both from the name, as far as clouds put them there: m5.large, n2-standard-4. A name that tells
// no family stands for its first letter; one that tells no size is as big as its CPUs.
func familyAndSize(name, cpu string) (family, size string) {
	size = cpu
	if match := sizeInName.FindStringSubmatch(name); match != nil {
		size = match[1]
	}
	if before, _, found := strings.Cut(name, "."); found {
		return before, size
	}
	if before, _, found := strings.Cut(name, "-"); found {
		return before, size
	}
	return name[:1], size
}

// shapeLabels are the labels that follow from the name and the resources of a type.
func shapeLabels(name string, arch, systems []string, capacity corev1.ResourceList) map[string][]string {
	cpu := capacity.Cpu().String()
	family, size := familyAndSize(name, cpu)
	return map[string][]string{
		corev1.LabelInstanceTypeStable:      {name},
		corev1.LabelArchStable:              arch,
		corev1.LabelOSStable:                systems,
		kwokv1alpha1.InstanceFamilyLabelKey: {family},
		kwokv1alpha1.InstanceSizeLabelKey:   {size},
		kwokv1alpha1.InstanceCPULabelKey:    {cpu},
		kwokv1alpha1.InstanceMemoryLabelKey: {capacity.Memory().String()},
	}
}
