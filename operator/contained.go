package operator

import (
	"context"
	"fmt"
	"runtime/debug"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// contained is a provider whose panics become errors of the call. It is asked by many parts of the controller, and all
// of them tell the same: that the provider failed, and not Tenon.
type contained struct {
	cloudprovider.Provider
	failed func(problem, stack string)
}

func (c contained) call(method string, do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("provider %s panicked in %s, which is a mistake in the provider: %.200s", c.Name(), method,
				fmt.Sprint(r))
			c.failed(err.Error(), string(debug.Stack()))
		}
	}()
	return do()
}

func (c contained) InstanceTypes(ctx context.Context, pool *v1.NodePool) (types []*cloudprovider.InstanceType,
	err error) {
	err = c.call("InstanceTypes", func() (err error) { types, err = c.Provider.InstanceTypes(ctx, pool); return err })
	return types, err
}

func (c contained) Create(ctx context.Context, claim *v1.NodeClaim) (made *cloudprovider.Instance, err error) {
	err = c.call("Create", func() (err error) { made, err = c.Provider.Create(ctx, claim); return err })
	return made, err
}

func (c contained) Get(ctx context.Context, providerID string) (there *cloudprovider.Instance, err error) {
	err = c.call("Get", func() (err error) { there, err = c.Provider.Get(ctx, providerID); return err })
	return there, err
}

func (c contained) List(ctx context.Context) (all []*cloudprovider.Instance, err error) {
	err = c.call("List", func() (err error) { all, err = c.Provider.List(ctx); return err })
	return all, err
}

func (c contained) Delete(ctx context.Context, providerID string, owner cloudprovider.Owner) error {
	return c.call("Delete", func() error { return c.Provider.Delete(ctx, providerID, owner) })
}

func (c contained) Drifted(ctx context.Context, claim *v1.NodeClaim) (reason cloudprovider.DriftReason, err error) {
	err = c.call("Drifted", func() (err error) { reason, err = c.Provider.Drifted(ctx, claim); return err })
	return reason, err
}
