package ec2

import (
	"maps"
	"sort"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2/query"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// templateRef is a launch template's version that a request names.
type templateRef struct {
	id, name string
	version  *cloud.TemplateVersion
}

// findTemplate looks up the template of a request by its id or name and version.
func (s *Service) findTemplate(id, name, version *string) (templateRef, *wire.Error) {
	switch {
	case aws.ToString(id) == "" && aws.ToString(name) == "":
		return templateRef{}, wire.Errorf("MissingParameter", "The request must contain the parameter "+
			"LaunchTemplateId or LaunchTemplateName")
	case aws.ToString(id) != "" && aws.ToString(name) != "":
		return templateRef{}, wire.Errorf("InvalidParameterCombination", "You can specify only one of "+
			"LaunchTemplateId and LaunchTemplateName.")
	}
	t, err := s.world.Template(aws.ToString(id), aws.ToString(name))
	if err != nil {
		return templateRef{}, err
	}
	v, err := t.Version(aws.ToString(version))
	if err != nil {
		return templateRef{}, err
	}
	return templateRef{id: t.ID, name: t.Name, version: v}, nil
}

// merge puts a template under a request: what the request says counts, what it leaves open is the template's. Tags of
// both are put on, the request's over the template's.
func merge(over *sdk.RunInstancesInput, under *ec2types.RequestLaunchTemplateData) *sdk.RunInstancesInput {
	merged := *over
	if merged.Placement != nil {
		placement := *merged.Placement
		merged.Placement = &placement
	}
	merged.TagSpecifications = nil
	query.Fill(&merged, under)
	merged.TagSpecifications = append(merged.TagSpecifications, over.TagSpecifications...)
	if over.Placement != nil && under.Placement != nil {
		query.Fill(merged.Placement, under.Placement)
	}
	return &merged
}

// tagsOf collects the tags for one kind of resource.
func tagsOf(specs []ec2types.TagSpecification, kind ec2types.ResourceType) map[string]string {
	tags := map[string]string{}
	for _, s := range specs {
		if s.ResourceType == kind {
			maps.Copy(tags, cloud.TagMap(s.Tags))
		}
	}
	return tags
}

// tagList is a map of tags as a list, by key.
func tagList(tags map[string]string) []ec2types.Tag {
	list := make([]ec2types.Tag, 0, len(tags))
	for key, value := range tags {
		list = append(list, ec2types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	sort.Slice(list, func(a, b int) bool { return *list[a].Key < *list[b].Key })
	return list
}
