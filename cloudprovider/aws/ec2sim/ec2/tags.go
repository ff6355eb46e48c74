package ec2

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// maxTagged is how many resources a call may tag.
const maxTagged = 1000

func checkResources(ids []string) *wire.Error {
	if len(ids) == 0 {
		return wire.Errorf("MissingParameter", "The request must contain the parameter resourceIdSet")
	}
	if len(ids) > maxTagged {
		return wire.Errorf("InvalidParameterValue", "A call can tag at most %d resources, not %d.", maxTagged, len(ids))
	}
	return nil
}

func (s *Service) createTags(_ *request, in *sdk.CreateTagsInput) (*sdk.CreateTagsOutput, *wire.Error) {
	if err := checkResources(in.Resources); err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, wire.Errorf("MissingParameter", "The request must contain the parameter tagSet")
	}
	if err := dryRun(aws.ToBool(in.DryRun)); err != nil {
		return nil, err
	}
	return &sdk.CreateTagsOutput{}, s.world.SetTags(in.Resources, cloud.TagMap(in.Tags))
}

func (s *Service) deleteTags(_ *request, in *sdk.DeleteTagsInput) (*sdk.DeleteTagsOutput, *wire.Error) {
	if err := checkResources(in.Resources); err != nil {
		return nil, err
	}
	if err := dryRun(aws.ToBool(in.DryRun)); err != nil {
		return nil, err
	}
	var matches []cloud.TagMatch
	for _, t := range in.Tags {
		matches = append(matches, cloud.TagMatch{Key: aws.ToString(t.Key), Value: t.Value})
	}
	return &sdk.DeleteTagsOutput{}, s.world.RemoveTags(in.Resources, matches)
}

func (s *Service) describeTags(_ *request, in *sdk.DescribeTagsInput) (*sdk.DescribeTagsOutput, *wire.Error) {
	var all []ec2types.TagDescription
	for _, resource := range s.world.AllTags() {
		for _, t := range tagList(resource.Tags) {
			all = append(all, ec2types.TagDescription{Key: t.Key, Value: t.Value, ResourceId: aws.String(resource.ID),
				ResourceType: kindOf(resource.ID)})
		}
	}
	none := func(*ec2types.TagDescription) []ec2types.Tag { return nil }
	all, err := filtered(all, in.Filters, none, tagAttribute)
	if err != nil {
		return nil, err
	}
	key := func(t *ec2types.TagDescription) string { return aws.ToString(t.ResourceId) + "/" + aws.ToString(t.Key) }
	all, next, err := page(all, pages{5, 1000, 1000}, in.MaxResults, in.NextToken, key)
	return &sdk.DescribeTagsOutput{Tags: all, NextToken: next}, err
}

func tagAttribute(t *ec2types.TagDescription, filter string) ([]string, bool) {
	switch filter {
	case "key":
		return str(t.Key), true
	case "value":
		return str(t.Value), true
	case "resource-id":
		return str(t.ResourceId), true
	case "resource-type":
		return []string{string(t.ResourceType)}, true
	}
	return nil, false
}

// kindOf tells from a resource's id what it is.
func kindOf(id string) ec2types.ResourceType {
	prefix, _, _ := strings.Cut(id, "-")
	switch prefix {
	case "i":
		return ec2types.ResourceTypeInstance
	case "vol":
		return ec2types.ResourceTypeVolume
	case "eni":
		return ec2types.ResourceTypeNetworkInterface
	case "lt":
		return ec2types.ResourceTypeLaunchTemplate
	case "sg":
		return ec2types.ResourceTypeSecurityGroup
	case "ami":
		return ec2types.ResourceTypeImage
	case "cr":
		return ec2types.ResourceTypeCapacityReservation
	case "pg":
		return ec2types.ResourceTypePlacementGroup
	case "sir":
		return ec2types.ResourceTypeSpotInstancesRequest
	case "snap":
		return ec2types.ResourceTypeSnapshot
	}
	return ec2types.ResourceType(prefix) // subnet, vpc, fleet
}
