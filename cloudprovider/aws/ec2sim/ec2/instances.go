package ec2

import (
	"sort"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func (s *Service) describeInstances(_ *request, in *sdk.DescribeInstancesInput) (*sdk.DescribeInstancesOutput,
	*wire.Error) {
	if in.MaxResults != nil && len(in.InstanceIds) > 0 {
		return nil, wire.Errorf("InvalidParameterCombination", "The parameter instancesSet cannot be used with the "+
			"parameter maxResults")
	}
	all, err := s.world.Visible(in.InstanceIds)
	if err != nil {
		return nil, err
	}
	all, err = filtered(all, in.Filters, instanceTags, instanceAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{5, 1000, 0}, in.MaxResults, in.NextToken, func(i *cloud.Instance) string {
		return i.ID
	})
	if err != nil {
		return nil, err
	}
	return &sdk.DescribeInstancesOutput{Reservations: s.byReservation(all), NextToken: next}, nil
}

func instanceTags(i *cloud.Instance) []ec2types.Tag { return tagList(i.Tags) }

// byReservation groups instances by the call that made them.
func (s *Service) byReservation(all []cloud.Instance) []ec2types.Reservation {
	groups := map[string]*ec2types.Reservation{}
	for n := range all {
		i := &all[n]
		r := groups[i.Reservation]
		if r == nil {
			r = &ec2types.Reservation{ReservationId: aws.String(i.Reservation), OwnerId: aws.String(s.world.Account()),
				Groups: []ec2types.GroupIdentifier{}}
			groups[i.Reservation] = r
		}
		r.Instances = append(r.Instances, s.instanceView(i))
	}
	list := make([]ec2types.Reservation, 0, len(groups))
	for _, r := range groups {
		list = append(list, *r)
	}
	sort.Slice(list, func(a, b int) bool { return *list[a].ReservationId < *list[b].ReservationId })
	return list
}

// plainAttribute is what a filter of instances compares, if that is one text.
func plainAttribute(i *cloud.Instance, filter string) (string, bool) {
	switch filter {
	case "instance-id":
		return i.ID, true
	case "instance-type":
		return i.Type, true
	case "instance-state-name":
		return string(i.State), true
	case "instance-state-code":
		return strconv.Itoa(int(i.State.Code())), true
	case "availability-zone":
		return i.Zone, true
	case "availability-zone-id":
		return i.ZoneID, true
	case "subnet-id", "network-interface.subnet-id":
		return i.Subnet, true
	case "vpc-id", "network-interface.vpc-id":
		return i.VPC, true
	case "image-id":
		return i.Image, true
	case "architecture":
		return i.Architecture, true
	case "private-ip-address":
		return i.PrivateIP, true
	case "private-dns-name":
		return i.PrivateDNS, true
	case "ip-address":
		return i.PublicIP, true
	case "reservation-id":
		return i.Reservation, true
	case "capacity-reservation-id":
		return i.CapacityReservation, true
	case "spot-instance-request-id":
		return i.SpotRequest, true
	case "state-reason-code":
		return i.ReasonCode, true
	case "reason":
		return i.ReasonMessage, true
	}
	return "", false
}

func instanceAttribute(i *cloud.Instance, filter string) ([]string, bool) {
	if text, ok := plainAttribute(i, filter); ok {
		return []string{text}, true
	}
	switch filter {
	case "instance-lifecycle":
		if i.Market == cloud.OnDemand {
			return nil, true // on-demand instances have none
		}
		return []string{string(i.Market)}, true
	case "instance.group-id", "network-interface.group-id":
		return i.Groups, true
	case "launch-time":
		return timestamp(&i.Launched), true
	case "client-token":
		if i.Request == nil {
			return nil, true
		}
		return str(i.Request.ClientToken), true
	}
	return nil, false
}
