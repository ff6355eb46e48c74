package cloud

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Launch is a machine that somebody asks for. Template, fleet and request have been merged into Request.
type Launch struct {
	Request         *ec2.RunInstancesInput
	Reservation     string // r-…; a new one if empty
	Fleet           string
	Template        string
	TemplateVersion int64
}

// place is a launch whose parts have been found.
type place struct {
	request  *ec2.RunInstancesInput
	info     *ec2types.InstanceTypeInfo
	image    *ec2types.Image
	subnet   *subnet
	zone     Zone
	groups   []string
	profile  string
	userData []byte
	market   Market
	group    *ec2types.PlacementGroup
	price    float64
}

const maxUserData = 16384

// Check says whether a launch is well-formed and everything that it names exists. Capacity does not count.
func (w *World) Check(l Launch) *wire.Error {
	defer w.enter()()
	_, err := w.resolve(l.Request)
	return err
}

// Launch makes one machine.
func (w *World) Launch(l Launch) (Instance, *wire.Error) {
	defer w.enter()()
	p, err := w.resolve(l.Request)
	if err != nil {
		return Instance{}, err
	}
	reserved, partition, err := w.admit(p)
	if err != nil {
		return Instance{}, err
	}
	i := w.build(l, p)
	i.Partition = partition
	if reserved != nil {
		i.CapacityReservation = *reserved.CapacityReservationId
		reserved.AvailableInstanceCount = aws.Int32(*reserved.AvailableInstanceCount - 1)
	}
	w.instances[i.ID] = i
	w.schedule(i.RunAt, i.ID)
	w.note(StateChanged, i.Launched, i)
	return w.copyOf(i), nil
}

// admit holds a launch against everything that can be used up.
func (w *World) admit(p *place) (*ec2types.CapacityReservation, int32, *wire.Error) {
	if err := w.checkQuotas(p.info, p.market); err != nil {
		return nil, 0, err
	}
	reserved, err := w.reserve(p)
	if err != nil {
		return nil, 0, err
	}
	if reserved == nil {
		if err := w.checkPool(poolID{string(p.info.InstanceType), p.zone.Name, p.market}); err != nil {
			return nil, 0, err
		}
	}
	partition, err := w.join(p)
	if err != nil {
		return nil, 0, err
	}
	single, blocks := addresses(p.request)
	if p.subnet.free() < single+prefixSize*blocks {
		return nil, 0, wire.Errorf("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in "+
			"subnet '%s' to satisfy the requested number of instances.", *p.subnet.SubnetId)
	}
	if blocks > 0 && len(p.subnet.blocks(blocks)) < blocks {
		return nil, 0, wire.Errorf("InsufficientCidrBlocks", "The specified subnet does not have enough free cidr "+
			"blocks to satisfy the request.")
	}
	return reserved, partition, nil
}

