package aws

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// launchLimit bounds one launch, with all its tries.
	launchLimit = time.Minute
	// mostTurns bounds how often a launch is asked for again with other subnets or new launch templates.
	mostTurns = 4
)

type answer = batch.Answer[*cloudprovider.Instance]

// sale is one CreateFleet call and the claims that it is for.
type sale struct {
	token  string
	order  *order
	buyers []*buyer
	input  *ec2.CreateFleetInput
	// picks are the subnets by zone, zones the zones by subnet.
	picks map[string]pick
	zones map[string]string

	// mu lets one caller at a time find out what became of a call whose answer was lost.
	mu sync.Mutex
}

// sellTogether launches instances for claims with the same order, in one call if all goes well. Whoever gets none learns
// at once which offerings were refused.
func (p *Provider) sellTogether(ctx context.Context, order string, buyers []*buyer) []answer {
	defer p.pace.called(order)
	answers := make(map[*buyer]answer, len(buyers))
	// Who gets an instance if there are too few does not depend on chance.
	sorted := slices.SortedFunc(slices.Values(buyers), func(a, b *buyer) int { return strings.Compare(string(a.claim.UID), string(b.claim.UID)) })
	// A user with very many tags leaves little room for ours, the launch's name among them.
	for some := range slices.Chunk(sorted, roomForMarks(len(buyers[0].order.Tags)+1)) {
		p.sellAll(ctx, some, answers)
	}
	out := make([]answer, 0, len(buyers))
	for _, b := range buyers {
		out = append(out, answers[b])
	}
	return out
}

// sellAll launches instances for as many of the claims as there is capacity for.
func (p *Provider) sellAll(ctx context.Context, left []*buyer, answers map[*buyer]answer) {
	var refused refusals
	for turn := 1; len(left) > 0; turn++ {
		given, again, err := p.sell(ctx, left, &refused)
		for i, h := range given {
			answers[left[i]] = answer{Value: copyInstance(h.answer)}
		}
		left = left[len(given):]
		if again && turn < mostTurns {
			left = p.stillWanting(ctx, left, answers)
			continue
		}
		if err == nil {
			err = refused.err()
		}
		for _, b := range left {
			answers[b] = answer{Err: err}
		}
		return
	}
}

// stillWanting prepares the next turn: who has turned out to have an instance is answered.
func (p *Provider) stillWanting(ctx context.Context, left []*buyer, answers map[*buyer]answer) []*buyer {
	var out []*buyer
	for _, b := range left {
		if h := p.register.recall(b.claim); h != nil {
			there, err := p.present(ctx, h)
			answers[b] = answer{Value: there, Err: err}
			continue
		}
		b.try = p.register.triesOf(b.claim.UID)
		out = append(out, b)
	}
	return out
}

// sell makes one call. It returns what the first of the buyers got. again says that the others may get something if they
// are asked for once more, because what stood in the way has been seen to.
func (p *Provider) sell(ctx context.Context, buyers []*buyer, refused *refusals) (given []*holding, again bool, err error) {
	s, err := p.newSale(ctx, buyers)
	if err != nil {
		return nil, false, err
	}
	p.register.takeOff(s.token)
	out, err := p.ec2.CreateFleet(ctx, s.input)
	if err != nil {
		p.subnets.done(s.order, s.picks, int64(len(buyers)), nil)
		again, err = p.failed(ctx, s, err)
		return nil, again, err
	}
	given, went := p.handOut(s, out)
	p.subnets.done(s.order, s.picks, int64(len(buyers)), went)
	more := p.learn(ctx, s, out.Errors, refused)
	return given, more && len(given) < len(buyers), nil
}

// failed settles what the error of a whole call means for the claims and puts it into words. It reports whether to try
// again, because what stood in the way has been seen to.
func (p *Provider) failed(ctx context.Context, s *sale, err error) (again bool, told error) {
	doing := fmt.Sprintf("launching instances for NodePool %s (%d at once)", s.order.Pool, len(s.buyers))
	if fault.Lost(err) {
		p.register.lose(s)
		return false, fault.Explain(doing, err)
	}
	p.register.land(s.token, nil, s.buyers)
	switch code := fault.Code(err); {
	case isTemplateGone(code):
		again = p.renewTemplates(ctx, s) == nil
	case isSubnetGone(code):
		again = p.avoidNamed(s, err)
	case code == "IdempotentParameterMismatch":
		// A process before this one has asked for the same claims with other words. Its instances are there, or come to be
		// seen in a moment.
		again = p.looked(ctx)
	}
	if none := noCapacity(s, err); none != nil {
		return again, none
	}
	return again, p.classFault(ctx, s.order.class, fault.Explain(doing, err))
}

