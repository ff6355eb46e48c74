package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/launch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Get implements cloudprovider.Provider.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, err := ownership.InstanceID(providerID)
	if err != nil {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	i, unseen, err := p.instances.FindInstance(ctx, id, providerID)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return unseen.Answer(), nil
	}
	if p.instances.IsForeign(i) {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	if _, err := p.instances.OwnerOf(ctx, i); err != nil {
		return nil, err
	}
	return p.newConverter().toInstance(ctx, i)
}

// List implements cloudprovider.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	v, err := p.instances.Scan(ctx)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]bool, len(v.Instances))
	out := make([]*cloudprovider.Instance, 0, len(v.Instances))
	converter := p.newConverter()
	for k := range v.Instances {
		i := &v.Instances[k]
		shown[*i.InstanceId] = true
		if p.register.IsLaunching(i) {
			continue // its launch has not been answered yet: nobody's so far
		}
		// That the catalog can't be read now is no reason to lose sight of what runs.
		instance, err := converter.toInstance(ctx, i)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		out = append(out, instance)
	}
	for _, a := range p.register.NotShownYet(shown, v.Began) {
		if gone, err := p.instances.IsGone(ctx, a); err != nil {
			return nil, err
		} else if !gone {
			out = append(out, a.CreateAnswer.DeepCopy())
		}
	}
	slices.SortFunc(out, func(a, b *cloudprovider.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return out, nil
}

// describeAssigned returns the instance that a claim has.
func (p *Provider) describeAssigned(ctx context.Context, a *ownership.Assignment) (*cloudprovider.Instance, error) {
	i, unseen, err := p.instances.FindInstance(ctx, a.ID, ownership.ProviderID("", a.ID))
	if err != nil {
		return nil, fmt.Errorf("looking for the instance of NodeClaim %s: %w", a.Name, err)
	}
	if i == nil {
		return unseen.Answer(), nil
	}
	out, err := p.newConverter().toInstance(ctx, i)
	if err != nil || len(out.Annotations) > 0 {
		return out, err
	}
	// A process before this one has launched it, a moment ago: the class is most likely what it was.
	class, err := p.classes.find(ctx, ownership.TagOf(i, awsv1.NodeClassTagKey))
	if err != nil || class == nil {
		return out, err
	}
	cluster, err := p.o.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out how nodes join the cluster: %w", err)
	}
	if out.Annotations, err = launch.HashAnnotations(class, cluster); err != nil {
		return nil, err
	}
	if p.o.Identity != "" && !out.Unproven {
		out.Annotations[ownership.IdentityTaggedAnnotationKey] = "true"
	}
	return out, nil
}
