package ec2sim_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const (
	gp2, gp3, io1, io2, st1 = ec2types.VolumeTypeGp2, ec2types.VolumeTypeGp3, ec2types.VolumeTypeIo1,
		ec2types.VolumeTypeIo2, ec2types.VolumeTypeSt1
	fine = "DryRunOperation"
)

// mapping is a volume of 100 GiB at /dev/xvdb, changed.
func mapping(change func(*ec2types.BlockDeviceMapping)) ec2types.BlockDeviceMapping {
	m := ec2types.BlockDeviceMapping{DeviceName: aws.String("/dev/xvdb"),
		Ebs: &ec2types.EbsBlockDevice{VolumeSize: aws.Int32(100), VolumeType: gp3}}
	change(&m)
	return m
}

// volume changes only the volume.
func volume(change func(*ec2types.EbsBlockDevice)) ec2types.BlockDeviceMapping {
	return mapping(func(m *ec2types.BlockDeviceMapping) { change(m.Ebs) })
}

func named(name string) ec2types.BlockDeviceMapping {
	return mapping(func(m *ec2types.BlockDeviceMapping) { m.DeviceName = aws.String(name) })
}

// performing is a volume of a type with IOPS and throughput; 0 leaves them open.
func performing(kind ec2types.VolumeType, iops, throughput int32) ec2types.BlockDeviceMapping {
	return volume(func(e *ec2types.EbsBlockDevice) {
		e.VolumeType = kind
		if iops != 0 {
			e.Iops = aws.Int32(iops)
		}
		if throughput != 0 {
			e.Throughput = aws.Int32(throughput)
		}
	})
}

func from(snapshot string, gib int32) ec2types.BlockDeviceMapping {
	return volume(func(e *ec2types.EbsBlockDevice) {
		e.SnapshotId, e.VolumeSize = aws.String(snapshot), nil
		if gib != 0 {
			e.VolumeSize = aws.Int32(gib)
		}
	})
}

// large is a volume of 200 GiB of a type.
func large(kind ec2types.VolumeType, name string) ec2types.BlockDeviceMapping {
	return mapping(func(m *ec2types.BlockDeviceMapping) {
		m.DeviceName, m.Ebs.VolumeType, m.Ebs.VolumeSize = aws.String(name), kind, aws.Int32(200)
	})
}

