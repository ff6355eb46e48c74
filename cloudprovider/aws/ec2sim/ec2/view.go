package ec2

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2/query"
)

// instanceView is an instance as EC2 describes it.
func (s *Service) instanceView(i *cloud.Instance) ec2types.Instance {
	view := ec2types.Instance{
		InstanceId: aws.String(i.ID), ImageId: aws.String(i.Image), InstanceType: ec2types.InstanceType(i.Type),
		State:        stateView(i.State),
		Architecture: ec2types.ArchitectureValues(i.Architecture), LaunchTime: aws.Time(i.Launched),
		AmiLaunchIndex: aws.Int32(0),
		Hypervisor:     ec2types.HypervisorTypeXen, VirtualizationType: ec2types.VirtualizationTypeHvm,
		RootDeviceType: ec2types.DeviceTypeEbs,
		EnaSupport:     aws.Bool(true), EbsOptimized: aws.Bool(aws.ToBool(i.Request.EbsOptimized)),
		PlatformDetails: aws.String("Linux/UNIX"),
		ClientToken:     i.Request.ClientToken, KeyName: i.Request.KeyName, Tags: tagList(i.Tags),
		StateTransitionReason: aws.String(""),
		Monitoring:            monitoring(i), Placement: s.placement(i), MetadataOptions: metadata(i),
		SecurityGroups:                   s.groups(i.Groups),
		CapacityReservationSpecification: reservationSpec(i),
	}
	if i.Market != cloud.OnDemand {
		view.InstanceLifecycle = ec2types.InstanceLifecycleType(i.Market)
	}
	if i.SpotRequest != "" {
		view.SpotInstanceRequestId = aws.String(i.SpotRequest)
	}
	if i.CapacityReservation != "" {
		view.CapacityReservationId = aws.String(i.CapacityReservation)
	}
	if i.ReasonCode != "" {
		view.StateReason = &ec2types.StateReason{Code: aws.String(i.ReasonCode), Message: aws.String(i.ReasonMessage)}
		view.StateTransitionReason = aws.String(i.ReasonMessage)
	}
	if i.Profile != "" {
		view.IamInstanceProfile = s.profile(i.Profile)
	}
	if i.State != cloud.Terminated {
		s.attached(&view, i)
	}
	return view
}

// attached adds what an instance has only while it is there.
func (s *Service) attached(view *ec2types.Instance, i *cloud.Instance) {
	view.SubnetId, view.VpcId = aws.String(i.Subnet), aws.String(i.VPC)
	view.PrivateIpAddress, view.PrivateDnsName = aws.String(i.PrivateIP), aws.String(i.PrivateDNS)
	if i.PublicIP != "" {
		view.PublicIpAddress = aws.String(i.PublicIP)
	}
	for _, v := range i.Volumes {
		view.BlockDeviceMappings = append(view.BlockDeviceMappings, ec2types.InstanceBlockDeviceMapping{
			DeviceName: aws.String(v.Device),
			Ebs: &ec2types.EbsInstanceBlockDevice{
				VolumeId: aws.String(v.ID), Status: ec2types.AttachmentStatusAttached, AttachTime: aws.Time(i.Launched),
				DeleteOnTermination: aws.Bool(!v.Stays),
			},
		})
	}
	if len(i.Volumes) > 0 {
		view.RootDeviceName = aws.String(i.Volumes[0].Device)
	}
	for _, n := range i.Interfaces {
		view.NetworkInterfaces = append(view.NetworkInterfaces, s.interfaceView(i, n))
	}
}

