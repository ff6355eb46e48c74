package nodeclass

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// TemplatesAPI is what is asked of EC2 about launch templates.
type TemplatesAPI interface {
	DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
	DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput,
		opts ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error)
}

// template is a launch template that was made for a class.
type template struct {
	id, name, class string
	createdAt       time.Time
}

// listTemplates lists the launch templates of a cluster, or those of one class of it. They are known by name and by the
// tag of the cluster, which everything carries that is made for its nodes, by us or by Karpenter.
func listTemplates(ctx context.Context, api TemplatesAPI, cluster, class string) ([]template, error) {
	filters := []ec2types.Filter{
		{Name: new("tag:" + awsv1.ClusterTagPrefix + cluster), Values: []string{"owned"}},
		{Name: new("launch-template-name"), Values: []string{awsv1.LaunchTemplatePrefix + "*"}},
	}
	if class != "" {
		filters = append(filters, ec2types.Filter{Name: new("tag:" + awsv1.NodeClassTagKey), Values: []string{class}})
	}
	var out []template
	in := &ec2.DescribeLaunchTemplatesInput{Filters: filters, MaxResults: new(int32(200))}
	for {
		page, err := api.DescribeLaunchTemplates(ctx, in)
		if err != nil {
			return nil, fault.Explain("listing launch templates", err)
		}
		for i := range page.LaunchTemplates {
			out = append(out, templateOf(&page.LaunchTemplates[i]))
		}
		if page.NextToken == nil || *page.NextToken == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}

func templateOf(t *ec2types.LaunchTemplate) template {
	var out template
	if t.LaunchTemplateId != nil {
		out.id = *t.LaunchTemplateId
	}
	if t.LaunchTemplateName != nil {
		out.name = *t.LaunchTemplateName
	}
	if t.CreateTime != nil {
		out.createdAt = *t.CreateTime
	}
	for _, tag := range t.Tags {
		if tag.Key != nil && tag.Value != nil && *tag.Key == awsv1.NodeClassTagKey {
			out.class = *tag.Value
		}
	}
	return out
}

// deleteTemplates removes the launch templates of a class.
func deleteTemplates(ctx context.Context, api TemplatesAPI, cluster, class string) error {
	list, err := listTemplates(ctx, api, cluster, class)
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range list {
		failed = append(failed, deleteTemplate(ctx, api, t))
	}
	return errors.Join(failed...)
}

func deleteTemplate(ctx context.Context, api TemplatesAPI, t template) error {
	_, err := api.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &t.id})
	if fault.IsNotFound(err) {
		return nil
	}
	return fault.Explain("deleting the launch template "+t.name, err)
}
