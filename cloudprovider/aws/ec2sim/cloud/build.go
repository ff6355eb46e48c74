package cloud

import (
	"fmt"
	"maps"
	"net/netip"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// build makes the instance of a launch that was admitted: ids, addresses, volumes, tags.
func (w *World) build(l Launch, p *place) *Instance {
	now := w.clock.Now()
	i := &Instance{
		ID: w.newID("i"), Type: string(p.info.InstanceType), Architecture: string(p.image.Architecture),
		Zone: p.zone.Name, ZoneID: p.zone.ID, Subnet: *p.subnet.SubnetId, VPC: *p.subnet.VpcId, Image: *p.image.ImageId,
		Market: p.market, State: Pending, Launched: now, RunAt: now.Add(w.cfg.Timing.Boot),
		Groups: p.groups, Profile: p.profile, UserData: p.userData, Reservation: l.Reservation, Fleet: l.Fleet,
		Template: l.Template, TemplateVersion: l.TemplateVersion, HourlyPrice: p.price, Request: l.Request,
	}
	i.VisibleAt = now.Add(w.cfg.Timing.shows(i.ID))
	if i.Reservation == "" {
		i.Reservation = w.reservationID()
	}
	if p.group != nil {
		i.PlacementGroup = *p.group.GroupId
	}
	w.plug(i, p)
	i.PrivateIP = i.Primary().Addresses[0]
	i.PrivateDNS = w.dnsName(i)
	if givesPublicIP(p) {
		i.PublicIP = publicFor(i.PrivateIP)
	}
	w.attachVolumes(i, p)
	if i.Market == Spot {
		i.SpotRequest = w.newID("sir")
		maps.Copy(w.tags[i.SpotRequest], tagsFor(l.Request, ec2types.ResourceTypeSpotInstancesRequest))
	}
	w.tagInstance(i, l)
	return i
}

// NewReservationID makes the id for the instances of one call.
func (w *World) NewReservationID() string {
	defer w.enter()()
	return w.reservationID()
}

func (w *World) reservationID() string { return fmt.Sprintf("r-0%016x", w.ids.Uint64()) }

// NewFleetID makes the id of a fleet, which exists only to be tagged.
func (w *World) NewFleetID(tags map[string]string) string {
	defer w.enter()()
	bits, more := w.ids.Uint64(), w.ids.Uint64()
	id := fmt.Sprintf("fleet-%08x-%04x-%04x-%04x-%012x", uint32(bits), uint16(bits>>32), uint16(bits>>48),
		uint16(more), more>>16)
	w.tags[id] = maps.Clone(tags)
	return id
}

// plug gives an instance its network interfaces.
func (w *World) plug(i *Instance, p *place) {
	specs := p.request.NetworkInterfaces
	if len(specs) == 0 {
		specs = []ec2types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0)}}
	}
	for _, spec := range specs {
		n := Interface{
			ID: w.newID("eni"), AttachmentID: w.newID("eni-attach"), Type: aws.ToString(spec.InterfaceType),
			Description: aws.ToString(spec.Description),
			Device:      aws.ToInt32(spec.DeviceIndex), Card: aws.ToInt32(spec.NetworkCardIndex), Subnet: i.Subnet,
			Groups: spec.Groups,
		}
		delete(w.tags, n.AttachmentID)
		if n.Type == "" {
			n.Type = "interface"
		}
		if len(n.Groups) == 0 {
			n.Groups = i.Groups
		}
		if n.Type != "efa-only" {
			n.Prefixes = p.subnet.takeBlocks(int(aws.ToInt32(spec.Ipv4PrefixCount)))
			for _, a := range p.subnet.take(1 + int(aws.ToInt32(spec.SecondaryPrivateIpAddressCount))) {
				n.Addresses = append(n.Addresses, a.String())
			}
		}
		n.MAC = macOf(w.ids.Uint64())
		maps.Copy(w.tags[n.ID], tagsFor(p.request, ec2types.ResourceTypeNetworkInterface))
		i.Interfaces = append(i.Interfaces, n)
	}
}