// TestVolumesThatEC2WouldNotMake rehearses launches with volumes, good ones and bad ones.
func TestVolumesThatEC2WouldNotMake(t *testing.T) {
	b := newBench(t)
	known, failed := b.world.AddSnapshot("", 50)
	if failed != nil {
		t.Fatal(failed)
	}
	for name, tc := range map[string]struct {
		m    ec2types.BlockDeviceMapping
		want string
	}{
		"plain":                 {named("/dev/xvdb"), fine},
		"the root of the image": {named("/dev/xvda"), fine},
		"a name of Windows":     {named("xvdf"), fine},
		"an older name":         {named("/dev/sdf"), fine},
		"without a name": {mapping(func(m *ec2types.BlockDeviceMapping) {
			m.DeviceName = nil
		}), "InvalidBlockDeviceMapping"},
		"a fruit":     {named("banana"), "InvalidBlockDeviceMapping"},
		"a partition": {named("/dev/sdf1"), "InvalidBlockDeviceMapping"},
		"no size and no snapshot": {volume(func(e *ec2types.EbsBlockDevice) {
			e.VolumeSize = nil
		}), "InvalidBlockDeviceMapping"},
		"from a snapshot":          {from(known, 0), fine},
		"larger than its snapshot": {from(known, 51), fine},
		"less than its snapshot":   {from(known, 49), "InvalidBlockDeviceMapping"},
		"from no snapshot's id":    {from("hello", 0), "InvalidSnapshotID.Malformed"},
		"from an unknown snapshot": {from("snap-0123456789abcdef0", 0), "InvalidSnapshot.NotFound"},
		"io1 without iops":         {performing(io1, 0, 0), "MissingParameter"},
		"io2 without iops":         {performing(io2, 0, 0), "MissingParameter"},
		"io1 with iops":            {performing(io1, 5000, 0), fine},
		"io1, too many for 100GiB": {performing(io1, 5001, 0), "InvalidParameterValue"},
		"gp2 with iops":            {performing(gp2, 300, 0), "InvalidParameterCombination"},
		"st1, too small":           {performing(st1, 0, 0), "InvalidParameterValue"},
		"st1 beside the root":      {large(st1, "/dev/xvdb"), fine},
		"st1 to boot from":         {large(st1, "/dev/xvda"), "InvalidParameterCombination"},
		"sc1 to boot from":         {large(ec2types.VolumeTypeSc1, "/dev/xvda"), "InvalidParameterCombination"},
		"gp3 with all":             {performing(gp3, 8000, 2000), fine},
		"gp3, too few iops":        {performing(gp3, 2999, 0), "InvalidParameterValue"},
		"gp3, too many iops":       {performing(gp3, 80001, 0), "InvalidParameterValue"},
		"gp2 with throughput":      {performing(gp2, 0, 125), "InvalidBlockDeviceMapping"},
		"too little throughput":    {performing(gp3, 0, 124), "InvalidParameterValue"},
		"too much throughput":      {performing(gp3, 0, 100000), "InvalidParameterValue"},
		"throughput beyond iops":   {performing(gp3, 3000, 751), "InvalidParameterValue"},
		"a type that is none":      {performing("gp9", 0, 0), "InvalidParameterValue"},
		"a key": {volume(func(e *ec2types.EbsBlockDevice) {
			e.KmsKeyId, e.Encrypted = aws.String("alias/mine"), aws.Bool(true)
		}), fine},
		"a key, not encrypted": {volume(func(e *ec2types.EbsBlockDevice) {
			e.KmsKeyId, e.Encrypted = aws.String("alias/mine"), aws.Bool(false)
		}), "InvalidParameterDependency"},
	} {
		in := &sdk.RunInstancesInput{
			DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large",
			ImageId:  aws.String(b.image),
			SubnetId: aws.String(b.net.Private[0]), BlockDeviceMappings: []ec2types.BlockDeviceMapping{tc.m},
		}
		if _, err := b.client.RunInstances(b.ctx, in); code(err) != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	in := &sdk.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large",
		ImageId:  aws.String(b.image),
		SubnetId: aws.String(b.net.Private[0]), BlockDeviceMappings: []ec2types.BlockDeviceMapping{named("/dev/xvdb"),
			named("/dev/xvdb")},
	}
	_, err := b.client.RunInstances(b.ctx, in)
	b.wantCode(err, "InvalidBlockDeviceMapping")
}

// TestFleetWithABadVolume makes a template that only a launch finds to be wrong, as EC2 does, but for a device without
// a name.
func TestFleetWithABadVolume(t *testing.T) {
	b := newBench(t)
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: aws.String("/dev/xvdb"),
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(10), VolumeType: io1}},
		}
	})
	out := b.mustFleet(b.fleet(onDemand, 1, b.override("m5.large", 0)))
	if got := fleetText(out); got != "!MissingParameter:m5.large/a" {
		t.Errorf("the fleet got %s", got)
	}
	_, err := b.client.CreateLaunchTemplate(b.ctx, &sdk.CreateLaunchTemplateInput{
		DryRun: aws.Bool(true), LaunchTemplateName: aws.String("another"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(10)},
			}},
		},
	})
	b.wantCode(err, "InvalidBlockDeviceMapping")
}

// TestVolumeOfASnapshot has the snapshot's size unless the launch says another.
func TestVolumeOfASnapshot(t *testing.T) {
	b := newBench(t)
	snapshot, failed := b.world.AddSnapshot("snap-0123456789abcdef0", 50)
	if failed != nil {
		t.Fatal(failed)
	}
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: aws.String("/dev/xvdb"),
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{SnapshotId: aws.String(snapshot)}},
		}
	})
	b.launch(onDemand)
	for _, v := range b.world.Instances()[0].Volumes {
		if v.Device == "/dev/xvdb" && v.SizeGiB != 50 {
			t.Errorf("the volume has %d GiB", v.SizeGiB)
		}
	}
}
