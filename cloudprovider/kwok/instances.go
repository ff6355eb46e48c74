package kwok

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Create implements cloudprovider.Provider.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	launched, err := p.launch(ctx, claim)
	if err != nil {
		// An instance that is there already wins over every reason for which none could be launched now, and over
		// an answer that was lost on its way.
		there, getErr := p.records.get(ctx, providerIDPrefix+instanceName(claim.Name, string(claim.UID)))
		if getErr != nil || there.ClaimUID != string(claim.UID) {
			return nil, err
		}
		launched = there
	}
	p.boots.begin(launched)
	return launched.instance(), nil
}

// launch writes down a new instance. The write is the launch: what comes before may be repeated, what comes after is
// done again by Start if this process dies.
func (p *Provider) launch(ctx context.Context, claim *v1.NodeClaim) (*record, error) {
	class, err := p.nodeClass(ctx, claim.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	faults, err := p.faultsOf(class)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, faults.LaunchDelay); err != nil {
		return nil, fmt.Errorf("launching slowly: %w", err)
	}
	if faults.LaunchError != "" {
		return nil, fmt.Errorf("launching an instance: %s", faults.LaunchError)
	}
	chosen, err := choose.Available(choose.Ranked(p.types, claim), faults.refuses)
	if err != nil {
		return nil, err
	}
	r := newRecord(chosen.Instance(claim), claim)
	r.Drift = faults.Drift
	if !anyMatches(faults.NeverRegister, claim.Name) {
		joins := r.CreatedAt.Add(class.Spec.NodeRegistrationDelay.Duration)
		r.JoinsAt = &joins
	}
	if err := p.records.add(ctx, r); err != nil {
		return nil, err
	}
	return r, nil
}

// pause waits, or returns early if nobody waits for the answer any more.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Get implements cloudprovider.Provider.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloudprovider.Instance, error) {
	r, err := p.records.get(ctx, providerID)
	if cloudprovider.IsNotFound(err) {
		n, err := p.karpenter.get(ctx, providerID)
		if err != nil {
			return nil, err
		}
		return p.karpenter.instance(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	return r.instance(), nil
}

// List implements cloudprovider.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	all, err := p.records.list(ctx)
	if err != nil {
		return nil, err
	}
	out, err := p.karpenter.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		out = append(out, r.instance())
	}
	slices.SortFunc(out, func(a, b *cloudprovider.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return out, nil
}

// Delete implements cloudprovider.Provider. A simulated machine ends at once: the call after the first says NotFound.
// The record goes last, so that a Delete which failed half way is repeated.
func (p *Provider) Delete(ctx context.Context, providerID string, owner cloudprovider.Owner) error {
	r, err := p.records.get(ctx, providerID)
	if cloudprovider.IsNotFound(err) {
		n, err := p.karpenter.get(ctx, providerID)
		if err != nil {
			return err
		}
		return p.karpenter.end(ctx, n, owner)
	}
	if err != nil {
		return err
	}
	if !owner.Of(r.ClaimUID) {
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Owner: r.instance().Owner()}
	}
	p.boots.stop(r)
	if err := p.nodes.remove(ctx, r); err != nil {
		return err
	}
	return p.records.remove(ctx, r)
}

// Kill makes an instance disappear the way machines do: nobody is told, and the Node stays behind without heartbeats.
func (p *Provider) Kill(ctx context.Context, providerID string) error {
	r, err := p.records.get(ctx, providerID)
	if err != nil {
		return err
	}
	p.boots.stop(r)
	if err := p.nodes.silence(ctx, r); err != nil {
		return err
	}
	return p.records.remove(ctx, r)
}

// killMatching kills the instances of the class whose claims have one of the names.
func (p *Provider) killMatching(ctx context.Context, class string, names []string) error {
	all, err := p.records.list(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.NodeClass != class || !anyMatches(names, r.ClaimName) {
			continue
		}
		if err := p.Kill(ctx, r.providerID()); err != nil && !cloudprovider.IsNotFound(err) {
			return err
		}
	}
	return nil
}
