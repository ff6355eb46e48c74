package ec2sim_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// TestWhatALaunchMayAsk holds launches against rules that EC2 has and that are easy to break.
func TestWhatALaunchMayAsk(t *testing.T) {
	b := newBench(t)
	card := func(card, device int32, kind string) ec2types.InstanceNetworkInterfaceSpecification {
		return ec2types.InstanceNetworkInterfaceSpecification{SubnetId: aws.String(b.net.Private[0]),
			Groups:           []string{b.net.SecurityGroup},
			NetworkCardIndex: aws.Int32(card), DeviceIndex: aws.Int32(device), InterfaceType: aws.String(kind)}
	}
	public := card(0, 0, "interface")
	public.AssociatePublicIpAddress = aws.Bool(false)
	for _, tc := range []struct {
		name, kind string
		change     func(*sdk.RunInstancesInput)
		want       string
	}{
		{"one interface that says whether it is public", "m5.large", func(r *sdk.RunInstancesInput) {
			r.NetworkInterfaces = []ec2types.InstanceNetworkInterfaceSpecification{public}
		}, "DryRunOperation"},
		{"two interfaces, one that says whether it is public", "m5.large", func(r *sdk.RunInstancesInput) {
			r.NetworkInterfaces = []ec2types.InstanceNetworkInterfaceSpecification{public, card(0, 1, "interface")}
		}, "InvalidParameterCombination"},
		{"a network card that is not there", "m5.large", func(r *sdk.RunInstancesInput) {
			r.NetworkInterfaces = []ec2types.InstanceNetworkInterfaceSpecification{card(0, 0, "interface"),
				card(1, 1, "interface")}
		}, "InvalidParameterValue"},
		{"more fabric adapters than there are", "c5n.18xlarge", func(r *sdk.RunInstancesInput) {
			r.NetworkInterfaces = []ec2types.InstanceNetworkInterfaceSpecification{card(0, 0, "efa"), card(0, 1, "efa")}
		}, "AttachmentLimitExceeded"},
		{"tags in the metadata", "m5.large", func(r *sdk.RunInstancesInput) {
			r.MetadataOptions = &ec2types.InstanceMetadataOptionsRequest{
				InstanceMetadataTags: ec2types.InstanceMetadataTagsStateEnabled,
			}
		}, "DryRunOperation"},
		{"a tag with a slash in the metadata", "m5.large", func(r *sdk.RunInstancesInput) {
			r.MetadataOptions = &ec2types.InstanceMetadataOptionsRequest{
				InstanceMetadataTags: ec2types.InstanceMetadataTagsStateEnabled,
			}
			r.TagSpecifications = []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeInstance,
				Tags: []ec2types.Tag{{Key: aws.String("a/b"), Value: aws.String("c")}}}}
		}, "InvalidParameterValue"},
	} {
		in := &sdk.RunInstancesInput{DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			InstanceType: ec2types.InstanceType(tc.kind), ImageId: aws.String(b.image)}
		tc.change(in)
		if len(in.NetworkInterfaces) == 0 {
			in.SubnetId = aws.String(b.net.Private[0])
		}
		if _, err := b.client.RunInstances(b.ctx, in); code(err) != tc.want {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}

// TestTerminateByZone protects an instance: EC2 ends none of its zone, and all of the others.
func TestTerminateByZone(t *testing.T) {
	b := newBench(t)
	b.template()
	var ids []string
	for _, zone := range []int{0, 0, 1} {
		out := b.mustFleet(b.fleet(onDemand, 1, b.override("m5.large", zone)))
		ids = append(ids, out.Instances[0].InstanceIds...)
	}
	if err := b.world.Protect(ids[0], true); err != nil {
		t.Fatal(err.Message)
	}
	_, err := b.client.TerminateInstances(b.ctx, &sdk.TerminateInstancesInput{InstanceIds: ids})
	b.wantCode(err, "OperationNotPermitted")
	for i, want := range []ec2types.InstanceStateName{"pending", "pending", "shutting-down"} {
		if got := b.describe(ids[i]).State.Name; got != want {
			t.Errorf("instance %d is %s, want %s", i, got, want)
		}
	}
}

// TestReservationIsForItsKind launches what a reservation was not made for.
func TestReservationIsForItsKind(t *testing.T) {
	for name, r := range map[string]ec2types.CapacityReservation{
		"windows":   {InstancePlatform: ec2types.CapacityReservationInstancePlatformWindows},
		"dedicated": {Tenancy: ec2types.CapacityReservationTenancyDedicated},
	} {
		b := newBench(t)
		b.template()
		r.InstanceType, r.AvailabilityZone, r.TotalInstanceCount = aws.String("m5.large"), aws.String("us-west-2a"),
			aws.Int32(1)
		id := b.world.AddReservation(r)
		if got := aws.ToString(b.describe(b.launch(onDemand)).CapacityReservationId); got == id {
			t.Errorf("%s: a plain machine sits in the reservation", name)
		}
	}
}

// TestVolumesThatStay looks at what is said of volumes that outlive their instance.
func TestVolumesThatStay(t *testing.T) {
	b := newBench(t)
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: aws.String("/dev/xvdb"),
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(10),
					DeleteOnTermination: aws.Bool(false)}},
			{DeviceName: aws.String("/dev/xvdc"),
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(10)}},
		}
	})
	for _, m := range b.describe(b.launch(onDemand)).BlockDeviceMappings {
		if stays := !*m.Ebs.DeleteOnTermination; stays != (*m.DeviceName == "/dev/xvdb") {
			t.Errorf("%s stays: %v", *m.DeviceName, stays)
		}
	}
}

// TestAddressesAreCountedLate launches into a subnet whose count of free addresses lags.
func TestAddressesAreCountedLate(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) { o.Config.Timing = cloud.Timing{AddressLag: time.Minute} })
	b.template()
	free := func() int32 {
		out, err := b.client.DescribeSubnets(b.ctx, &sdk.DescribeSubnetsInput{SubnetIds: []string{b.net.Private[0]}})
		if err != nil {
			t.Fatal(err)
		}
		return *out.Subnets[0].AvailableIpAddressCount
	}
	before := free()
	b.launch(onDemand)
	if now := free(); now != before {
		t.Errorf("right after a launch %d addresses are free, want %d as before", now, before)
	}
	b.clock.step(time.Minute)
	if now := free(); now != before-1 {
		t.Errorf("after a while %d addresses are free, want %d", now, before-1)
	}
}

// TestLaunchIsSeenBitByBit launches twenty together: they come to be seen one after the other.
func TestLaunchIsSeenBitByBit(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) { o.Config.Timing = cloud.Timing{Visibility: 10 * time.Second} })
	b.template()
	b.mustFleet(b.fleet(onDemand, 20, b.override("m5.large", 0)))
	seen := func() int {
		out, err := b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{MaxResults: aws.Int32(1000)})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range out.Reservations {
			n += len(r.Instances)
		}
		return n
	}
	b.clock.step(5*time.Second - time.Millisecond)
	if n := seen(); n != 0 {
		t.Errorf("%d are seen too early", n)
	}
	b.clock.step(2500 * time.Millisecond)
	if n := seen(); n == 0 || n == 20 {
		t.Errorf("%d of 20 are seen after a while, want some", n)
	}
	b.clock.step(2501 * time.Millisecond)
	if n := seen(); n != 20 {
		t.Errorf("%d of 20 are seen in the end", n)
	}
}
