package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	i, unseen, err := p.find(ctx, id, providerID)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return unseen.told(), nil
	}
	if p.isForeign(i) {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	if _, err := p.ownerOf(ctx, i); err != nil {
		return nil, err
	}
	return p.portrait(ctx, i)
}

// find asks EC2 for an instance. If EC2 does not show it yet although this process has just launched it, unseen is what is
// known of it; it is NotFound if it is gone for good.
func (p *Provider) find(ctx context.Context, id, providerID string) (i *ec2types.Instance, unseen *holding, err error) {
	i, err = p.describer.Ask(ctx, struct{}{}, id)
	if err != nil {
		return nil, nil, err
	}
	if i == nil {
		if h := p.register.machine(id); h != nil && h.answer != nil && h.since.After(p.now().Add(-showsIn)) {
			return nil, h, nil
		}
		if p.mayBeHidden(ctx, id) {
			return nil, nil, fmt.Errorf("looking for instance %s: EC2 does not show it, which may be because it is new; it will be tried again", id)
		}
	}
	if i == nil || i.State == nil || i.State.Name == ec2types.InstanceStateNameTerminated {
		p.register.forget(id, p.now())
		return nil, nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	return i, nil, nil
}

// told is what Create has said of the instance.
func (h *holding) told() *cloudprovider.Instance {
	out := copyInstance(h.answer)
	out.Terminating = !h.ending.IsZero()
	return out
}

// List implements cloudprovider.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	v, err := p.survey(ctx)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]bool, len(v.instances))
	out := make([]*cloudprovider.Instance, 0, len(v.instances))
	painter := p.painter()
	for k := range v.instances {
		i := &v.instances[k]
		shown[*i.InstanceId] = true
		if p.register.isFlying(i) {
			continue // its launch has not been answered yet: nobody's so far
		}
		// That the catalog can't be read now is no reason to lose sight of what runs.
		instance, err := painter.portrait(ctx, i)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		out = append(out, instance)
	}
	for _, h := range p.register.unseen(shown, v.began.Add(-showsIn)) {
		if gone, err := p.isGone(ctx, h); err != nil {
			return nil, err
		} else if !gone {
			out = append(out, copyInstance(h.answer))
		}
	}
	slices.SortFunc(out, func(a, b *cloudprovider.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return out, nil
}

// isGone tells whether an instance that was launched a moment ago and is not listed has ended, or is merely not shown yet.
func (p *Provider) isGone(ctx context.Context, h *holding) (bool, error) {
	_, _, err := p.find(ctx, h.id, h.answer.ProviderID)
	if cloudprovider.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// shiftedZone is the zone of the instance if AWS has moved traffic away from it, else empty. Calls about such a zone may
// hang or fail, and must not take those about others with them.
func (p *Provider) shiftedZone(i *ec2types.Instance) string {
	if i == nil || i.Placement == nil || p.catalog.shifted == nil || !p.catalog.shifted(text(i.Placement.AvailabilityZoneId)) {
		return ""
	}
	return zoneOf(i)
}

// present returns the instance that a claim has.
func (p *Provider) present(ctx context.Context, h *holding) (*cloudprovider.Instance, error) {
	i, unseen, err := p.find(ctx, h.id, providerID("", h.id))
	if err != nil {
		return nil, fmt.Errorf("looking for the instance of NodeClaim %s: %w", h.claim, err)
	}
	if i == nil {
		return unseen.told(), nil
	}
	out, err := p.portrait(ctx, i)
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
	if out.Annotations, err = stamps(class, cluster); err != nil {
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
