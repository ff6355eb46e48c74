package ec2

import (
	"cmp"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2/query"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// pool is an override with what is known of the place that it would launch into.
type pool struct {
	override ec2types.FleetLaunchTemplateOverridesRequest
	template templateRef
	base     *sdk.RunInstancesInput // before the market is known
	index    int                    // as given
	weight   float64                // capacity units that one instance counts for
	kind     string
	zone     string // empty if unknown

	price    float64 // of a unit
	free     int
	reserved bool // an open reservation with room matches
}

// priority is the override's; one that has none comes last.
func (p *pool) priority() float64 {
	if p.override.Priority == nil {
		return math.MaxFloat64
	}
	return *p.override.Priority
}

// buy buys units of capacity in one market.
func (f *fleet) buy(market cloud.Market, units float64, r rules) {
	pools := f.order(market, units, r)
	var made []bought
	got := 0.0
	if market == cloud.Spot && r.strategy == string(ec2types.SpotAllocationStrategyDiversified) {
		made, got = f.buyEvenly(pools, market, units, r)
	} else {
		made, got = f.buyInOrder(pools, market, units, r)
	}
	if got < r.least {
		for _, b := range made {
			f.s.world.Discard(b.ids)
		}
		return
	}
	for _, b := range made {
		f.report(b, market)
	}
}

// bought is what was got from one pool.
type bought struct {
	pool   *pool
	ids    []string
	subnet string
	zone   string
}

// buyInOrder takes all it can from one pool before it goes to the next.
func (f *fleet) buyInOrder(pools []*pool, market cloud.Market, units float64, r rules) ([]bought, float64) {
	var made []bought
	got := 0.0
	for _, p := range pools {
		if got >= units {
			break
		}
		if len(made) > 0 && (r.oneType && p.kind != made[0].pool.kind || r.oneZone && p.zone != made[0].pool.zone) {
			continue
		}
		b := bought{pool: p}
		for got < units && f.launch(&b, market, r) {
			got += p.weight
		}
		if len(b.ids) > 0 {
			made = append(made, b)
		}
	}
	return made, got
}

// buyEvenly goes around the pools, one instance each, until all is there or nobody has more.
func (f *fleet) buyEvenly(pools []*pool, market cloud.Market, units float64, r rules) ([]bought, float64) {
	got := 0.0
	all := make([]bought, len(pools))
	open := make([]int, len(pools))
	for i, p := range pools {
		all[i].pool, open[i] = p, i
	}
	for got < units && len(open) > 0 {
		open = slices.DeleteFunc(open, func(i int) bool {
			if got >= units {
				return false
			}
			if !f.launch(&all[i], market, r) {
				return true
			}
			got += all[i].pool.weight
			return false
		})
	}
	return slices.DeleteFunc(all, func(b bought) bool { return len(b.ids) == 0 }), got
}

// launch makes one instance of a pool. A pool that can't is noted with the reason.
func (f *fleet) launch(b *bought, market cloud.Market, r rules) bool {
	i, err := f.s.world.Launch(cloud.Launch{
		Request: forMarket(b.pool, market, r), Fleet: f.id, Template: b.pool.template.id,
		TemplateVersion: b.pool.template.version.Number,
	})
	if err != nil {
		f.refuse(b.pool, market, err)
		return false
	}
	b.ids = append(b.ids, i.ID)
	b.subnet, b.zone = i.Subnet, i.Zone
	return true
}

// forMarket is the launch of a pool in a market.
func forMarket(p *pool, market cloud.Market, r rules) *sdk.RunInstancesInput {
	request := *p.base
	switch market {
	case cloud.Spot:
		request.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot}
		if p.override.MaxPrice != nil {
			request.InstanceMarketOptions.SpotOptions = &ec2types.SpotMarketOptions{MaxPrice: p.override.MaxPrice}
		}
	case cloud.CapacityBlock:
		request.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{
			MarketType: ec2types.MarketTypeCapacityBlock,
		}
	case cloud.Interruptible:
		request.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{
			MarketType: ec2types.MarketTypeInterruptibleCapacityReservation,
		}
	default:
		request.InstanceMarketOptions = nil
		if r.reservationsOnly && request.CapacityReservationSpecification == nil {
			request.CapacityReservationSpecification = &ec2types.CapacityReservationSpecification{
				CapacityReservationPreference: ec2types.CapacityReservationPreferenceCapacityReservationsOnly,
			}
		}
	}
	return &request
}

