package cloud

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// subnet is a subnet with the addresses that are taken from it.
type subnet struct {
	ec2types.Subnet
	block netip.Prefix
	used  map[netip.Addr]bool
	next  netip.Addr // where the search for a free address begins
	spare int        // addresses that somebody outside of this world took; see SetFreeAddresses
	// counted is what calls are told of free addresses; see Timing.AddressLag.
	counted   int
	countedAt time.Time
}

// AWS keeps the first four addresses of a subnet and the last one.
const reservedAddresses = 5

// AddVPC makes a VPC.
func (w *World) AddVPC(cidr string, tags map[string]string) string {
	defer w.enter()()
	id := w.newID("vpc")
	w.vpcs[id] = &ec2types.Vpc{
		VpcId: aws.String(id), CidrBlock: aws.String(cidr), State: ec2types.VpcStateAvailable,
		OwnerId: aws.String(w.cfg.Account), InstanceTenancy: ec2types.TenancyDefault, IsDefault: aws.Bool(false),
		DhcpOptionsId: aws.String("default"),
		CidrBlockAssociationSet: []ec2types.VpcCidrBlockAssociation{{
			AssociationId: aws.String(w.newID("vpc-cidr-assoc")), CidrBlock: aws.String(cidr),
			CidrBlockState: &ec2types.VpcCidrBlockState{State: ec2types.VpcCidrBlockStateCodeAssociated},
		}},
	}
	maps.Copy(w.tags[id], tags)
	return id
}

// SubnetSpec is a subnet to make.
type SubnetSpec struct {
	VPC    string
	Zone   string // by name
	CIDR   string
	Public bool // instances get a public address unless they say otherwise
	Tags   map[string]string
}

// AddSubnet makes a subnet.
func (w *World) AddSubnet(s SubnetSpec) (string, error) {
	defer w.enter()()
	block, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return "", fmt.Errorf("reading the subnet's block: %w", err)
	}
	zone, ok := w.zoneByName(s.Zone)
	if !ok {
		return "", fmt.Errorf("adding a subnet: there is no zone %q in %s", s.Zone, w.cfg.Region)
	}
	if w.vpcs[s.VPC] == nil {
		return "", fmt.Errorf("adding a subnet: there is no VPC %q", s.VPC)
	}
	id := w.newID("subnet")
	w.subnets[id] = &subnet{
		Subnet: ec2types.Subnet{
			SubnetId: aws.String(id), VpcId: aws.String(s.VPC), CidrBlock: aws.String(s.CIDR),
			AvailabilityZone: aws.String(zone.Name), AvailabilityZoneId: aws.String(zone.ID),
			State:               ec2types.SubnetStateAvailable,
			MapPublicIpOnLaunch: aws.Bool(s.Public), DefaultForAz: aws.Bool(false), OwnerId: aws.String(w.cfg.Account),
			AssignIpv6AddressOnCreation: aws.Bool(false),
			SubnetArn:                   aws.String(w.arn("subnet", id)),
		},
		block: block.Masked(), used: map[netip.Addr]bool{},
	}
	maps.Copy(w.tags[id], s.Tags)
	return id, nil
}

// removedSubnet is a subnet that can come back.
type removedSubnet struct {
	*subnet
	tags map[string]string
}

// RemoveSubnet makes a subnet go, whatever runs in it.
func (w *World) RemoveSubnet(id string) *wire.Error {
	defer w.enter()()
	s := w.subnets[id]
	if s == nil {
		return noSuchSubnet(id)
	}
	w.removed[id] = removedSubnet{s, w.tags[id]}
	delete(w.subnets, id)
	delete(w.tags, id)
	return nil
}

// RestoreSubnet puts a subnet back that was removed, with its id, tags and addresses.
func (w *World) RestoreSubnet(id string) *wire.Error {
	defer w.enter()()
	gone, ok := w.removed[id]
	if !ok {
		return noSuchSubnet(id)
	}
	w.subnets[id], w.tags[id] = gone.subnet, gone.tags
	delete(w.removed, id)
	return nil
}

// RemovedSubnets lists the ids of the subnets that were removed.
func (w *World) RemovedSubnets() []string {
	defer w.enter()()
	return slices.Sorted(maps.Keys(w.removed))
}

// SetFreeAddresses makes a subnet have this many free addresses, as if others had taken the rest.
func (w *World) SetFreeAddresses(id string, free int) *wire.Error {
	defer w.enter()()
	s := w.subnets[id]
	if s == nil {
		return noSuchSubnet(id)
	}
	before := s.spare
	s.spare = 0
	if most := s.free(); free < 0 || free > most {
		s.spare = before
		return wire.Errorf("InvalidParameterValue", "Subnet %s can have 0 to %d free addresses, not %d.", id,
			most, free)
	}
	s.spare = s.free() - free
	return nil
}

