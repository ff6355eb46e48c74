package ec2

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func (s *Service) describeZones(_ *request,
	in *sdk.DescribeAvailabilityZonesInput) (*sdk.DescribeAvailabilityZonesOutput, *wire.Error) {
	var all []ec2types.AvailabilityZone
	known := map[string]bool{}
	for _, z := range s.world.Zones() {
		known[z.Name], known[z.ID] = true, true
		if len(in.ZoneNames) > 0 && !slices.Contains(in.ZoneNames, z.Name) || len(in.ZoneIds) > 0 &&
			!slices.Contains(in.ZoneIds, z.ID) {
			continue
		}
		region := s.world.Region()
		all = append(all, ec2types.AvailabilityZone{
			ZoneName: aws.String(z.Name), ZoneId: aws.String(z.ID), RegionName: aws.String(region),
			GroupName:          aws.String(region + "-zg-1"),
			NetworkBorderGroup: aws.String(region), State: ec2types.AvailabilityZoneStateAvailable,
			ZoneType:    aws.String("availability-zone"),
			OptInStatus: ec2types.AvailabilityZoneOptInStatusOptInNotRequired,
			Messages:    []ec2types.AvailabilityZoneMessage{},
		})
	}
	for _, name := range append(slices.Clone(in.ZoneNames), in.ZoneIds...) {
		if !known[name] {
			return nil, wire.Errorf("InvalidParameterValue", "Invalid availability zone: [%s]", name)
		}
	}
	none := func(*ec2types.AvailabilityZone) []ec2types.Tag { return nil }
	all, err := filtered(all, in.Filters, none, zoneAttribute)
	return &sdk.DescribeAvailabilityZonesOutput{AvailabilityZones: all}, err
}

func zoneAttribute(z *ec2types.AvailabilityZone, filter string) ([]string, bool) {
	switch filter {
	case "zone-name":
		return str(z.ZoneName), true
	case "zone-id":
		return str(z.ZoneId), true
	case "zone-type":
		return str(z.ZoneType), true
	case "region-name":
		return str(z.RegionName), true
	case "group-name":
		return str(z.GroupName), true
	case "state":
		return []string{string(z.State)}, true
	case "opt-in-status":
		return []string{string(z.OptInStatus)}, true
	}
	return nil, false
}