// order sorts the pools as the allocation strategy wants them tried.
func (f *fleet) order(market cloud.Market, units float64, r rules) []*pool {
	pools := slices.Clone(f.pools)
	for _, p := range pools {
		p.free = f.s.world.Free(p.kind, p.zone, market)
		p.price, p.reserved = f.s.unitPrice(p, market), r.reservationsBefore &&
			f.s.world.HasOpenReservation(p.kind, p.zone)
	}
	slices.SortStableFunc(pools, func(a, b *pool) int {
		return cmp.Or(-compareBool(a.reserved, b.reserved), byStrategy(a, b, r.strategy, units),
			cmp.Compare(a.index, b.index))
	})
	return pools
}

func byStrategy(a, b *pool, strategy string, units float64) int {
	price := cmp.Compare(a.price, b.price)
	room := cmp.Compare(b.free, a.free)
	switch ec2types.SpotAllocationStrategy(strategy) {
	case ec2types.SpotAllocationStrategyCapacityOptimized:
		return room
	case ec2types.SpotAllocationStrategyCapacityOptimizedPrioritized:
		return cmp.Or(-compareBool(a.free > 0, b.free > 0), cmp.Compare(a.priority(), b.priority()), room)
	case ec2types.SpotAllocationStrategyPriceCapacityOptimized:
		// Of the pools that have enough the cheapest is best; of the others the one with most.
		return cmp.Or(-compareBool(a.enough(units), b.enough(units)), -compareBool(a.free > 0, b.free > 0), price)
	case "prioritized":
		return cmp.Or(cmp.Compare(a.priority(), b.priority()), price)
	}
	return price
}

// enough says whether a pool can hold this many units more.
func (p *pool) enough(units float64) bool { return float64(p.free)*p.weight >= units }

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// unitPrice is what a unit of capacity of a pool costs; a pool without a price is the dearest.
func (s *Service) unitPrice(p *pool, market cloud.Market) float64 {
	price, ok := s.world.OnDemandPrice(p.kind)
	if market == cloud.Spot {
		price, ok = s.world.SpotPriceNow(p.kind, p.zone)
	}
	if !ok {
		return math.MaxFloat64
	}
	return price / p.weight
}

// refuse notes why a pool gave nothing, or nothing more.
func (f *fleet) refuse(p *pool, market cloud.Market, err *wire.Error) {
	code := err.Code
	if code == "Unsupported" {
		code = "InvalidFleetConfiguration" // a fleet's word for a type that a zone does not sell
	}
	f.errors = append(f.errors, ec2types.CreateFleetError{
		ErrorCode: aws.String(code), ErrorMessage: aws.String(err.Message), Lifecycle: lifecycleOf(market),
		LaunchTemplateAndOverrides: p.response(),
	})
}

// report adds what was bought from a pool to the answer.
func (f *fleet) report(b bought, market cloud.Market) {
	f.instances = append(f.instances, ec2types.CreateFleetInstance{
		InstanceIds: b.ids, InstanceType: ec2types.InstanceType(b.pool.kind), Lifecycle: lifecycleOf(market),
		SubnetId:         aws.String(b.subnet),
		AvailabilityZone: aws.String(b.zone), LaunchTemplateAndOverrides: b.pool.response(),
	})
}

func lifecycleOf(market cloud.Market) ec2types.InstanceLifecycle {
	if market == cloud.Spot {
		return ec2types.InstanceLifecycleSpot
	}
	return ec2types.InstanceLifecycleOnDemand
}

// response repeats a pool as it was asked for.
func (p *pool) response() *ec2types.LaunchTemplateAndOverridesResponse {
	overrides := &ec2types.FleetLaunchTemplateOverrides{}
	query.Fill(overrides, &p.override)
	if overrides.InstanceType == "" {
		overrides.InstanceType = ec2types.InstanceType(p.kind)
	}
	return &ec2types.LaunchTemplateAndOverridesResponse{
		LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecification{
			LaunchTemplateId: aws.String(p.template.id), Version: aws.String(formatVersion(p.template.version.Number)),
		},
		Overrides: overrides,
	}
}
