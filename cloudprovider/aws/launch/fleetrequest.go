package launch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// fleetRequest is one CreateFleet call and the claims that it is for.
type fleetRequest struct {
	*ownership.Launch
	spec     *launchSpec
	requests []*Request
	input    *ec2.CreateFleetInput
	// subnets are the subnets by zone, zones the zones by subnet.
	subnets map[string]subnetChoice
	zones   map[string]string
}

// newFleetRequest chooses a subnet in each zone, takes the claims into the launch and writes the call. Claims that turn
// out to be elsewhere are returned; if that is all of them there is no fleet request.
func (p *Launcher) newFleetRequest(ctx context.Context, g *launchGroup) (r *fleetRequest, elsewhere []*Request,
	err error) {
	spec := g.spec
	picks, err := p.subnets.choose(ctx, spec, int64(len(g.requests)))
	if err != nil {
		return nil, nil, err
	}
	if len(picks) == 0 {
		return nil, nil, noSubnet(spec)
	}
	r = &fleetRequest{spec: spec, subnets: picks, zones: map[string]string{}}
	for zone, pick := range picks {
		r.zones[pick.subnet] = zone
	}
	var unserved []ownership.Claim
	for _, q := range g.requests {
		if !q.isAbandoned() {
			unserved = append(unserved, q.owner())
		}
	}
	r.Launch = p.o.Register.BeginLaunch(p.o.ClusterName, unserved)
	for _, q := range g.requests {
		if r.Has(q.claim.UID) {
			r.requests = append(r.requests, q)
		} else {
			elsewhere = append(elsewhere, q)
		}
	}
	if r.Launch == nil {
		p.subnets.done(spec, picks, int64(len(g.requests)), nil)
		return nil, elsewhere, nil
	}
	r.Repeat = func(ctx context.Context) { p.repeatNow(ctx, r) }
	r.input = &ec2.CreateFleetInput{
		Type:                        ec2types.FleetTypeInstant,
		ClientToken:                 new(r.Token),
		LaunchTemplateConfigs:       spec.configs(picks),
		TargetCapacitySpecification: spec.target(len(r.requests)),
		TagSpecifications:           r.tagSpecs(p.o.Identity),
	}
	if spec.Context != "" {
		r.input.Context = new(spec.Context)
	}
	spec.strategy(r.input)
	return r, elsewhere, nil
}

func (s *launchSpec) target(count int) *ec2types.TargetCapacitySpecificationRequest {
	out := &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: new(int32(count)),
		DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand}
	switch {
	case s.Block:
		out.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeCapacityBlock
	case s.Interruptible:
		out.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeReservedCapacity
	case s.CapacityType == v1.CapacityTypeSpot:
		out.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeSpot
	}
	return out
}

// strategy tells EC2 which of the options to prefer: spot where it is cheap and likely to last, the rest by price, and
// both by our order if the prices are the user's own.
func (s *launchSpec) strategy(in *ec2.CreateFleetInput) {
	switch {
	case s.Block:
	case s.Interruptible:
		in.ReservedCapacityOptions = &ec2types.ReservedCapacityOptionsRequest{
			ReservationTypes: []ec2types.FleetReservationType{
				ec2types.FleetReservationTypeInterruptibleCapacityReservation,
			}}
	case s.CapacityType == v1.CapacityTypeSpot:
		in.SpotOptions = &ec2types.SpotOptionsRequest{
			AllocationStrategy: ec2types.SpotAllocationStrategyPriceCapacityOptimized,
		}
		if s.Prioritized {
			in.SpotOptions.AllocationStrategy = ec2types.SpotAllocationStrategyCapacityOptimizedPrioritized
		}
	default:
		in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{
			AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyLowestPrice,
		}
		if s.Prioritized {
			in.OnDemandOptions.AllocationStrategy = ec2types.FleetOnDemandAllocationStrategyPrioritized
		}
	}
}

// configs are the spec's options in the zones that have a subnet, by launch template.
func (s *launchSpec) configs(picks map[string]subnetChoice) []ec2types.FleetLaunchTemplateConfigRequest {
	var out []ec2types.FleetLaunchTemplateConfigRequest
	last := ""
	for _, o := range s.Lines {
		at, ok := picks[o.Zone]
		if !ok {
			continue
		}
		if o.Template != last || len(out) == 0 {
			last = o.Template
			out = append(out, ec2types.FleetLaunchTemplateConfigRequest{
				LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
					LaunchTemplateName: new(o.Template), Version: new("$Latest")},
			})
		}
		c := &out[len(out)-1]
		c.Overrides = append(c.Overrides, ec2types.FleetLaunchTemplateOverridesRequest{
			InstanceType: ec2types.InstanceType(o.Type), SubnetId: new(at.subnet), AvailabilityZone: new(o.Zone),
			Priority: new(o.Price)})
	}
	return out
}

