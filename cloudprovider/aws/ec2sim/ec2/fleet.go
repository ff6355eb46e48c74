package ec2

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2/query"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

const (
	maxFleetTemplates = 50
	maxFleetTarget    = 10000
)

// createFleet carries out a fleet of type instant: it buys what it can at once and reports for each pool that it tried
// in vain why it got nothing. That some or all capacity is missing is no error of the call.
func (s *Service) createFleet(r *request, in *sdk.CreateFleetInput) (*sdk.CreateFleetOutput, *wire.Error) {
	if err := checkFleet(in); err != nil {
		return nil, err
	}
	// EC2 answers a dry run before it looks for the launch templates.
	if err := dryRun(aws.ToBool(in.DryRun)); err != nil {
		return nil, err
	}
	return once(s, r, aws.ToString(in.ClientToken), func() (*sdk.CreateFleetOutput, *wire.Error) {
		pools, err := s.findPools(in)
		if err != nil {
			return nil, err
		}
		f := &fleet{s: s, in: in, pools: pools, id: s.world.NewFleetID(tagsOf(in.TagSpecifications,
			ec2types.ResourceTypeFleet))}
		f.fulfil()
		return f.output(), nil
	})
}

// checkFleet refuses a fleet that makes no sense.
func checkFleet(in *sdk.CreateFleetInput) *wire.Error {
	target := in.TargetCapacitySpecification
	switch {
	case in.Type != ec2types.FleetTypeInstant:
		return wire.Errorf("UnsupportedOperation", "The simulator carries out fleets of type instant only, not %q.",
			in.Type)
	case len(in.LaunchTemplateConfigs) == 0:
		return wire.Errorf("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
	case len(in.LaunchTemplateConfigs) > maxFleetTemplates:
		return wire.Errorf("InvalidParameterValue", "The number of launch template configurations is limited to %d.",
			maxFleetTemplates)
	case target == nil || target.TotalTargetCapacity == nil:
		return wire.Errorf("MissingParameter", "The request must contain the parameter TotalTargetCapacity")
	case *target.TotalTargetCapacity < 1:
		return wire.Errorf("InvalidTargetCapacitySpecification", "TotalTargetCapacity must be greater than 0.")
	case *target.TotalTargetCapacity > maxFleetTarget:
		return wire.Errorf("TargetCapacityLimitExceededException", "The total target capacity is limited to %d.",
			maxFleetTarget)
	case aws.ToInt32(target.OnDemandTargetCapacity)+
		aws.ToInt32(target.SpotTargetCapacity) > *target.TotalTargetCapacity:
		return wire.Errorf("InvalidTargetCapacitySpecification", "The On-Demand and Spot target capacities exceed "+
			"TotalTargetCapacity.")
	}
	for _, spec := range in.TagSpecifications {
		if spec.ResourceType != ec2types.ResourceTypeFleet && spec.ResourceType != ec2types.ResourceTypeInstance &&
			spec.ResourceType != ec2types.ResourceTypeVolume {
			return wire.Errorf("InvalidTagSpecification", "'%s' is not a valid taggable resource type for this "+
				"operation.", spec.ResourceType)
		}
	}
	return nil
}

// findPools makes a pool of each override, or of a template without any.
func (s *Service) findPools(in *sdk.CreateFleetInput) ([]*pool, *wire.Error) {
	var pools []*pool
	for _, config := range in.LaunchTemplateConfigs {
		spec := config.LaunchTemplateSpecification
		if spec == nil {
			return nil, wire.Errorf("MissingParameter", "The request must contain the parameter "+
				"LaunchTemplateSpecification")
		}
		if aws.ToString(spec.Version) == "" {
			return nil, wire.Errorf("MissingParameter", "The request must contain the parameter Version of the "+
				"launch template specification")
		}
		ref, err := s.findTemplate(spec.LaunchTemplateId, spec.LaunchTemplateName, spec.Version)
		if err != nil {
			return nil, err
		}
		overrides := config.Overrides
		if len(overrides) == 0 {
			overrides = []ec2types.FleetLaunchTemplateOverridesRequest{{}}
		}
		for _, o := range overrides {
			if o.InstanceRequirements != nil {
				return nil, wire.Errorf("UnsupportedOperation", "The simulator does not choose instance types by "+
					"InstanceRequirements: name them in the overrides.")
			}
			pools = append(pools, s.newPool(in, ref, o, len(pools)))
		}
	}
	return pools, nil
}

// newPool merges an override with its template and the fleet's tags.
func (s *Service) newPool(in *sdk.CreateFleetInput, ref templateRef, o ec2types.FleetLaunchTemplateOverridesRequest,
	index int) *pool {
	over := &sdk.RunInstancesInput{}
	query.Fill(over, &o)
	if o.AvailabilityZone != nil || o.AvailabilityZoneId != nil {
		if over.Placement == nil {
			over.Placement = &ec2types.Placement{}
		}
		over.Placement.AvailabilityZone, over.Placement.AvailabilityZoneId = o.AvailabilityZone, o.AvailabilityZoneId
	}
	for _, spec := range in.TagSpecifications {
		if spec.ResourceType != ec2types.ResourceTypeFleet {
			over.TagSpecifications = append(over.TagSpecifications, spec)
		}
	}
	p := &pool{override: o, template: ref, base: merge(over, ref.version.Data), index: index, weight: 1}
	if w := aws.ToFloat64(o.WeightedCapacity); w > 0 {
		p.weight = w
	}
	p.kind, p.zone = string(p.base.InstanceType), s.zoneOf(p.base)
	return p
}

// zoneOf is the zone that a launch goes to, if that can be said before it is tried.
func (s *Service) zoneOf(r *sdk.RunInstancesInput) string {
	id := aws.ToString(r.SubnetId)
	for _, n := range r.NetworkInterfaces {
		if id == "" {
			id = aws.ToString(n.SubnetId)
		}
	}
	return s.world.ZoneOfSubnet(id)
}

// fleet is a fleet while it is carried out.
type fleet struct {
	s     *Service
	in    *sdk.CreateFleetInput
	id    string
	pools []*pool

	instances []ec2types.CreateFleetInstance
	errors    []ec2types.CreateFleetError
}

// fulfil splits the target into its markets and buys each.
func (f *fleet) fulfil() {
	target := f.in.TargetCapacitySpecification
	onDemand, spot := float64(aws.ToInt32(target.OnDemandTargetCapacity)),
		float64(aws.ToInt32(target.SpotTargetCapacity))
	rest := float64(*target.TotalTargetCapacity) - onDemand - spot
	market := cloud.OnDemand
	switch target.DefaultTargetCapacityType {
	case ec2types.DefaultTargetCapacityTypeSpot:
		spot += rest
	case ec2types.DefaultTargetCapacityTypeCapacityBlock:
		market, onDemand = cloud.CapacityBlock, onDemand+rest
	case ec2types.DefaultTargetCapacityTypeReservedCapacity:
		onDemand += rest
		if o := f.in.ReservedCapacityOptions; o != nil && slices.Contains(o.ReservationTypes,
			ec2types.FleetReservationTypeInterruptibleCapacityReservation) {
			market = cloud.Interruptible
		}
	default:
		onDemand += rest
	}
	if onDemand > 0 {
		f.buy(market, onDemand, f.onDemandRules())
	}
	if spot > 0 {
		f.buy(cloud.Spot, spot, f.spotRules())
	}
}

// rules are what the options of a market say.
type rules struct {
	strategy           string
	least              float64 // or nothing at all
	oneType, oneZone   bool
	reservationsBefore bool // pools with open reservations come first
	reservationsOnly   bool
}

func (f *fleet) onDemandRules() rules {
	r := rules{strategy: string(ec2types.FleetOnDemandAllocationStrategyLowestPrice)}
	r.reservationsOnly = f.in.TargetCapacitySpecification.DefaultTargetCapacityType ==
		ec2types.DefaultTargetCapacityTypeReservedCapacity
	o := f.in.OnDemandOptions
	if o == nil {
		return r
	}
	if o.AllocationStrategy != "" {
		r.strategy = string(o.AllocationStrategy)
	}
	r.least, r.oneType, r.oneZone = float64(aws.ToInt32(o.MinTargetCapacity)), aws.ToBool(o.SingleInstanceType),
		aws.ToBool(o.SingleAvailabilityZone)
	reserved := o.CapacityReservationOptions
	r.reservationsBefore = reserved != nil && reserved.UsageStrategy ==
		ec2types.FleetCapacityReservationUsageStrategyUseCapacityReservationsFirst
	return r
}

func (f *fleet) spotRules() rules {
	r := rules{strategy: string(ec2types.SpotAllocationStrategyLowestPrice)}
	o := f.in.SpotOptions
	if o == nil {
		return r
	}
	if o.AllocationStrategy != "" {
		r.strategy = string(o.AllocationStrategy)
	}
	r.least, r.oneType, r.oneZone = float64(aws.ToInt32(o.MinTargetCapacity)), aws.ToBool(o.SingleInstanceType),
		aws.ToBool(o.SingleAvailabilityZone)
	return r
}

func (f *fleet) output() *sdk.CreateFleetOutput {
	out := &sdk.CreateFleetOutput{FleetId: aws.String(f.id), Instances: f.instances, Errors: f.errors}
	if out.Instances == nil {
		out.Instances = []ec2types.CreateFleetInstance{}
	}
	if out.Errors == nil {
		out.Errors = []ec2types.CreateFleetError{}
	}
	return out
}
