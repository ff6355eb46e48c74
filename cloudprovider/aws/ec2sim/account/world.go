package account

import (
	"fmt"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/iam"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/pricing"
)

// makeWorld makes IAM, which the world asks, the prices, and the world. A type that an account is given beyond the
// catalog has no price there, so it is not sold.
func (a *Account) makeWorld(o Options) error {
	a.IAM = iam.New(iam.Options{Clock: o.Clock, Account: o.Account, Propagation: o.Propagation})
	prices, err := catalog.Prices(o.Region)
	if err != nil {
		return fmt.Errorf("reading the price list: %w", err)
	}
	a.Prices = pricing.NewBook(prices)
	types, zones, err := catalog.Region(o.Region)
	if err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	if o.Types != nil {
		types = o.Types
	}
	a.World = cloud.New(cloud.Config{
		Clock: o.Clock, Region: o.Region, Account: o.Account, Types: types, TypeZones: zones, Prices: a.Prices,
		Timing: o.Timing, Quotas: o.Quotas, Profiles: a.IAM.KnownToEC2, Seed: o.Seed,
	})
	return nil
}
