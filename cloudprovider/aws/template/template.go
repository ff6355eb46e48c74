package template

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// Template is a launch template as it is to be. Its name derives from its content, so it never changes.
type Template struct {
	Name string
	Data *ec2types.RequestLaunchTemplateData
	Tags map[string]string
}

// newTemplate makes the template of a spec.
func newTemplate(spec *Spec) (*Template, error) {
	data, err := spec.data()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal([]any{data, spec.Tags})
	if err != nil {
		return nil, fmt.Errorf("naming a launch template: %w", err)
	}
	sum := sha256.Sum256(text)
	return &Template{Name: awsv1.LaunchTemplatePrefix + hex.EncodeToString(sum[:10]), Data: data, Tags: spec.Tags}, nil
}

// Input is the call that creates the template.
func (t *Template) Input() *ec2.CreateLaunchTemplateInput {
	// By this tag Karpenter finds the templates of its cluster, should it run again.
	tags := maps.Clone(t.Tags)
	tags[awsv1.Group+"/cluster"] = t.Tags[awsv1.EKSClusterNameTagKey]
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: new(t.Name),
		LaunchTemplateData: t.Data,
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate,
			Tags: TagList(tags)}},
	}
}

// TagList writes tags as EC2 takes them, sorted.
func TagList(tags map[string]string) []ec2types.Tag {
	out := make([]ec2types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, ec2types.Tag{Key: new(key), Value: new(tags[key])})
	}
	return out
}
