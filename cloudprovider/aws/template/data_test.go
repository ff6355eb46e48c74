package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// A zero is what generated manifests write for nothing. EC2 would refuse it, so it is not sent.
func TestZeroIsNotSent(t *testing.T) {
	for _, kind := range []*string{nil, new("gp3")} {
		disk := &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("20Gi")), VolumeType: kind, IOPS: new(int64(0)),
			Throughput: new(int64(0))}
		list := []*awsv1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"), EBS: disk}}
		if e := devices(list)[0].Ebs; e.Iops != nil || e.Throughput != nil {
			t.Errorf("zeros are sent as %d and %d", e.Iops, e.Throughput)
		}
		disk.IOPS, disk.Throughput = new(int64(4000)), new(int64(200))
		if e := devices(list)[0].Ebs; e.Iops == nil || *e.Iops != 4000 || e.Throughput == nil || *e.Throughput != 200 {
			t.Errorf("numbers are sent as %v and %v", e.Iops, e.Throughput)
		}
	}
}

// TestAddresses: prefixes and addresses are of the cluster's own kind, on every interface but one for the fabric alone.
func TestAddresses(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	class.Spec.IPPrefixCount = new(int32(2))
	class.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{
		{InterfaceType: awsv1.InterfaceTypeInterface}, {NetworkCardIndex: 1, DeviceIndex: 1,
			InterfaceType: awsv1.InterfaceTypeInterface},
		{NetworkCardIndex: 2, DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly},
	}
	for cidr, want := range map[string]string{
		"10.100.0.0/16": "prefixes 2 0, address 0; prefixes 2 0, address 0; prefixes 0 0, address 0",
		"fd00::/108":    "prefixes 0 2, address 1 primary; prefixes 0 2, address 1 primary; prefixes 0 0, address 0",
	} {
		var got []string
		for _, i := range (&Spec{Class: class, Cluster: family.Cluster{ServiceCIDR: cidr}}).interfaces() {
			text := fmt.Sprintf("prefixes %d %d, address %d", numberOf(i.Ipv4PrefixCount), numberOf(i.Ipv6PrefixCount),
				numberOf(i.Ipv6AddressCount))
			if i.PrimaryIpv6 != nil && *i.PrimaryIpv6 {
				text += " primary"
			}
			got = append(got, text)
		}
		if have := strings.Join(got, "; "); have != want {
			t.Errorf("services in %s: %s, want %s", cidr, have, want)
		}
	}
}

func numberOf(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// TestMetadataWithoutIPv6: in isolated regions EC2 refuses the option, whatever its value.
func TestMetadataWithoutIPv6(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	class.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPProtocolIPv6: new("enabled")}
	for without, want := range map[bool]string{false: "enabled", true: ""} {
		got := (&Spec{Class: class, variant: Variant{NoIPv6Metadata: without}}).metadata().
			HttpProtocolIpv6
		if string(got) != want {
			t.Errorf("without %v: %q, want %q", without, got, want)
		}
	}
}

// TestTemplateData looks at the parts of a launch template that follow from the class.
func TestTemplateData(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	class.Spec.AMIFamily = new(awsv1.AMIFamilyCustom)
	class.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}}
	class.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"),
		EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("100G"))}}}
	read := func(v Variant, cluster family.Cluster,
		group *network.PlacementGroup) *ec2types.RequestLaunchTemplateData {
		d, err := (&Spec{Class: class, variant: v, Cluster: cluster, Group: group,
			Tags: map[string]string{"a": "b"}}).data()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := read(Variant{ImageID: "ami-1"}, family.Cluster{}, nil)
	if len(d.NetworkInterfaces) != 0 || !slices.Equal(d.SecurityGroupIds, []string{"sg-1", "sg-2"}) {
		t.Errorf("a plain class has interfaces %v and groups %v", d.NetworkInterfaces, d.SecurityGroupIds)
	}
	if size := *d.BlockDeviceMappings[0].Ebs.VolumeSize; size != 94 {
		t.Errorf("100 GB are %d GiB, want 94", size)
	}
	if d.MetadataOptions.HttpTokens != ec2types.LaunchTemplateHttpTokensStateRequired ||
		*d.MetadataOptions.HttpPutResponseHopLimit != 1 {
		t.Errorf("metadata options are %+v", *d.MetadataOptions)
	}
	if d.Placement != nil || d.CapacityReservationSpecification != nil || len(d.TagSpecifications) != 1 {
		t.Errorf("a plain class has placement %v, reservation %v, tags %v", d.Placement,
			d.CapacityReservationSpecification, d.TagSpecifications)
	}
	d = read(Variant{EFAs: 3, Spot: true, Reservation: "cr-1", Block: true}, family.Cluster{}, nil)
	if len(d.NetworkInterfaces) != 3 || *d.NetworkInterfaces[2].NetworkCardIndex != 2 ||
		*d.NetworkInterfaces[2].DeviceIndex != 1 || *d.NetworkInterfaces[0].InterfaceType != "efa" {
		t.Errorf("three fabric adapters are %v", d.NetworkInterfaces)
	}
	if *d.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId != "cr-1" ||
		d.InstanceMarketOptions == nil || len(d.TagSpecifications) != 2 {
		t.Errorf("a block is bought by %v", d.CapacityReservationSpecification)
	}
	d = read(Variant{Reservation: "cr-1", Interruptible: true}, family.Cluster{}, nil)
	if d.InstanceMarketOptions == nil ||
		d.InstanceMarketOptions.MarketType != ec2types.MarketTypeInterruptibleCapacityReservation {
		t.Errorf("an interruptible reservation is bought by %v", d.InstanceMarketOptions)
	}
	d = read(Variant{Tenancy: "dedicated", Partition: "3"}, family.Cluster{ServiceCIDR: "fd00::/108"},
		&network.PlacementGroup{ID: "pg-1"})
	if *d.Placement.PartitionNumber != 3 || *d.Placement.GroupId != "pg-1" ||
		d.Placement.Tenancy != ec2types.TenancyDedicated {
		t.Errorf("the placement is %+v", *d.Placement)
	}
	if len(d.NetworkInterfaces) != 1 || !*d.NetworkInterfaces[0].PrimaryIpv6 {
		t.Errorf("a cluster of IPv6 has interfaces %v", d.NetworkInterfaces)
	}
}
