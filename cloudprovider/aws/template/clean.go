package template

import (
	"context"
	"errors"
	"fmt"
	"time"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// unusedFor is how long a template must not have been used. One that is deleted too early is made again.
const unusedFor = time.Hour

// DeleteUnused deletes the cluster's launch templates that have not been used for a while.
func (s *Store) DeleteUnused(ctx context.Context, clusterName string) error {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(s.api, &ec2.DescribeLaunchTemplatesInput{
		Filters: []ec2types.Filter{
			{Name: new("tag:" + awsv1.ClusterTagPrefix + clusterName), Values: []string{"owned"}},
			{Name: new("launch-template-name"), Values: []string{awsv1.LaunchTemplatePrefix + "*"}},
		},
		MaxResults: new(int32(mostNames)),
	})
	var failures []error
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fault.Explain("looking for launch templates", err)
		}
		for i := range page.LaunchTemplates {
			t := &page.LaunchTemplates[i]
			old := t.CreateTime != nil && s.now().Sub(*t.CreateTime) > unusedFor
			if !old || t.LaunchTemplateName == nil || s.usedSince(*t.LaunchTemplateName,
				s.now().Add(-unusedFor)) {
				continue
			}
			s.Forget(*t.LaunchTemplateName)
			_, err := s.api.DeleteLaunchTemplate(ctx,
				&ec2.DeleteLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId})
			if err != nil && !fault.IsNotFound(err) {
				failures = append(failures, fault.Explain(fmt.Sprintf("deleting launch template %s",
					*t.LaunchTemplateName), err))
			}
		}
	}
	return errors.Join(failures...)
}
