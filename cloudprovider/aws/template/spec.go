package template

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// Spec is everything that a launch template is made from. It holds nothing that is one claim's alone.
type Spec struct {
	Class   *awsv1.EC2NodeClass
	Cluster family.Cluster
	Group   *network.PlacementGroup
	Labels  map[string]string
	Taints  []corev1.Taint
	Tags    map[string]string
	variant Variant
	// UsesReservations says that capacity reservations are used at all.
	UsesReservations bool
}

// Key is equal for specs that make equal templates from equal variants.
func (s *Spec) Key() ([32]byte, error) {
	text, err := json.Marshal([]any{s.Class.Spec, s.Class.Status.InstanceProfile, s.Class.Status.SecurityGroups,
		s.Cluster, s.Group, s.Labels, s.Taints, s.Tags, s.UsesReservations})
	if err != nil {
		return [32]byte{}, fmt.Errorf("naming what a launch template is made from: %w", err)
	}
	return sha256.Sum256(text), nil
}

// data is the template's content.
func (s *Spec) data() (*ec2types.RequestLaunchTemplateData, error) {
	userData, err := s.userData()
	if err != nil {
		return nil, err
	}
	spec := &s.Class.Spec
	out := &ec2types.RequestLaunchTemplateData{
		ImageId:             new(s.variant.ImageID),
		UserData:            userData,
		BlockDeviceMappings: devices(family.Of(s.Class).Devices(s.Class)),
		MetadataOptions:     s.metadata(),
		NetworkInterfaces:   s.interfaces(),
		Placement:           s.placement(),
		TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: ec2types.ResourceTypeNetworkInterface, Tags: TagList(s.Tags)}},
	}
	if len(out.NetworkInterfaces) == 0 {
		out.SecurityGroupIds = s.groups()
	}
	if name := s.Class.Status.InstanceProfile; name != "" {
		out.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: new(name)}
	}
	if spec.DetailedMonitoring != nil {
		out.Monitoring = &ec2types.LaunchTemplatesMonitoringRequest{Enabled: spec.DetailedMonitoring}
	}
	if spec.CPUOptions != nil && spec.CPUOptions.NestedVirtualization != nil {
		out.CpuOptions = &ec2types.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: ec2types.NestedVirtualizationSpecification(*spec.CPUOptions.NestedVirtualization),
		}
	}
	if s.variant.Spot {
		out.TagSpecifications = append(out.TagSpecifications,
			ec2types.LaunchTemplateTagSpecificationRequest{ResourceType: ec2types.ResourceTypeSpotInstancesRequest,
				Tags: TagList(s.Tags)})
	}
	switch {
	case s.variant.Reservation != "":
		out.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: ec2types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: new(
				s.variant.Reservation)}}
	case s.UsesReservations:
		// EC2 would put it into any open reservation that it fits, and the instance that was planned there would find
		// no room.
		out.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: ec2types.CapacityReservationPreferenceNone}
	}
	switch {
	case s.variant.Block:
		out.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{
			MarketType: ec2types.MarketTypeCapacityBlock,
		}
	case s.variant.Interruptible:
		out.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{
			MarketType: ec2types.MarketTypeInterruptibleCapacityReservation,
		}
	}
	return out, nil
}

func (s *Spec) userData() (*string, error) {
	of := family.Of(s.Class)
	node := family.Node{
		Cluster: s.Cluster, MaxPods: s.variant.MaxPods, Kubelet: s.Class.Spec.Kubelet, Labels: s.Labels,
		Taints: s.Taints,
		RAID0: s.Class.Spec.InstanceStorePolicy != nil &&
			*s.Class.Spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0,
		ImageName: s.variant.ImageName,
	}
	var err error
	if node.KubeReserved, err = readReserved(s.variant.KubeReserved); err != nil {
		return nil, err
	}
	if node.SystemReserved, err = readReserved(s.variant.SystemReserved); err != nil {
		return nil, err
	}
	if s.Class.Spec.UserData != nil {
		node.UserData = *s.Class.Spec.UserData
	}
	text, err := of.UserData(node)
	if err != nil {
		return nil, fmt.Errorf("writing user data: %w", err)
	}
	encoded, err := of.Encode(text)
	if err != nil {
		return nil, fmt.Errorf("writing user data: %w", err)
	}
	if encoded == "" {
		return nil, nil
	}
	return &encoded, nil
}

func (s *Spec) groups() []string {
	var out []string
	for _, g := range s.Class.Status.SecurityGroups {
		out = append(out, g.ID)
	}
	return out
}

