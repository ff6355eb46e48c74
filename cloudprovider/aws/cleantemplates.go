package aws

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// cleanEvery is how often launch templates are looked for that are not used any more: every new image and every
	// change of a class or pool makes others, and an account has room for some thousand.
	cleanEvery = 30 * time.Minute
	// unusedFor is how long a template must not have been used. One that is deleted too early is made again.
	unusedFor = time.Hour
)

// NeedLeaderElection makes the manager run Start on the replica that leads only.
func (p *Provider) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it takes over from the leader before, and cleans up from time to time until the
// context ends.
func (p *Provider) Start(ctx context.Context) error {
	p.nameTagger.setLifetime(ctx)
	p.guard.Keep(ctx, "taking over and removing launch templates", nil, p.cleanPeriodically)
	return nil
}

func (p *Provider) cleanPeriodically(ctx context.Context) {
	if err := p.Lead(ctx); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "taking over; the first launch tries it again")
	}
	ticker := time.NewTicker(cleanEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := p.DeleteUnusedTemplates(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "removing launch templates that are not used any more; it will be "+
					"tried again")
			}
		}
	}
}

// DeleteUnusedTemplates deletes the cluster's launch templates that have not been used for a while.
func (p *Provider) DeleteUnusedTemplates(ctx context.Context) error {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(p.ec2, &ec2.DescribeLaunchTemplatesInput{
		Filters: []ec2types.Filter{
			{Name: new("tag:" + awsv1.ClusterTagPrefix + p.clusterName), Values: []string{"owned"}},
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
			old := t.CreateTime != nil && p.now().Sub(*t.CreateTime) > unusedFor
			if !old || t.LaunchTemplateName == nil || p.templates.usedSince(*t.LaunchTemplateName,
				p.now().Add(-unusedFor)) {
				continue
			}
			p.templates.forget(*t.LaunchTemplateName)
			_, err := p.ec2.DeleteLaunchTemplate(ctx,
				&ec2.DeleteLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId})
			if err != nil && !fault.IsNotFound(err) {
				failures = append(failures, fault.Explain(fmt.Sprintf("deleting launch template %s",
					*t.LaunchTemplateName), err))
			}
		}
	}
	return errors.Join(failures...)
}
