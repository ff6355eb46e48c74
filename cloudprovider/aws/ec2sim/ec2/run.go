package ec2

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func formatVersion(n int64) string { return strconv.FormatInt(n, 10) }

func (s *Service) runInstances(r *request, in *sdk.RunInstancesInput) (*sdk.RunInstancesOutput, *wire.Error) {
	least, most := int(aws.ToInt32(in.MinCount)), int(aws.ToInt32(in.MaxCount))
	if least < 1 || most < least {
		return nil, wire.Errorf("InvalidParameterValue", "Value (%d, %d) for parameters minCount, maxCount is "+
			"invalid. Both must be at least 1, and maxCount at least minCount.", least, most)
	}
	if aws.ToBool(in.DryRun) {
		launch, err := s.launchOf(in)
		if err == nil {
			err = s.world.Check(launch)
		}
		if err == nil {
			err = dryRun(true)
		}
		return nil, err
	}
	return once(s, r, aws.ToString(in.ClientToken), func() (*sdk.RunInstancesOutput, *wire.Error) {
		launch, err := s.launchOf(in)
		if err != nil {
			return nil, err
		}
		return s.launchSome(launch, least, most)
	})
}

// launchOf puts the request over its launch template, if it names one.
func (s *Service) launchOf(in *sdk.RunInstancesInput) (cloud.Launch, *wire.Error) {
	spec := in.LaunchTemplate
	if spec == nil {
		return cloud.Launch{Request: in}, nil
	}
	ref, err := s.findTemplate(spec.LaunchTemplateId, spec.LaunchTemplateName, spec.Version)
	if err != nil {
		return cloud.Launch{}, err
	}
	return cloud.Launch{Request: merge(in, ref.version.Data), Template: ref.id, TemplateVersion: ref.version.Number},
		nil
}

// launchSome launches as many as it can, or none if these are too few.
func (s *Service) launchSome(launch cloud.Launch, least, most int) (*sdk.RunInstancesOutput, *wire.Error) {
	launch.Reservation = s.world.NewReservationID()
	out := &sdk.RunInstancesOutput{ReservationId: aws.String(launch.Reservation),
		OwnerId: aws.String(s.world.Account()), Groups: []ec2types.GroupIdentifier{}}
	var ids []string
	for len(ids) < most {
		i, err := s.world.Launch(launch)
		if err != nil && len(ids) < least {
			s.world.Discard(ids)
			return nil, err
		}
		if err != nil {
			break
		}
		ids = append(ids, i.ID)
		view := s.instanceView(&i)
		view.AmiLaunchIndex = aws.Int32(int32(len(ids) - 1))
		out.Instances = append(out.Instances, view)
	}
	return out, nil
}

func (s *Service) terminateInstances(_ *request, in *sdk.TerminateInstancesInput) (*sdk.TerminateInstancesOutput,
	*wire.Error) {
	if len(in.InstanceIds) == 0 {
		return nil, wire.Errorf("MissingParameter", "The request must contain the parameter InstanceId")
	}
	if len(in.InstanceIds) > 1000 {
		return nil, wire.Errorf("InvalidParameterValue", "A call can terminate at most 1000 instances, not %d.",
			len(in.InstanceIds))
	}
	if aws.ToBool(in.DryRun) {
		if _, err := s.world.Visible(in.InstanceIds); err != nil {
			return nil, err
		}
		return nil, dryRun(true)
	}
	ended, err := s.world.Terminate(in.InstanceIds)
	if err != nil {
		return nil, err
	}
	out := &sdk.TerminateInstancesOutput{}
	for _, e := range ended {
		out.TerminatingInstances = append(out.TerminatingInstances, ec2types.InstanceStateChange{
			InstanceId: aws.String(e.ID), PreviousState: stateView(e.Before), CurrentState: stateView(e.After),
		})
	}
	return out, nil
}

func stateView(state cloud.State) *ec2types.InstanceState {
	return &ec2types.InstanceState{Code: aws.Int32(state.Code()), Name: ec2types.InstanceStateName(state)}
}