// claimRoom is for how many claims instances of the spec can be marked, beside the user's tags, the launch's name and
// the cluster's identity.
func (s *launchSpec) claimRoom() int { return ownership.RoomForClaims(len(s.Tags) + 2) }

// carriesIdentity tells whether the instances carry the cluster's identity: the user's tags may leave no room for it.
func (s *launchSpec) carriesIdentity(identity string) bool {
	return identity != "" && len(s.Tags)+ownership.LaterTags < ownership.MostTags
}

// tagSpecs are the tags of what the call launches. A claim that is alone is named at once. identity is the cluster's.
func (r *fleetRequest) tagSpecs(identity string) []ec2types.TagSpecification {
	instance := maps.Clone(r.spec.Tags)
	if r.spec.carriesIdentity(identity) {
		instance[ownership.IdentityTagKey] = identity
	}
	if r.spec.claimRoom() > 0 {
		instance[ownership.LaunchTagKey] = r.Token
		maps.Copy(instance, ownership.ClaimTags(r.Claims))
	}
	if len(r.requests) == 1 {
		instance[awsv1.NodeClaimTagKey] = r.requests[0].claim.Name
	}
	plain := template.TagList(r.spec.Tags)
	return []ec2types.TagSpecification{
		{ResourceType: ec2types.ResourceTypeFleet, Tags: plain},
		{ResourceType: ec2types.ResourceTypeInstance, Tags: template.TagList(instance)},
		{ResourceType: ec2types.ResourceTypeVolume, Tags: plain},
	}
}

// fleetInstance is one instance of a fleet's answer.
type fleetInstance struct{ id, kind, zone, subnet string }

// owner is the claim that the launch request is for.
func (q *Request) owner() ownership.Claim {
	return ownership.Claim{Name: q.claim.Name, UID: q.claim.UID}
}

func (r *fleetRequest) fleetInstances(out *ec2.CreateFleetOutput) []fleetInstance {
	var list []fleetInstance
	for _, group := range out.Instances {
		subnet := aws.ToString(group.SubnetId)
		if o := group.LaunchTemplateAndOverrides; subnet == "" && o != nil && o.Overrides != nil {
			subnet = aws.ToString(o.Overrides.SubnetId)
		}
		zone := r.zones[subnet]
		if zone == "" {
			zone = aws.ToString(group.AvailabilityZone)
		}
		for _, id := range group.InstanceIds {
			list = append(list, fleetInstance{id: id, kind: string(group.InstanceType), zone: zone, subnet: subnet})
		}
	}
	slices.SortFunc(list, func(a, b fleetInstance) int { return cmp.Compare(a.id, b.id) })
	return list
}

// instanceFor describes the instance that a claim got.
func (p *Launcher) instanceFor(q *Request, l fleetInstance, now time.Time) *cloudprovider.Instance {
	c, v := q.candidate(l.kind, l.zone)
	if c == nil {
		// EC2 has launched what was not asked for. It is the claim's all the same: the core sees what it is.
		return &cloudprovider.Instance{ProviderID: ownership.ProviderID(l.zone, l.id), ClaimName: q.claim.Name,
			ClaimUID: string(q.claim.UID), Type: l.kind, CreatedAt: now}
	}
	out := c.Instance(q.claim)
	out.ProviderID, out.ImageID, out.CreatedAt = ownership.ProviderID(l.zone, l.id), v.ImageID, now
	if v.Partition != "" {
		out.Labels[awsv1.PlacementGroupPartitionLabelKey] = v.Partition
	}
	out.Labels[awsv1.NodeClassLabelKey] = q.spec.Class
	out.Annotations = maps.Clone(q.hashAnnotations)
	if q.spec.carriesIdentity(p.o.Identity) {
		out.Annotations[ownership.IdentityTaggedAnnotationKey] = "true"
	}
	return out
}

func noSubnet(s *launchSpec) error {
	out := &cloudprovider.NoCapacityError{
		Exhausted: s.refs(anyOption),
		Message: fmt.Sprintf("no subnet of EC2NodeClass %s has room in %s; fix: let spec.subnetSelectorTerms select "+
			"one that has, or free addresses",
			s.Class, strings.Join(s.zones(), ", ")),
	}
	for i := range out.Exhausted {
		out.Exhausted[i].Why = fmt.Sprintf("no subnet of EC2NodeClass %s has room; let spec.subnetSelectorTerms "+
			"select one that has, or free addresses", s.Class)
	}
	return out
}
