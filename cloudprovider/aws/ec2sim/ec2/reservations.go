package ec2

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func (s *Service) describeReservations(_ *request,
	in *sdk.DescribeCapacityReservationsInput) (*sdk.DescribeCapacityReservationsOutput, *wire.Error) {
	id := func(r *ec2types.CapacityReservation) string { return aws.ToString(r.CapacityReservationId) }
	all, err := named(s.world.Reservations(), in.CapacityReservationIds, id, func(id string) *wire.Error {
		return wire.Errorf("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist",
			id)
	})
	if err != nil {
		return nil, err
	}
	all, err = filtered(all, in.Filters, func(r *ec2types.CapacityReservation) []ec2types.Tag {
		return r.Tags
	}, reservationAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{1, 1000, 0}, in.MaxResults, in.NextToken, id)
	return &sdk.DescribeCapacityReservationsOutput{CapacityReservations: all, NextToken: next}, err
}

func reservationAttribute(r *ec2types.CapacityReservation, filter string) ([]string, bool) {
	switch filter {
	case "instance-type":
		return str(r.InstanceType), true
	case "owner-id":
		return str(r.OwnerId), true
	case "availability-zone":
		return str(r.AvailabilityZone), true
	case "availability-zone-id":
		return str(r.AvailabilityZoneId), true
	case "instance-platform":
		return []string{string(r.InstancePlatform)}, true
	case "tenancy":
		return []string{string(r.Tenancy)}, true
	case "state":
		return []string{string(r.State)}, true
	case "end-date-type":
		return []string{string(r.EndDateType)}, true
	case "end-date":
		return timestamp(r.EndDate), true
	case "start-date":
		return timestamp(r.StartDate), true
	case "instance-match-criteria":
		return []string{string(r.InstanceMatchCriteria)}, true
	case "placement-group-arn":
		return str(r.PlacementGroupArn), true
	}
	return nil, false
}

func (s *Service) describePlacementGroups(_ *request,
	in *sdk.DescribePlacementGroupsInput) (*sdk.DescribePlacementGroupsOutput, *wire.Error) {
	unknown := func(name string) *wire.Error {
		return wire.Errorf("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
	}
	all, err := named(s.world.PlacementGroups(), in.GroupIds, func(g *ec2types.PlacementGroup) string {
		return aws.ToString(g.GroupId)
	}, unknown)
	if err != nil {
		return nil, err
	}
	all, err = named(all, in.GroupNames, func(g *ec2types.PlacementGroup) string {
		return aws.ToString(g.GroupName)
	}, unknown)
	if err != nil {
		return nil, err
	}
	all, err = filtered(all, in.Filters, func(g *ec2types.PlacementGroup) []ec2types.Tag {
		return g.Tags
	}, placementAttribute)
	return &sdk.DescribePlacementGroupsOutput{PlacementGroups: slices.Clip(all)}, err
}

func placementAttribute(g *ec2types.PlacementGroup, filter string) ([]string, bool) {
	switch filter {
	case "group-name":
		return str(g.GroupName), true
	case "group-id":
		return str(g.GroupId), true
	case "group-arn":
		return str(g.GroupArn), true
	case "state":
		return []string{string(g.State)}, true
	case "strategy":
		return []string{string(g.Strategy)}, true
	case "spread-level":
		return []string{string(g.SpreadLevel)}, true
	}
	return nil, false
}