// resolve finds everything that a launch names. The lock is held.
func (w *World) resolve(r *ec2.RunInstancesInput) (*place, *wire.Error) {
	p := &place{request: r}
	for _, find := range []func(*place) *wire.Error{w.resolveType, w.resolveImage, w.resolveNetwork, w.resolveProfile,
		w.resolveUserData,
		w.resolveMarket, w.resolvePlacement, w.resolveDevices, w.resolveTags} {
		if err := find(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (w *World) resolveType(p *place) *wire.Error {
	if p.request.InstanceType == "" {
		return wire.Errorf("MissingParameter", "The request must contain the parameter InstanceType")
	}
	p.info = w.types[string(p.request.InstanceType)]
	if p.info == nil {
		return wire.Errorf("InvalidParameterValue", "Invalid value '%s' for InstanceType.", p.request.InstanceType)
	}
	return nil
}

func (w *World) resolveImage(p *place) *wire.Error {
	id := aws.ToString(p.request.ImageId)
	if id == "" {
		return wire.Errorf("MissingParameter", "The request must contain the parameter ImageId")
	}
	if !wellFormed(id, "ami") {
		return wire.Errorf("InvalidAMIID.Malformed", "Invalid id: \"%s\"", id)
	}
	p.image = w.images[id]
	if p.image == nil {
		return noSuchImage(id)
	}
	if p.image.State != ec2types.ImageStateAvailable {
		return wire.Errorf("InvalidAMIID.Unavailable", "The image ID '%s' is %s.", id, p.image.State)
	}
	if p.info.ProcessorInfo == nil || len(p.info.ProcessorInfo.SupportedArchitectures) == 0 {
		return nil
	}
	for _, a := range p.info.ProcessorInfo.SupportedArchitectures {
		if string(a) == string(p.image.Architecture) {
			return nil
		}
	}
	return wire.Errorf("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match "+
		"the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching "+
		"architectures, and try again.",
		p.info.ProcessorInfo.SupportedArchitectures[0], p.image.Architecture)
}

func (w *World) resolveNetwork(p *place) *wire.Error {
	r := p.request
	id := aws.ToString(r.SubnetId)
	groups := slices.Clone(r.SecurityGroupIds)
	if len(r.NetworkInterfaces) > 0 && len(groups) > 0 {
		return wire.Errorf("InvalidParameterCombination", "Network interfaces and an instance-level security groups "+
			"may not be specified on the same request")
	}
	for _, n := range r.NetworkInterfaces {
		if id == "" {
			id = aws.ToString(n.SubnetId)
		}
		groups = append(groups, n.Groups...)
	}
	if id == "" {
		return wire.Errorf("MissingInput", "No subnets found for the default VPC: the request must name a subnet.")
	}
	p.subnet = w.subnets[id]
	if p.subnet == nil {
		return noSuchSubnet(id)
	}
	p.zone, _ = w.zoneByName(*p.subnet.AvailabilityZone)
	if asked := askedZone(r); asked != "" && asked != p.zone.Name && asked != p.zone.ID {
		return wire.Errorf("InvalidParameterValue", "Invalid availability zone: [%s]. The subnet %s is in %s.", asked,
			id, p.zone.Name)
	}
	if !w.sold(string(p.info.InstanceType), p.zone.Name) {
		return wire.Errorf("Unsupported", "Your requested instance type (%s) is not supported in your requested "+
			"Availability Zone (%s).", p.info.InstanceType, p.zone.Name)
	}
	for _, g := range groups {
		if w.groups[g] == nil {
			return noSuchGroup(g)
		}
		if *w.groups[g].VpcId != *p.subnet.VpcId {
			return wire.Errorf("InvalidParameter", "Security group %s and subnet %s belong to different networks.", g,
				id)
		}
		if !slices.Contains(p.groups, g) {
			p.groups = append(p.groups, g)
		}
	}
	return checkInterfaces(p)
}

// askedZone is the zone that a launch asks for besides its subnet, by name or id.
func askedZone(r *ec2.RunInstancesInput) string {
	if r.Placement == nil {
		return ""
	}
	return cmp.Or(aws.ToString(r.Placement.AvailabilityZone), aws.ToString(r.Placement.AvailabilityZoneId))
}

func (w *World) resolveProfile(p *place) *wire.Error {
	spec := p.request.IamInstanceProfile
	if spec == nil {
		return nil
	}
	field := "name"
	p.profile = aws.ToString(spec.Name)
	if p.profile == "" {
		field, p.profile = "arn", aws.ToString(spec.Arn)
	}
	if w.cfg.Profiles != nil && !w.cfg.Profiles(p.profile) {
		return wire.Errorf("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.%s is invalid. "+
			"Invalid IAM Instance Profile %s", p.profile, field, strings.ToUpper(field[:1])+field[1:])
	}
	return nil
}

func (w *World) resolveUserData(p *place) *wire.Error {
	text := aws.ToString(p.request.UserData)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return wire.Errorf("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(data) > maxUserData {
		return wire.Errorf("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
	}
	p.userData = data
	return nil
}

func (w *World) resolveMarket(p *place) *wire.Error {
	p.market = OnDemand
	price, _ := w.OnDemandPrice(string(p.info.InstanceType))
	p.price = price
	options := p.request.InstanceMarketOptions
	spot := options != nil && options.MarketType == ec2types.MarketTypeSpot
	if !spot && len(tagsFor(p.request, ec2types.ResourceTypeSpotInstancesRequest)) > 0 {
		return wire.Errorf("InvalidParameterValue", "You cannot specify tags for Spot instances requests if there "+
			"are no Spot instances requests being created by the request.")
	}
	if spot {
		return w.resolveSpot(p, options.SpotOptions)
	}
	if options != nil && options.MarketType == ec2types.MarketTypeCapacityBlock {
		p.market = CapacityBlock
	}
	if options != nil && options.MarketType == ec2types.MarketTypeInterruptibleCapacityReservation {
		p.market = Interruptible
	}
	return nil
}

func (w *World) resolveSpot(p *place, options *ec2types.SpotMarketOptions) *wire.Error {
	price, sold := w.spotNow(string(p.info.InstanceType), p.zone.Name)
	if !sold || !sells(p.info, ec2types.UsageClassTypeSpot) {
		return wire.Errorf("Unsupported", "Your requested instance type (%s) is not supported in your requested "+
			"Availability Zone (%s).", p.info.InstanceType, p.zone.Name)
	}
	p.market, p.price = Spot, price
	if options == nil || options.MaxPrice == nil {
		return nil
	}
	if most, err := strconv.ParseFloat(*options.MaxPrice, 64); err != nil || most < price {
		return wire.Errorf("SpotMaxPriceTooLow", "Your Spot request price of %s is lower than the minimum required "+
			"Spot request fulfillment price of %g.", *options.MaxPrice, price)
	}
	return nil
}

func (w *World) resolvePlacement(p *place) *wire.Error {
	if p.request.Placement == nil {
		return nil
	}
	id, name := aws.ToString(p.request.Placement.GroupId), aws.ToString(p.request.Placement.GroupName)
	if id == "" && name == "" {
		return nil
	}
	for _, g := range w.placings {
		if *g.GroupId == id || name != "" && *g.GroupName == name {
			p.group = g
			return nil
		}
	}
	return wire.Errorf("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", id+name)
}

// resolveTags holds the tags of everything that the launch would make against EC2's rules.
func (w *World) resolveTags(p *place) *wire.Error {
	for _, spec := range p.request.TagSpecifications {
		if err := checkTags(tagsFor(p.request, spec.ResourceType)); err != nil {
			return err
		}
	}
	if o := p.request.MetadataOptions; o == nil || o.InstanceMetadataTags != ec2types.InstanceMetadataTagsStateEnabled {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(tagsFor(p.request, ec2types.ResourceTypeInstance))) {
		if strings.ContainsAny(key, "/ ") {
			return wire.Errorf("InvalidParameterValue", "'%s' is not a valid tag key. Tag keys must match pattern "+
				"([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index')", key)
		}
	}
	return nil
}

// addresses counts the single private addresses and the blocks of addresses that a launch takes.
func addresses(r *ec2.RunInstancesInput) (single, blocks int) {
	if len(r.NetworkInterfaces) == 0 {
		return 1, 0
	}
	for _, i := range r.NetworkInterfaces {
		if aws.ToString(i.InterfaceType) != "efa-only" {
			single += 1 + int(aws.ToInt32(i.SecondaryPrivateIpAddressCount))
			blocks += int(aws.ToInt32(i.Ipv4PrefixCount))
		}
	}
	return single, blocks
}

// prefixSize is the number of addresses of a /28, which is what EC2 delegates.
const prefixSize = 16

// tagsFor collects the tags that a launch puts on one kind of resource.
func tagsFor(r *ec2.RunInstancesInput, kind ec2types.ResourceType) map[string]string {
	tags := map[string]string{}
	for _, spec := range r.TagSpecifications {
		if spec.ResourceType == kind {
			maps.Copy(tags, TagMap(spec.Tags))
		}
	}
	return tags
}

// dnsName is the private name of a machine.
func (w *World) dnsName(i *Instance) string {
	host := "ip-" + strings.ReplaceAll(i.PrivateIP, ".", "-")
	if o := i.Request.PrivateDnsNameOptions; o != nil && o.HostnameType == ec2types.HostnameTypeResourceName {
		host = i.ID
	}
	if w.cfg.Region == "us-east-1" {
		return host + ".ec2.internal"
	}
	return fmt.Sprintf("%s.%s.compute.internal", host, w.cfg.Region)
}