// avoidNamed leaves out the subnet that the error names, and reports whether it names one.
func (p *Provider) avoidNamed(s *sale, err error) bool {
	for subnet := range s.zones {
		if strings.Contains(err.Error(), subnet) {
			p.subnets.avoid(subnet)
			return true
		}
	}
	return false
}

// newSale chooses a subnet in each zone and writes the call.
func (p *Provider) newSale(ctx context.Context, buyers []*buyer) (*sale, error) {
	o := buyers[0].order
	picks, err := p.subnets.choose(ctx, o, int64(len(buyers)))
	if err != nil {
		return nil, err
	}
	s := &sale{token: launchToken(p.name, buyers), order: o, buyers: buyers, picks: picks, zones: map[string]string{}}
	for zone, p := range picks {
		s.zones[p.subnet] = zone
	}
	if len(picks) == 0 {
		return nil, noSubnet(o)
	}
	s.input = &ec2.CreateFleetInput{
		Type:                        ec2types.FleetTypeInstant,
		ClientToken:                 new(s.token),
		LaunchTemplateConfigs:       o.configs(picks),
		TargetCapacitySpecification: o.target(len(buyers)),
		TagSpecifications:           s.tagged(),
	}
	if o.Context != "" {
		s.input.Context = new(o.Context)
	}
	o.strategy(s.input)
	return s, nil
}

func (o *order) target(count int) *ec2types.TargetCapacitySpecificationRequest {
	out := &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: new(int32(count)), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand}
	switch {
	case o.Block:
		out.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeCapacityBlock
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

// tagged are the tags of what the call launches. A claim that is alone is named at once.
func (s *sale) tagged() []ec2types.TagSpecification {
	instance := maps.Clone(s.order.Tags)
	instance[LaunchTagKey] = s.token
	maps.Copy(instance, marks(uidsOf(s.buyers)))
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

// handOut gives the instances of the answer to the first of the buyers, in order, and notes it before anybody else can
// see the instances. went counts them by subnet.
func (p *Provider) handOut(s *sale, out *ec2.CreateFleetOutput) (given []*holding, went map[string]int64) {
	list := s.launched(out)
	now, went := p.now(), map[string]int64{}
	for i, l := range list[:min(len(list), len(s.buyers))] {
		b := s.buyers[i]
		went[l.subnet]++
		given = append(given, &holding{
			owner: owner{claim: b.claim.Name, uid: b.claim.UID}, id: l.id, since: now, named: len(s.buyers) == 1,
			answer: p.bought(b, l, now),
		})
	}
	p.register.land(s.token, given, s.buyers[len(given):])
	for _, h := range given {
		if !h.named {
			p.names.add(h.id, h.claim)
		}
	}
	return given, went
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
	out.Annotations = stamps(b.order.class)
	return out
}

// ask repeats a call whose answer was lost. EC2 knows it by its token: it answers as it did the first time, or does now
// what it did not do then.
func (p *Provider) ask(ctx context.Context, s *sale) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.buyers, func(b *buyer) bool { return p.register.missing(b.claim.UID) == s }) {
		return nil // somebody else has found out
	}
	p.register.takeOff(s.token)
	out, err := p.ec2.CreateFleet(ctx, s.input)
	switch {
	case err == nil:
		_, went := p.handOut(s, out)
		p.subnets.done(s.order, nil, 0, went)
		return nil
	case fault.Lost(err):
		p.register.lose(s)
		return fault.Explain("asking again for a launch whose answer was lost", err)
	case fault.IsThrottled(err) || fault.IsUnauthorized(err):
		p.register.lose(s) // this says nothing about the first time
		return fault.Explain("asking again for a launch whose answer was lost", err)
	}
	// EC2 refuses it now. Should it have launched something then, the tags tell.
	p.register.land(s.token, nil, s.buyers)
	_, looked := p.survey(ctx)
	return looked
}

func noSubnet(o *order) error {
	return &cloudprovider.NoCapacityError{
		Exhausted: o.refs(everything),
		Message: fmt.Sprintf("no subnet of EC2NodeClass %s has room in %s; fix: let spec.subnetSelectorTerms select one that has, or free addresses",
			o.Class, strings.Join(o.zones(), ", ")),
	}
}
