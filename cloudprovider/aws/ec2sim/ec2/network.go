package ec2

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// named keeps the items with the given ids, all of which must be there. No ids keep everything.
func named[T any](items []T, ids []string, id func(*T) string, missing func(id string) *wire.Error) ([]T, *wire.Error) {
	if len(ids) == 0 {
		return items, nil
	}
	var kept []T
	seen := map[string]bool{}
	for i := range items {
		if slices.Contains(ids, id(&items[i])) {
			kept = append(kept, items[i])
			seen[id(&items[i])] = true
		}
	}
	for _, one := range ids {
		if !seen[one] {
			return nil, missing(one)
		}
	}
	return kept, nil
}

func (s *Service) describeSubnets(_ *request, in *sdk.DescribeSubnetsInput) (*sdk.DescribeSubnetsOutput, *wire.Error) {
	id := func(n *ec2types.Subnet) string { return aws.ToString(n.SubnetId) }
	all, err := named(s.world.Subnets(), in.SubnetIds, id, func(id string) *wire.Error {
		return wire.Errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	all, err = filtered(all, in.Filters, func(n *ec2types.Subnet) []ec2types.Tag { return n.Tags }, subnetAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{5, 1000, 0}, in.MaxResults, in.NextToken, id)
	return &sdk.DescribeSubnetsOutput{Subnets: all, NextToken: next}, err
}

func subnetAttribute(n *ec2types.Subnet, filter string) ([]string, bool) {
	switch filter {
	case "subnet-id":
		return str(n.SubnetId), true
	case "vpc-id":
		return str(n.VpcId), true
	case "availability-zone", "availabilityZone":
		return str(n.AvailabilityZone), true
	case "availability-zone-id", "availabilityZoneId":
		return str(n.AvailabilityZoneId), true
	case "cidr-block", "cidr", "cidrBlock":
		return str(n.CidrBlock), true
	case "owner-id":
		return str(n.OwnerId), true
	case "subnet-arn":
		return str(n.SubnetArn), true
	case "state":
		return []string{string(n.State)}, true
	case "available-ip-address-count":
		return number(n.AvailableIpAddressCount), true
	case "default-for-az", "defaultForAz":
		return boolean(n.DefaultForAz), true
	case "map-public-ip-on-launch":
		return boolean(n.MapPublicIpOnLaunch), true
	}
	return nil, false
}

func (s *Service) describeGroups(_ *request, in *sdk.DescribeSecurityGroupsInput) (*sdk.DescribeSecurityGroupsOutput,
	*wire.Error) {
	if in.MaxResults != nil && len(in.GroupIds) > 0 {
		return nil, wire.Errorf("InvalidParameterCombination", "The parameter groupIds cannot be used with the "+
			"parameter maxResults")
	}
	id := func(g *ec2types.SecurityGroup) string { return aws.ToString(g.GroupId) }
	missing := func(id string) *wire.Error {
		return wire.Errorf("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	all, err := named(s.world.SecurityGroups(), in.GroupIds, id, missing)
	if err != nil {
		return nil, err
	}
	all, err = named(all, in.GroupNames, func(g *ec2types.SecurityGroup) string {
		return aws.ToString(g.GroupName)
	}, missing)
	if err != nil {
		return nil, err
	}
	all, err = filtered(all, in.Filters, func(g *ec2types.SecurityGroup) []ec2types.Tag {
		return g.Tags
	}, groupAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{5, 1000, 0}, in.MaxResults, in.NextToken, id)
	return &sdk.DescribeSecurityGroupsOutput{SecurityGroups: all, NextToken: next}, err
}

func groupAttribute(g *ec2types.SecurityGroup, filter string) ([]string, bool) {
	switch filter {
	case "group-id":
		return str(g.GroupId), true
	case "group-name":
		return str(g.GroupName), true
	case "vpc-id":
		return str(g.VpcId), true
	case "owner-id":
		return str(g.OwnerId), true
	case "description":
		return str(g.Description), true
	}
	return nil, false
}

func (s *Service) describeVPCs(_ *request, in *sdk.DescribeVpcsInput) (*sdk.DescribeVpcsOutput, *wire.Error) {
	id := func(v *ec2types.Vpc) string { return aws.ToString(v.VpcId) }
	all, err := named(s.world.VPCs(), in.VpcIds, id, func(id string) *wire.Error {
		return wire.Errorf("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	all, err = filtered(all, in.Filters, func(v *ec2types.Vpc) []ec2types.Tag { return v.Tags }, vpcAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{5, 1000, 0}, in.MaxResults, in.NextToken, id)
	return &sdk.DescribeVpcsOutput{Vpcs: all, NextToken: next}, err
}

func vpcAttribute(v *ec2types.Vpc, filter string) ([]string, bool) {
	switch filter {
	case "vpc-id":
		return str(v.VpcId), true
	case "cidr", "cidr-block-association.cidr-block":
		return str(v.CidrBlock), true
	case "owner-id":
		return str(v.OwnerId), true
	case "state":
		return []string{string(v.State)}, true
	case "is-default", "isDefault":
		return boolean(v.IsDefault), true
	}
	return nil, false
}
