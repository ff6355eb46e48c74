package aws

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// sale is one CreateFleet call and the claims that it is for.
type sale struct {
	token  string
	order  *order
	buyers []*buyer
	input  *ec2.CreateFleetInput
	// picks are the subnets by zone, zones the zones by subnet.
	picks map[string]pick
	zones map[string]string

	// What follows is guarded by the register's lock.

	// landed is closed when the call that is under way has ended; nil if none is.
	landed chan struct{}
	// lostAt is when it was last asked for in vain, asked how often, failure what came of it, and askAt when to ask again.
	lostAt, askAt time.Time
	asked         int
	failure       error
}

// newSale chooses a subnet in each zone, takes the claims aboard and writes the call. Claims that turn out to be elsewhere
// are returned; if that is all of them there is no sale.
func (p *Provider) newSale(ctx context.Context, of *party) (s *sale, elsewhere []*buyer, err error) {
	o := of.order
	picks, err := p.subnets.choose(ctx, o, int64(len(of.buyers)))
	if err != nil {
		return nil, nil, err
	}
	if len(picks) == 0 {
		return nil, nil, noSubnet(o)
	}
	s = &sale{order: o, picks: picks, zones: map[string]string{}}
	for zone, p := range picks {
		s.zones[p.subnet] = zone
	}
	if elsewhere = p.register.board(s, p.name, of.buyers); len(s.buyers) == 0 {
		p.subnets.done(o, picks, int64(len(of.buyers)), nil)
		return nil, elsewhere, nil
	}
	s.input = &ec2.CreateFleetInput{
		Type:                        ec2types.FleetTypeInstant,
		ClientToken:                 new(s.token),
		LaunchTemplateConfigs:       o.configs(picks),
		TargetCapacitySpecification: o.target(len(s.buyers)),
		TagSpecifications:           s.tagged(p.identity),
	}
	if o.Context != "" {
		s.input.Context = new(o.Context)
	}
	o.strategy(s.input)
	return s, elsewhere, nil
}

func (o *order) target(count int) *ec2types.TargetCapacitySpecificationRequest {
	out := &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: new(int32(count)), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand}
	switch {
	case o.Block:
		out.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeCapacityBlock
	case o.Interruptible:
		out.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeReservedCapacity
	case o.CapacityType == v1.CapacityTypeSpot:
		out.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeSpot
	}
	return out
}

// strategy tells EC2 which of the lines to prefer: spot where it is cheap and likely to last, the rest by price, and
// both by our order if the prices are the user's own.
func (o *order) strategy(in *ec2.CreateFleetInput) {
	switch {
	case o.Block:
	case o.Interruptible:
		in.ReservedCapacityOptions = &ec2types.ReservedCapacityOptionsRequest{
			ReservationTypes: []ec2types.FleetReservationType{ec2types.FleetReservationTypeInterruptibleCapacityReservation}}
	case o.CapacityType == v1.CapacityTypeSpot:
		in.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: ec2types.SpotAllocationStrategyPriceCapacityOptimized}
		if o.Prioritized {
			in.SpotOptions.AllocationStrategy = ec2types.SpotAllocationStrategyCapacityOptimizedPrioritized
		}
	default:
		in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyLowestPrice}
		if o.Prioritized {
			in.OnDemandOptions.AllocationStrategy = ec2types.FleetOnDemandAllocationStrategyPrioritized
		}
	}
}

// configs are the order's lines in the zones that have a subnet, by launch template.
func (o *order) configs(picks map[string]pick) []ec2types.FleetLaunchTemplateConfigRequest {
	var out []ec2types.FleetLaunchTemplateConfigRequest
	last := ""
	for _, l := range o.Lines {
		at, ok := picks[l.Zone]
		if !ok {
			continue
		}
		if l.Template != last || len(out) == 0 {
			last = l.Template
			out = append(out, ec2types.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: new(l.Template), Version: new("$Latest")}})
		}
		c := &out[len(out)-1]
		c.Overrides = append(c.Overrides, ec2types.FleetLaunchTemplateOverridesRequest{
			InstanceType: ec2types.InstanceType(l.Type), SubnetId: new(at.subnet), AvailabilityZone: new(l.Zone), Priority: new(l.Price)})
	}
	return out
}

