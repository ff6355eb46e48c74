package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
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
	i, err := p.find(ctx, id, providerID)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return p.answered(id), nil
	}
	if h := p.register.machine(id); h == nil || h.uid == "" {
		// Whose it is may only show in the company of those that it was launched with.
		if _, err := p.survey(ctx); err != nil {
			return nil, err
		}
	}
	return p.portrait(ctx, i)
}

// find asks EC2 for an instance. It is nil if EC2 does not show it yet although this process has just launched it; it is
// NotFound if it is gone for good.
func (p *Provider) find(ctx context.Context, id, providerID string) (*ec2types.Instance, error) {
	i, err := p.describer.Ask(ctx, struct{}{}, id)
	if err != nil {
		return nil, err
	}
	if i == nil {
		if h := p.register.machine(id); h != nil && h.answer != nil && h.since.After(p.now().Add(-showsIn)) {
			return nil, nil
		}
		p.register.forget(id)
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	if i.State == nil || i.State.Name == ec2types.InstanceStateNameTerminated {
		p.register.forget(id)
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	return i, nil
}

// answered is what Create has said of the instance.
func (p *Provider) answered(id string) *cloudprovider.Instance {
	h := p.register.machine(id)
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
	for k := range v.instances {
		i := &v.instances[k]
		shown[*i.InstanceId] = true
		if p.register.isFlying(i) {
			continue // its launch has not been answered yet: nobody's so far
		}
		instance, err := p.portrait(ctx, i)
		if err != nil {
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
	_, err := p.find(ctx, h.id, h.answer.ProviderID)
	if cloudprovider.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// Delete implements cloudprovider.Provider.
func (p *Provider) Delete(ctx context.Context, providerID string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id, err := instanceID(providerID)
	if err != nil {
		return &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	i, err := p.find(ctx, id, providerID)
	if err != nil {
		return err
	}
	if i != nil && i.State.Name == ec2types.InstanceStateNameShuttingDown {
		return nil
	}
	if _, err := p.ender.Ask(ctx, struct{}{}, id); err != nil {
		if fault.IsNotFound(err) && i != nil {
			return &cloudprovider.NotFoundError{ProviderID: providerID}
		}
		return err
	}
	p.register.ends(id, p.now())
	return nil
}

// present returns the instance that a claim has.
func (p *Provider) present(ctx context.Context, h *holding) (*cloudprovider.Instance, error) {
	i, err := p.find(ctx, h.id, providerID("", h.id))
	if err != nil {
		return nil, fmt.Errorf("looking for the instance of NodeClaim %s: %w", h.claim, err)
	}
	if i == nil {
		return p.answered(h.id), nil
	}
	return p.portrait(ctx, i)
}

// copyInstance returns a copy that the caller may change.
func copyInstance(i *cloudprovider.Instance) *cloudprovider.Instance {
	out := *i
	out.Labels, out.Annotations = copyMap(i.Labels), copyMap(i.Annotations)
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