// free is how many addresses can still be taken.
func (s *subnet) free() int {
	size := 1 << (32 - s.block.Bits())
	return max(0, size-reservedAddresses-len(s.used)-s.spare)
}

// take takes n addresses; the caller has checked that they are free.
func (s *subnet) take(n int) []netip.Addr {
	first := s.block.Addr().Next().Next().Next().Next()
	if !s.next.IsValid() {
		s.next = first
	}
	var taken []netip.Addr
	for len(taken) < n {
		if !s.block.Contains(s.next) || !s.block.Contains(s.next.Next()) {
			s.next = first // the last address of the block is AWS's
		}
		if !s.used[s.next] {
			s.used[s.next] = true
			taken = append(taken, s.next)
		}
		s.next = s.next.Next()
	}
	return taken
}

// Subnets lists the subnets by id, with tags and free addresses.
func (w *World) Subnets() []ec2types.Subnet {
	defer w.enter()()
	all := make([]ec2types.Subnet, 0, len(w.subnets))
	for id, s := range w.subnets {
		one := s.Subnet
		one.Tags = tagList(w.tags[id])
		if now := w.clock.Now(); s.countedAt.IsZero() || now.Sub(s.countedAt) >= w.cfg.Timing.AddressLag {
			s.counted, s.countedAt = s.free(), now
		}
		one.AvailableIpAddressCount = aws.Int32(int32(s.counted))
		all = append(all, one)
	}
	sort.Slice(all, func(a, b int) bool { return *all[a].SubnetId < *all[b].SubnetId })
	return all
}

// VPCs lists the VPCs by id.
func (w *World) VPCs() []ec2types.Vpc {
	defer w.enter()()
	all := make([]ec2types.Vpc, 0, len(w.vpcs))
	for id, v := range w.vpcs {
		one := *v
		one.Tags = tagList(w.tags[id])
		all = append(all, one)
	}
	sort.Slice(all, func(a, b int) bool { return *all[a].VpcId < *all[b].VpcId })
	return all
}

// AddSecurityGroup makes a security group.
func (w *World) AddSecurityGroup(vpc, name string, tags map[string]string) (string, error) {
	defer w.enter()()
	if w.vpcs[vpc] == nil {
		return "", fmt.Errorf("adding a security group: there is no VPC %q", vpc)
	}
	id := w.newID("sg")
	w.groups[id] = &ec2types.SecurityGroup{
		GroupId: aws.String(id), GroupName: aws.String(name), VpcId: aws.String(vpc),
		OwnerId:     aws.String(w.cfg.Account),
		Description: aws.String(name), SecurityGroupArn: aws.String(w.arn("security-group", id)),
	}
	maps.Copy(w.tags[id], tags)
	return id, nil
}

// RemoveSecurityGroup makes a security group go.
func (w *World) RemoveSecurityGroup(id string) *wire.Error {
	defer w.enter()()
	if w.groups[id] == nil {
		return noSuchGroup(id)
	}
	delete(w.groups, id)
	delete(w.tags, id)
	return nil
}

// SecurityGroups lists the security groups by id.
func (w *World) SecurityGroups() []ec2types.SecurityGroup {
	defer w.enter()()
	all := make([]ec2types.SecurityGroup, 0, len(w.groups))
	for id, g := range w.groups {
		one := *g
		one.Tags = tagList(w.tags[id])
		all = append(all, one)
	}
	sort.Slice(all, func(a, b int) bool { return *all[a].GroupId < *all[b].GroupId })
	return all
}

// ZoneOfSubnet is the zone's name; empty if there is no such subnet.
func (w *World) ZoneOfSubnet(id string) string {
	defer w.enter()()
	if s := w.subnets[id]; s != nil {
		return *s.AvailabilityZone
	}
	return ""
}

// GroupNames are the names of security groups; that of one that is gone is empty.
func (w *World) GroupNames(ids []string) []string {
	defer w.enter()()
	names := make([]string, len(ids))
	for at, id := range ids {
		if g := w.groups[id]; g != nil {
			names[at] = *g.GroupName
		}
	}
	return names
}

func (w *World) arn(kind, id string) string {
	return fmt.Sprintf("arn:aws:ec2:%s:%s:%s/%s", w.cfg.Region, w.cfg.Account, kind, id)
}

func noSuchSubnet(id string) *wire.Error {
	return wire.Errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
}

func noSuchGroup(id string) *wire.Error {
	return wire.Errorf("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
}
