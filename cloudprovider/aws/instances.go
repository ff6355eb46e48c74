package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Get implements cloudprovider.Provider.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, err := instanceID(providerID)
	if err != nil {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	i, unseen, err := p.findInstance(ctx, id, providerID)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return unseen.answer(), nil
	}
	if p.isForeign(i) {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	if _, err := p.ownerOf(ctx, i); err != nil {
		return nil, err
	}
	return p.toInstance(ctx, i)
}

// findInstance asks EC2 for an instance. If EC2 does not show it yet although this process has just launched it, unseen
// is what is known of it; it is NotFound if it is gone for good.
func (p *Provider) findInstance(ctx context.Context, id, providerID string) (i *ec2types.Instance, unseen *assignment,
	err error) {
	i, err = p.describer.Ask(ctx, struct{}{}, id)
	if err != nil {
		return nil, nil, err
	}
	if i == nil {
		if a := p.ownership.assignmentOf(id); a != nil && a.createAnswer != nil &&
			a.launchedAt.After(p.now().Add(-visibleWithin)) {
			return nil, a, nil
		}
		if p.mayBeHidden(ctx, id) {
			return nil, nil, fmt.Errorf("looking for instance %s: EC2 does not show it, which may be because it is "+
				"new; it will be tried again", id)
		}
	}
	if i == nil || i.State == nil || i.State.Name == ec2types.InstanceStateNameTerminated {
		p.ownership.forget(id, p.now())
		return nil, nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	return i, nil, nil
}

// answer is what Create has said of the instance.
func (a *assignment) answer() *cloudprovider.Instance {
	out := copyInstance(a.createAnswer)
	out.Terminating = !a.endingSince.IsZero()
	return out
}

// List implements cloudprovider.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	v, err := p.scan(ctx)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]bool, len(v.instances))
	out := make([]*cloudprovider.Instance, 0, len(v.instances))
	converter := p.newConverter()
	for k := range v.instances {
		i := &v.instances[k]
		shown[*i.InstanceId] = true
		if p.ownership.isLaunching(i) {
			continue // its launch has not been answered yet: nobody's so far
		}
		// That the catalog can't be read now is no reason to lose sight of what runs.
		instance, err := converter.toInstance(ctx, i)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		out = append(out, instance)
	}
	for _, a := range p.ownership.notShownYet(shown, v.began.Add(-visibleWithin)) {
		if gone, err := p.isGone(ctx, a); err != nil {
			return nil, err
		} else if !gone {
			out = append(out, copyInstance(a.createAnswer))
		}
	}
	slices.SortFunc(out, func(a, b *cloudprovider.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return out, nil
}

// isGone tells whether an instance that was launched a moment ago and is not listed has ended, or is merely not shown
// yet.
func (p *Provider) isGone(ctx context.Context, a *assignment) (bool, error) {
	_, _, err := p.findInstance(ctx, a.id, a.createAnswer.ProviderID)
	if cloudprovider.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// shiftedZone is the zone of the instance if AWS has moved traffic away from it, else empty. Calls about such a zone
// may hang or fail, and must not take those about others with them.
func (p *Provider) shiftedZone(i *ec2types.Instance) string {
	if i == nil || i.Placement == nil || p.shifted == nil ||
		!p.shifted(aws.ToString(i.Placement.AvailabilityZoneId)) {
		return ""
	}
	return zoneOf(i)
}

// describeAssigned returns the instance that a claim has.
func (p *Provider) describeAssigned(ctx context.Context, a *assignment) (*cloudprovider.Instance, error) {
	i, unseen, err := p.findInstance(ctx, a.id, providerID("", a.id))
	if err != nil {
		return nil, fmt.Errorf("looking for the instance of NodeClaim %s: %w", a.claim, err)
	}
	if i == nil {
		return unseen.answer(), nil
	}
	out, err := p.toInstance(ctx, i)
	if err != nil || len(out.Annotations) > 0 {
		return out, err
	}
	// A process before this one has launched it, a moment ago: the class is most likely what it was.
	class, err := p.anyClass(ctx, tagOf(i, awsv1.NodeClassTagKey))
	if err != nil || class == nil {
		return out, err
	}
	cluster, err := p.cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out how nodes join the cluster: %w", err)
	}
	if out.Annotations, err = hashAnnotations(class, cluster); err != nil {
		return nil, err
	}
	if p.identity != "" && !out.Unproven {
		out.Annotations[IdentityTaggedAnnotationKey] = "true"
	}
	return out, nil
}

// copyInstance returns a copy that the caller may change.
func copyInstance(i *cloudprovider.Instance) *cloudprovider.Instance {
	out := *i
	out.Labels, out.Annotations, out.Refused = copyMap(i.Labels), copyMap(i.Annotations), slices.Clone(i.Refused)
	out.Capacity, out.Allocatable = i.Capacity.DeepCopy(), i.Allocatable.DeepCopy()
	return &out
}

func copyMap(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
