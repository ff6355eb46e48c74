package aws

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/launch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Create implements cloudprovider.Provider. Calls for the same claim at the same time are one call.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, first := p.createCalls.join(claim.UID)
		if first {
			instance, err := p.create(ctx, claim)
			p.createCalls.end(claim.UID, f, instance, err)
			return instance, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if f.err == nil {
			return f.instance.DeepCopy(), nil
		}
		if !errors.Is(f.err, context.Canceled) && !errors.Is(f.err, context.DeadlineExceeded) {
			return nil, f.err
		}
		// Whoever was first has given up; that is no answer for us.
	}
}

func (p *Provider) create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	for {
		// It may be being launched, or a launch's answer was lost.
		if err := p.launcher.AwaitLaunch(ctx, claim.UID); err != nil {
			return nil, err
		}
		there, q, err := p.findOrPrepare(ctx, claim)
		switch {
		case errors.Is(err, ownership.ErrMayBeHidden):
			p.o.Wait(ctx, ownership.ScanAgainAfter)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		case there != nil || err != nil:
			return there, err
		}
		got, err := p.launcher.Launch(ctx, q)
		if !errors.Is(err, launch.ErrLaunchedElsewhere) {
			return got, err
		}
	}
}

// findOrPrepare finds the claim's instance if it has one, else it works out what to ask of EC2.
func (p *Provider) findOrPrepare(ctx context.Context, claim *v1.NodeClaim) (there *cloudprovider.Instance,
	q *launch.Request, err error) {
	defer p.launcher.Expect()()
	if there, err = p.existing(ctx, claim); there != nil || err != nil {
		return there, nil, err
	}
	q, err = p.prepare(ctx, claim)
	return nil, q, err
}

// existing finds the claim's instance if it has one. It asks EC2 only while a process before this one may have launched
// it.
func (p *Provider) existing(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	a := p.register.RecallInstance(claim)
	if a == nil {
		var err error
		if a, err = p.instances.FromPredecessor(ctx, claim); a == nil || err != nil {
			return nil, err
		}
	}
	there, err := p.describeAssigned(ctx, a)
	switch {
	case cloudprovider.IsNotFound(err):
		return nil, nil // it has ended before anybody learnt of it
	case err == nil && there.Terminating:
		p.register.LeaveClaim(a.ID, p.o.Now())
		return nil, nil // it is about to: no good to the claim
	}
	return there, err
}

// prepare works out what to ask of EC2 for the claim, and makes sure that the launch templates for it exist.
func (p *Provider) prepare(ctx context.Context, claim *v1.NodeClaim) (*launch.Request, error) {
	class, err := p.classes.ready(ctx, claim.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	c, err := p.catalog.ForClass(ctx, class)
	if err != nil {
		return nil, err
	}
	return p.launcher.Prepare(ctx, class, claim, c.List.Ranked(claim))
}

// createCalls are the Create calls under way, by claim.
type createCalls struct {
	mu    sync.Mutex
	calls map[types.UID]*createCall
}

type createCall struct {
	done     chan struct{}
	instance *cloudprovider.Instance
	err      error
}

// join returns the call for the claim that is under way, or begins one.
func (f *createCalls) join(uid types.UID) (of *createCall, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if have := f.calls[uid]; have != nil {
		return have, false
	}
	if f.calls == nil {
		f.calls = map[types.UID]*createCall{}
	}
	of = &createCall{done: make(chan struct{})}
	f.calls[uid] = of
	return of, true
}

func (f *createCalls) end(uid types.UID, of *createCall, instance *cloudprovider.Instance, err error) {
	if instance != nil {
		of.instance = instance.DeepCopy()
	}
	of.err = err
	f.mu.Lock()
	delete(f.calls, uid)
	f.mu.Unlock()
	close(of.done)
}