func (s *Service) interfaceView(i *cloud.Instance, n cloud.Interface) ec2types.InstanceNetworkInterface {
	view := ec2types.InstanceNetworkInterface{
		NetworkInterfaceId: aws.String(n.ID), InterfaceType: aws.String(n.Type), MacAddress: aws.String(n.MAC),
		Description: aws.String(n.Description),
		SubnetId:    aws.String(n.Subnet), VpcId: aws.String(i.VPC), OwnerId: aws.String(s.world.Account()),
		Status:          ec2types.NetworkInterfaceStatusInUse,
		SourceDestCheck: aws.Bool(true), Groups: s.groups(n.Groups),
		Attachment: &ec2types.InstanceNetworkInterfaceAttachment{
			AttachmentId: aws.String(n.AttachmentID), AttachTime: aws.Time(i.Launched),
			DeleteOnTermination: aws.Bool(true),
			DeviceIndex:         aws.Int32(n.Device), NetworkCardIndex: aws.Int32(n.Card),
			Status: ec2types.AttachmentStatusAttached,
		},
	}
	for at, a := range n.Addresses {
		if at == 0 {
			view.PrivateIpAddress = aws.String(a)
		}
		view.PrivateIpAddresses = append(view.PrivateIpAddresses,
			ec2types.InstancePrivateIpAddress{Primary: aws.Bool(at == 0), PrivateIpAddress: aws.String(a)})
	}
	for _, p := range n.Prefixes {
		view.Ipv4Prefixes = append(view.Ipv4Prefixes, ec2types.InstanceIpv4Prefix{Ipv4Prefix: aws.String(p)})
	}
	return view
}

func (s *Service) groups(ids []string) []ec2types.GroupIdentifier {
	names := s.world.GroupNames(ids)
	list := make([]ec2types.GroupIdentifier, 0, len(ids))
	for at, id := range ids {
		list = append(list, ec2types.GroupIdentifier{GroupId: aws.String(id), GroupName: aws.String(names[at])})
	}
	return list
}

func (s *Service) placement(i *cloud.Instance) *ec2types.Placement {
	p := &ec2types.Placement{}
	if i.Request.Placement != nil {
		*p = *i.Request.Placement
	}
	p.AvailabilityZone, p.AvailabilityZoneId = aws.String(i.Zone), aws.String(i.ZoneID)
	if p.Tenancy == "" {
		p.Tenancy = ec2types.TenancyDefault
	}
	if i.PlacementGroup != "" {
		p.GroupId = aws.String(i.PlacementGroup)
		p.GroupName = aws.String(s.world.PlacementGroupName(i.PlacementGroup))
	}
	if i.Partition > 0 {
		p.PartitionNumber = aws.Int32(i.Partition)
	}
	return p
}

// profile is an instance profile by its ARN. The world does not know in which path IAM keeps it, so a name is one at
// the root.
func (s *Service) profile(nameOrARN string) *ec2types.IamInstanceProfile {
	arn := nameOrARN
	if !strings.HasPrefix(arn, "arn:") {
		arn = fmt.Sprintf("arn:aws:iam::%s:instance-profile/%s", s.world.Account(), nameOrARN)
	}
	return &ec2types.IamInstanceProfile{Arn: aws.String(arn)}
}

func monitoring(i *cloud.Instance) *ec2types.Monitoring {
	if m := i.Request.Monitoring; m != nil && aws.ToBool(m.Enabled) {
		return &ec2types.Monitoring{State: ec2types.MonitoringStateEnabled}
	}
	return &ec2types.Monitoring{State: ec2types.MonitoringStateDisabled}
}

func metadata(i *cloud.Instance) *ec2types.InstanceMetadataOptionsResponse {
	view := &ec2types.InstanceMetadataOptionsResponse{State: ec2types.InstanceMetadataOptionsStateApplied}
	if i.Request.MetadataOptions != nil {
		query.Fill(view, i.Request.MetadataOptions)
	}
	query.Fill(view, &ec2types.InstanceMetadataOptionsResponse{
		HttpEndpoint:            ec2types.InstanceMetadataEndpointStateEnabled,
		HttpProtocolIpv6:        ec2types.InstanceMetadataProtocolStateDisabled,
		HttpPutResponseHopLimit: aws.Int32(1), HttpTokens: ec2types.HttpTokensStateOptional,
		InstanceMetadataTags: ec2types.InstanceMetadataTagsStateDisabled,
	})
	return view
}

func reservationSpec(i *cloud.Instance) *ec2types.CapacityReservationSpecificationResponse {
	view := &ec2types.CapacityReservationSpecificationResponse{}
	if i.Request.CapacityReservationSpecification != nil {
		query.Fill(view, i.Request.CapacityReservationSpecification)
	}
	if view.CapacityReservationPreference == "" && view.CapacityReservationTarget == nil {
		view.CapacityReservationPreference = ec2types.CapacityReservationPreferenceOpen
	}
	return view
}
