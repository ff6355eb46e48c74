package ec2

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func (s *Service) describeStatus(_ *request, in *sdk.DescribeInstanceStatusInput) (*sdk.DescribeInstanceStatusOutput,
	*wire.Error) {
	if in.MaxResults != nil && len(in.InstanceIds) > 0 {
		return nil, wire.Errorf("InvalidParameterCombination", "The parameter instancesSet cannot be used with the "+
			"parameter maxResults")
	}
	instances, err := s.world.Visible(in.InstanceIds)
	if err != nil {
		return nil, err
	}
	if !aws.ToBool(in.IncludeAllInstances) {
		instances = slices.DeleteFunc(instances, func(i cloud.Instance) bool { return i.State != cloud.Running })
	}
	all := make([]ec2types.InstanceStatus, 0, len(instances))
	for n := range instances {
		all = append(all, statusView(&instances[n]))
	}
	none := func(*ec2types.InstanceStatus) []ec2types.Tag { return nil }
	all, err = filtered(all, in.Filters, none, statusAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{5, 1000, 0}, in.MaxResults, in.NextToken,
		func(v *ec2types.InstanceStatus) string {
			return aws.ToString(v.InstanceId)
		})
	return &sdk.DescribeInstanceStatusOutput{InstanceStatuses: all, NextToken: next}, err
}

func statusView(i *cloud.Instance) ec2types.InstanceStatus {
	view := ec2types.InstanceStatus{
		InstanceId: aws.String(i.ID), AvailabilityZone: aws.String(i.Zone), AvailabilityZoneId: aws.String(i.ZoneID),
		InstanceState: stateView(i.State),
		SystemStatus:  summary(i, i.SystemImpaired), InstanceStatus: summary(i, i.MachineImpaired),
		Events: []ec2types.InstanceStatusEvent{},
	}
	for _, e := range i.Events {
		view.Events = append(view.Events, ec2types.InstanceStatusEvent{
			Code: ec2types.EventCode(e.Code), Description: aws.String(e.Description), InstanceEventId: aws.String(e.ID),
			NotBefore: aws.Time(e.NotBefore), NotAfter: aws.Time(e.NotAfter),
		})
	}
	return view
}

// summary is the outcome of a status check. A machine that does not run has none.
func summary(i *cloud.Instance, impaired bool) *ec2types.InstanceStatusSummary {
	if i.State != cloud.Running {
		return &ec2types.InstanceStatusSummary{Status: ec2types.SummaryStatusNotApplicable}
	}
	if !impaired {
		return &ec2types.InstanceStatusSummary{Status: ec2types.SummaryStatusOk,
			Details: []ec2types.InstanceStatusDetails{
				{Name: ec2types.StatusNameReachability, Status: ec2types.StatusTypePassed},
			}}
	}
	return &ec2types.InstanceStatusSummary{Status: ec2types.SummaryStatusImpaired,
		Details: []ec2types.InstanceStatusDetails{
			{Name: ec2types.StatusNameReachability, Status: ec2types.StatusTypeFailed,
				ImpairedSince: aws.Time(i.ImpairedSince)},
		}}
}

func statusAttribute(v *ec2types.InstanceStatus, filter string) ([]string, bool) {
	switch filter {
	case "availability-zone":
		return str(v.AvailabilityZone), true
	case "availability-zone-id":
		return str(v.AvailabilityZoneId), true
	case "instance-state-name":
		if v.InstanceState == nil {
			return nil, true
		}
		return []string{string(v.InstanceState.Name)}, true
	case "instance-state-code":
		if v.InstanceState == nil {
			return nil, true
		}
		return number(v.InstanceState.Code), true
	case "instance-status.status":
		return statusOf(v.InstanceStatus), true
	case "system-status.status":
		return statusOf(v.SystemStatus), true
	case "instance-status.reachability":
		return reachabilityOf(v.InstanceStatus), true
	case "system-status.reachability":
		return reachabilityOf(v.SystemStatus), true
	case "event.code":
		var codes []string
		for _, e := range v.Events {
			codes = append(codes, string(e.Code))
		}
		return codes, true
	}
	return nil, false
}

func statusOf(v *ec2types.InstanceStatusSummary) []string {
	if v == nil {
		return nil
	}
	return []string{string(v.Status)}
}

func reachabilityOf(v *ec2types.InstanceStatusSummary) []string {
	if v == nil {
		return nil
	}
	var all []string
	for _, d := range v.Details {
		all = append(all, string(d.Status))
	}
	return all
}
