package network

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// PlacementGroup says how instances stand to each other.
type PlacementGroup struct {
	ID, Name string
	// Strategy is cluster, partition or spread.
	Strategy string
	// Partitions is how many there are, with the strategy partition.
	Partitions int
	// SpreadLevel is host or rack, with the strategy spread.
	SpreadLevel string
}

// PlacementGroup is the placement group that the class names. It is nil, without an error, if the class names none, if
// there is no such group, or if it is not ready.
func (f *Finder) PlacementGroup(ctx context.Context, class *awsv1.EC2NodeClass) (*PlacementGroup, error) {
	selector := class.Spec.PlacementGroupSelector
	if selector == nil {
		return nil, nil
	}
	key, err := keyOf(selector)
	if err != nil {
		return nil, err
	}
	found, err := f.placements.get(ctx, key, func(ctx context.Context) (*PlacementGroup, error) {
		return f.askPlacement(ctx, selector)
	})
	if err != nil || found == nil {
		return nil, err
	}
	return new(*found), nil
}

func (f *Finder) askPlacement(ctx context.Context, selector *awsv1.PlacementGroupSelector) (*PlacementGroup, error) {
	in := &ec2.DescribePlacementGroupsInput{}
	if id := deref(selector.ID); id != "" {
		in.GroupIds = []string{id}
	} else {
		in.GroupNames = []string{deref(selector.Name)}
	}
	answer, err := f.api.DescribePlacementGroups(ctx, in)
	// EC2's code for it is InvalidPlacementGroup.Unknown for a name.
	if fault.IsNotFound(err) || fault.Code(err) == "InvalidPlacementGroup.Unknown" ||
		fault.Code(err) == "InvalidPlacementGroupId.Malformed" {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Explain("finding the placement group of spec.placementGroupSelector", err)
	}
	for _, g := range answer.PlacementGroups {
		if g.State != "" && g.State != ec2types.PlacementGroupStateAvailable {
			continue
		}
		return &PlacementGroup{
			ID: deref(g.GroupId), Name: deref(g.GroupName), Strategy: string(g.Strategy),
			Partitions: int(deref(g.PartitionCount)), SpreadLevel: string(g.SpreadLevel),
		}, nil
	}
	return nil, nil
}

// WhyNoPlacementGroup says what to do about a placement group that was not found.
func WhyNoPlacementGroup(selector *awsv1.PlacementGroupSelector) string {
	if id := deref(selector.ID); id != "" {
		return fmt.Sprintf("no placement group %s is available in this region; create it, or change "+
			"spec.placementGroupSelector", id)
	}
	return fmt.Sprintf("no placement group named %s is available in this region; create it, or change "+
		"spec.placementGroupSelector", deref(selector.Name))
}