// interfaces are the network interfaces, if they are anything but one that follows the subnet's settings.
func (s *Spec) interfaces() []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	spec := &s.Class.Spec
	several := len(spec.NetworkInterfaces) > 1 || len(spec.NetworkInterfaces) == 0 && s.variant.EFAs > 1
	var out []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	add := func(card, device int32, kind string) {
		i := ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			NetworkCardIndex: new(card), DeviceIndex: new(device), InterfaceType: new(kind), Groups: s.groups(),
			DeleteOnTermination: new(true),
		}
		if card == 0 && device == 0 && !several {
			// EC2 gives an instance with several interfaces no public address, and refuses to be asked
			i.AssociatePublicIpAddress = spec.AssociatePublicIPAddress
		}
		switch { // an interface for the fabric alone has no addresses
		case kind == string(awsv1.InterfaceTypeEFAOnly):
		case s.Cluster.IPv6():
			i.Ipv6AddressCount, i.PrimaryIpv6, i.Ipv6PrefixCount = new(int32(1)), new(true), spec.IPPrefixCount
		default:
			i.Ipv4PrefixCount = spec.IPPrefixCount
		}
		if t := spec.ConnectionTracking; t != nil && kind != string(awsv1.InterfaceTypeEFAOnly) {
			i.ConnectionTrackingSpecification = &ec2types.ConnectionTrackingSpecificationRequest{
				TcpEstablishedTimeout: t.TCPEstablishedTimeout, UdpStreamTimeout: t.UDPStreamTimeout,
				UdpTimeout: t.UDPTimeout}
		}
		out = append(out, i)
	}
	switch {
	case len(spec.NetworkInterfaces) > 0:
		for _, n := range spec.NetworkInterfaces {
			add(n.NetworkCardIndex, n.DeviceIndex, string(n.InterfaceType))
		}
	case s.variant.EFAs > 0:
		for card := range int32(s.variant.EFAs) {
			add(card, min(card, 1), "efa")
		}
	case spec.AssociatePublicIPAddress != nil || spec.IPPrefixCount != nil || spec.ConnectionTracking != nil ||
		s.Cluster.IPv6():
		add(0, 0, string(awsv1.InterfaceTypeInterface))
	}
	return out
}

func (s *Spec) placement() *ec2types.LaunchTemplatePlacementRequest {
	if s.Group == nil && s.variant.Tenancy != string(ec2types.TenancyDedicated) {
		return nil
	}
	out := &ec2types.LaunchTemplatePlacementRequest{}
	if s.variant.Tenancy == string(ec2types.TenancyDedicated) {
		out.Tenancy = ec2types.TenancyDedicated
	}
	if s.Group != nil {
		out.GroupId = new(s.Group.ID)
		if n, err := strconv.ParseInt(s.variant.Partition, 10, 32); err == nil {
			out.PartitionNumber = new(int32(n))
		}
	}
	return out
}

func devices(list []*awsv1.BlockDeviceMapping) []ec2types.LaunchTemplateBlockDeviceMappingRequest {
	var out []ec2types.LaunchTemplateBlockDeviceMappingRequest
	for _, d := range list {
		m := ec2types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: d.DeviceName}
		if e := d.EBS; e != nil {
			m.Ebs = &ec2types.LaunchTemplateEbsBlockDeviceRequest{
				DeleteOnTermination: e.DeleteOnTermination, Encrypted: e.Encrypted, KmsKeyId: e.KMSKeyID,
				SnapshotId: e.SnapshotID,
				Iops:       toInt32(nonZero(e.IOPS)), Throughput: toInt32(nonZero(e.Throughput)),
				VolumeInitializationRate: e.VolumeInitializationRate,
			}
			if e.VolumeType != nil {
				m.Ebs.VolumeType = ec2types.VolumeType(*e.VolumeType)
			}
			if e.VolumeSize != nil {
				// EC2 counts in GiB
				m.Ebs.VolumeSize = new(int32(math.Ceil(e.VolumeSize.AsApproximateFloat64() / (1 << 30))))
			}
		}
		out = append(out, m)
	}
	return out
}

// nonZero is a number that 0 stands for none of: generated manifests write zeros, and EC2 refuses them.
func nonZero(n *int64) *int64 {
	if n != nil && *n == 0 {
		return nil
	}
	return n
}

func toInt32(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}

// metadata are the options of the instance metadata service; what is not said is what the contract says.
func metadata(o *awsv1.MetadataOptions) *ec2types.LaunchTemplateInstanceMetadataOptionsRequest {
	out := &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint:            ec2types.LaunchTemplateInstanceMetadataEndpointStateEnabled,
		HttpProtocolIpv6:        ec2types.LaunchTemplateInstanceMetadataProtocolIpv6Disabled,
		HttpPutResponseHopLimit: new(int32(1)),
		HttpTokens:              ec2types.LaunchTemplateHttpTokensStateRequired,
		// A tag's key with a slash in it, as ours have, can't be in the metadata: EC2 would refuse the launch.
		InstanceMetadataTags: ec2types.LaunchTemplateInstanceMetadataTagsStateDisabled,
	}
	if o == nil {
		return out
	}
	if o.HTTPEndpoint != nil {
		out.HttpEndpoint = ec2types.LaunchTemplateInstanceMetadataEndpointState(*o.HTTPEndpoint)
	}
	if o.HTTPProtocolIPv6 != nil {
		out.HttpProtocolIpv6 = ec2types.LaunchTemplateInstanceMetadataProtocolIpv6(*o.HTTPProtocolIPv6)
	}
	if o.HTTPPutResponseHopLimit != nil {
		out.HttpPutResponseHopLimit = toInt32(o.HTTPPutResponseHopLimit)
	}
	if o.HTTPTokens != nil {
		out.HttpTokens = ec2types.LaunchTemplateHttpTokensState(*o.HTTPTokens)
	}
	return out
}

// metadata are the options in the region of the variant.
func (s *Spec) metadata() *ec2types.LaunchTemplateInstanceMetadataOptionsRequest {
	out := metadata(s.Class.Spec.MetadataOptions)
	if s.variant.NoIPv6Metadata {
		out.HttpProtocolIpv6 = ""
	}
	return out
}

// TaintsOf are all taints that the claim's node starts with.
func TaintsOf(claim *v1.NodeClaim) []corev1.Taint {
	var out []corev1.Taint
	for _, list := range [][]v1.Taint{claim.Spec.Taints, claim.Spec.StartupTaints} {
		for _, t := range list {
			out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return out
}