// takeBlocks takes n whole /28 blocks.
func (s *subnet) takeBlocks(n int) []string {
	var taken []string
	for _, block := range s.blocks(n) {
		for a := block.Addr(); block.Contains(a); a = a.Next() {
			s.used[a] = true
		}
		taken = append(taken, block.String())
	}
	return taken
}

// blocks finds up to n /28 blocks in which nothing is used yet.
func (s *subnet) blocks(n int) []netip.Prefix {
	var found []netip.Prefix
	for block := netip.PrefixFrom(s.block.Addr(), 28); len(found) < n && s.block.Contains(block.Addr()); {
		if s.unused(block) {
			found = append(found, block)
		}
		next := block.Addr()
		for range prefixSize {
			next = next.Next()
		}
		block = netip.PrefixFrom(next, 28)
	}
	return found
}

// unused says whether nothing of a block is taken. The first and the last block hold addresses that are AWS's.
func (s *subnet) unused(block netip.Prefix) bool {
	last := block.Addr()
	for a := block.Addr(); block.Contains(a); a = a.Next() {
		if s.used[a] {
			return false
		}
		last = a
	}
	return block.Addr() != s.block.Addr() && s.block.Contains(last.Next())
}

func macOf(bits uint64) string {
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24),
		byte(bits>>32))
}

func givesPublicIP(p *place) bool {
	for _, n := range p.request.NetworkInterfaces {
		if aws.ToInt32(n.DeviceIndex) == 0 && n.AssociatePublicIpAddress != nil {
			return *n.AssociatePublicIpAddress
		}
	}
	return aws.ToBool(p.subnet.MapPublicIpOnLaunch)
}

// publicFor is a public address that belongs to a private one, from the block that is kept for measuring (RFC 2544), so
// that it is nobody's.
func publicFor(private string) string {
	b := netip.MustParseAddr(private).As4()
	return fmt.Sprintf("198.%d.%d.%d", 18+b[1]%2, b[2], b[3])
}

// attachVolumes gives an instance the image's volumes with what the request says of them, and those that only the
// request names.
func (w *World) attachVolumes(i *Instance, p *place) {
	asked := map[string]ec2types.BlockDeviceMapping{}
	for _, d := range p.request.BlockDeviceMappings {
		asked[aws.ToString(d.DeviceName)] = d
	}
	for _, d := range p.image.BlockDeviceMappings {
		name := aws.ToString(d.DeviceName)
		size := int32(0)
		if d.Ebs != nil {
			size = aws.ToInt32(d.Ebs.VolumeSize)
		}
		if mine, ok := asked[name]; ok && mine.Ebs != nil && mine.Ebs.VolumeSize != nil {
			size = *mine.Ebs.VolumeSize
		}
		w.attach(i, name, size, stays(asked[name]))
		delete(asked, name)
	}
	for _, d := range p.request.BlockDeviceMappings {
		name := aws.ToString(d.DeviceName)
		if _, extra := asked[name]; extra && d.Ebs != nil {
			size, _ := w.sizeOf(name, d.Ebs, nil) // it has one: the launch was resolved
			w.attach(i, name, size, stays(d))
		}
	}
}

// stays tells whether a launch wants a volume to outlive its instance.
func stays(d ec2types.BlockDeviceMapping) bool {
	return d.Ebs != nil && d.Ebs.DeleteOnTermination != nil && !*d.Ebs.DeleteOnTermination
}

func (w *World) attach(i *Instance, device string, size int32, stays bool) {
	v := Volume{ID: w.newID("vol"), Device: device, SizeGiB: size, Stays: stays}
	maps.Copy(w.tags[v.ID], tagsFor(i.Request, ec2types.ResourceTypeVolume))
	i.Volumes = append(i.Volumes, v)
}

// tagInstance puts on the tags that were asked for and those that EC2 adds.
func (w *World) tagInstance(i *Instance, l Launch) {
	tags := w.tags[i.ID]
	maps.Copy(tags, tagsFor(l.Request, ec2types.ResourceTypeInstance))
	if l.Fleet != "" {
		tags["aws:ec2:fleet-id"] = l.Fleet
	}
	if l.Template != "" {
		tags["aws:ec2launchtemplate:id"] = l.Template
		tags["aws:ec2launchtemplate:version"] = strconv.FormatInt(l.TemplateVersion, 10)
	}
}
