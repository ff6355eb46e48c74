package ec2

import (
	"slices"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// maxTypeNames is how many types a call may name.
const maxTypeNames = 100

func (s *Service) describeTypes(_ *request, in *sdk.DescribeInstanceTypesInput) (*sdk.DescribeInstanceTypesOutput,
	*wire.Error) {
	if len(in.InstanceTypes) > maxTypeNames {
		return nil, wire.Errorf("InvalidParameterValue", "The number of instance types that can be specified is "+
			"limited to %d.", maxTypeNames)
	}
	if len(in.InstanceTypes) > 0 && in.MaxResults != nil {
		return nil, wire.Errorf("InvalidParameterCombination", "The parameter InstanceTypes cannot be used with the "+
			"parameter MaxResults")
	}
	all := s.world.InstanceTypes()
	if len(in.InstanceTypes) > 0 {
		var missing []string
		for _, name := range in.InstanceTypes {
			if _, ok := s.world.InstanceType(string(name)); !ok {
				missing = append(missing, string(name))
			}
		}
		if len(missing) > 0 {
			return nil, wire.Errorf("InvalidInstanceType", "The following supplied instance types do not exist: [%s]",
				strings.Join(missing, ", "))
		}
		all = slices.DeleteFunc(all, func(t ec2types.InstanceTypeInfo) bool {
			return !slices.Contains(in.InstanceTypes, t.InstanceType)
		})
	}
	none := func(*ec2types.InstanceTypeInfo) []ec2types.Tag { return nil }
	all, err := filtered(all, in.Filters, none, typeAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{5, 100, 100}, in.MaxResults, in.NextToken,
		func(t *ec2types.InstanceTypeInfo) string {
			return string(t.InstanceType)
		})
	return &sdk.DescribeInstanceTypesOutput{InstanceTypes: all, NextToken: next}, err
}

func typeAttribute(t *ec2types.InstanceTypeInfo, filter string) ([]string, bool) {
	switch filter {
	case "instance-type":
		return []string{string(t.InstanceType)}, true
	case "bare-metal":
		return boolean(t.BareMetal), true
	case "current-generation":
		return boolean(t.CurrentGeneration), true
	case "burstable-performance-supported":
		return boolean(t.BurstablePerformanceSupported), true
	case "instance-storage-supported":
		return boolean(t.InstanceStorageSupported), true
	case "hypervisor":
		return []string{string(t.Hypervisor)}, true
	case "supported-virtualization-type":
		return texts(t.SupportedVirtualizationTypes), true
	case "supported-usage-class":
		return texts(t.SupportedUsageClasses), true
	case "supported-root-device-type":
		return texts(t.SupportedRootDeviceTypes), true
	case "processor-info.supported-architecture":
		if t.ProcessorInfo == nil {
			return nil, true
		}
		return texts(t.ProcessorInfo.SupportedArchitectures), true
	case "vcpu-info.default-vcpus":
		if t.VCpuInfo == nil {
			return nil, true
		}
		return number(t.VCpuInfo.DefaultVCpus), true
	case "network-info.efa-supported":
		if t.NetworkInfo == nil {
			return nil, true
		}
		return boolean(t.NetworkInfo.EfaSupported), true
	}
	return nil, false
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func (s *Service) describeOfferings(_ *request,
	in *sdk.DescribeInstanceTypeOfferingsInput) (*sdk.DescribeInstanceTypeOfferingsOutput, *wire.Error) {
	kind := in.LocationType
	if kind == "" {
		kind = ec2types.LocationTypeRegion
	}
	var all []ec2types.InstanceTypeOffering
	add := func(name ec2types.InstanceType, location string) {
		all = append(all, ec2types.InstanceTypeOffering{InstanceType: name, Location: aws.String(location),
			LocationType: kind})
	}
	for _, t := range s.world.InstanceTypes() {
		sold := false
		for _, z := range s.world.Zones() {
			if !s.world.Sold(string(t.InstanceType), z.Name) {
				continue
			}
			sold = true
			switch kind {
			case ec2types.LocationTypeAvailabilityZone:
				add(t.InstanceType, z.Name)
			case ec2types.LocationTypeAvailabilityZoneId:
				add(t.InstanceType, z.ID)
			}
		}
		if sold && kind == ec2types.LocationTypeRegion {
			add(t.InstanceType, s.world.Region())
		}
	}
	none := func(*ec2types.InstanceTypeOffering) []ec2types.Tag { return nil }
	all, err := filtered(all, in.Filters, none, offeringAttribute)
	if err != nil {
		return nil, err
	}
	key := func(o *ec2types.InstanceTypeOffering) string {
		return string(o.InstanceType) + "/" + aws.ToString(o.Location)
	}
	sort.Slice(all, func(a, b int) bool { return key(&all[a]) < key(&all[b]) })
	all, next, err := page(all, pages{5, 1000, 1000}, in.MaxResults, in.NextToken, key)
	return &sdk.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: all, NextToken: next}, err
}

func offeringAttribute(o *ec2types.InstanceTypeOffering, filter string) ([]string, bool) {
	switch filter {
	case "instance-type":
		return []string{string(o.InstanceType)}, true
	case "location":
		return str(o.Location), true
	}
	return nil, false
}