// room is for how many claims instances of the order can be marked, beside the user's tags, the launch's name and the cluster's
// identity.
func (o *order) room() int { return roomForMarks(len(o.Tags) + 2) }

// carries tells whether the instances carry the cluster's identity: the user's tags may leave no room for it.
func (o *order) carries(identity string) bool {
	return identity != "" && len(o.Tags)+laterTags < mostTags
}

// tagged are the tags of what the call launches. A claim that is alone is named at once. identity is the cluster's.
func (s *sale) tagged(identity string) []ec2types.TagSpecification {
	instance := maps.Clone(s.order.Tags)
	if s.order.carries(identity) {
		instance[IdentityTagKey] = identity
	}
	if s.order.room() > 0 {
		instance[LaunchTagKey] = s.token
		maps.Copy(instance, marks(uidsOf(s.buyers)))
	}
	if len(s.buyers) == 1 {
		instance[awsv1.NodeClaimTagKey] = s.buyers[0].claim.Name
	}
	plain := tagList(s.order.Tags)
	return []ec2types.TagSpecification{
		{ResourceType: ec2types.ResourceTypeFleet, Tags: plain},
		{ResourceType: ec2types.ResourceTypeInstance, Tags: tagList(instance)},
		{ResourceType: ec2types.ResourceTypeVolume, Tags: plain},
	}
}

// launched is one instance of a fleet's answer.
type launched struct{ id, kind, zone, subnet string }

func (s *sale) launched(out *ec2.CreateFleetOutput) []launched {
	var list []launched
	for _, group := range out.Instances {
		subnet := text(group.SubnetId)
		if o := group.LaunchTemplateAndOverrides; subnet == "" && o != nil && o.Overrides != nil {
			subnet = text(o.Overrides.SubnetId)
		}
		zone := s.zones[subnet]
		if zone == "" {
			zone = text(group.AvailabilityZone)
		}
		for _, id := range group.InstanceIds {
			list = append(list, launched{id: id, kind: string(group.InstanceType), zone: zone, subnet: subnet})
		}
	}
	slices.SortFunc(list, func(a, b launched) int { return cmp.Compare(a.id, b.id) })
	return list
}

// bought describes the instance that a claim got.
func (p *Provider) bought(b *buyer, l launched, now time.Time) *cloudprovider.Instance {
	c, m := b.candidate(l.kind, l.zone)
	if c == nil {
		// EC2 has launched what was not asked for. It is the claim's all the same: the core sees what it is.
		return &cloudprovider.Instance{ProviderID: providerID(l.zone, l.id), ClaimName: b.claim.Name, ClaimUID: string(b.claim.UID), Type: l.kind, CreatedAt: now}
	}
	out := c.Instance(b.claim)
	out.ProviderID, out.ImageID, out.CreatedAt = providerID(l.zone, l.id), m.ImageID, now
	if m.Partition != "" {
		out.Labels[awsv1.PlacementGroupPartitionLabelKey] = m.Partition
	}
	out.Labels[awsv1.NodeClassLabelKey] = b.order.Class
	out.Annotations = copyMap(b.stamps)
	if b.order.carries(p.identity) {
		out.Annotations[IdentityTaggedAnnotationKey] = "true"
	}
	return out
}

func noSubnet(o *order) error {
	out := &cloudprovider.NoCapacityError{
		Exhausted: o.refs(everything),
		Message: fmt.Sprintf("no subnet of EC2NodeClass %s has room in %s; fix: let spec.subnetSelectorTerms select one that has, or free addresses",
			o.Class, strings.Join(o.zones(), ", ")),
	}
	for i := range out.Exhausted {
		out.Exhausted[i].Why = fmt.Sprintf("no subnet of EC2NodeClass %s has room; let spec.subnetSelectorTerms select one that has, or free addresses", o.Class)
	}
	return out
}
