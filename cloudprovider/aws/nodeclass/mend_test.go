package nodeclass_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
)

// disks rehearses a launch with the class's disks.
type disks struct{ *world }

func (d disks) Rehearse(_ context.Context, class *awsv1.EC2NodeClass) ([]nodeclass.Call, error) {
	in := &ec2.RunInstancesInput{DryRun: new(true), MinCount: new(int32(1)), MaxCount: new(int32(1)),
		ImageId:      &class.Status.AMIs[0].ID,
		InstanceType: instanceTypeFor(&class.Status.AMIs[0]), SubnetId: &class.Status.Subnets[0].ID}
	for _, m := range class.Spec.BlockDeviceMappings {
		e := &ec2types.EbsBlockDevice{SnapshotId: m.EBS.SnapshotID, VolumeType: ec2types.VolumeType(*m.EBS.VolumeType)}
		if m.EBS.VolumeSize != nil {
			e.VolumeSize = new(int32((m.EBS.VolumeSize.Value() + 1<<30 - 1) >> 30))
		}
		in.BlockDeviceMappings = append(in.BlockDeviceMappings, ec2types.BlockDeviceMapping{DeviceName: m.DeviceName,
			Ebs: e})
	}
	return []nodeclass.Call{{Action: "ec2:RunInstances", Run: func(ctx context.Context) error {
		_, err := d.ec2.RunInstances(ctx, in)
		return err
	}}}, nil
}

// What EC2 refuses of a disk is told with the field and what to write there.
func TestRefusedDisksCarryAFix(t *testing.T) {
	const known, gone = "snap-0123456789abcdef0", "snap-0fffffffffffffff0"
	w := newWorld(t, account.Options{}, newClass())
	w.options.Rehearser = disks{w}
	w.keeper = nodeclass.New(w.options)
	if _, err := w.World.AddSnapshot(known, 50); err != nil {
		t.Fatal(err)
	}
	from := func(snapshot string, m *awsv1.BlockDeviceMapping) *awsv1.BlockDeviceMapping {
		m.EBS.SnapshotID = &snapshot
		return m
	}
	for i, tc := range []struct {
		disks         []*awsv1.BlockDeviceMapping
		reason, field string
		custom        bool
	}{
		{[]*awsv1.BlockDeviceMapping{sized("gp3", "20Gi"), beside(from(known, sized("gp3", "50Gi")))}, "", "", false},
		{[]*awsv1.BlockDeviceMapping{sized("gp3", "20Gi"), beside(from(gone, sized("gp3", "50Gi")))},
			"InvalidSnapshotNotFound",
			"write in spec.blockDeviceMappings[1].ebs.snapshotID a snapshot of this region", false},
		{[]*awsv1.BlockDeviceMapping{beside(sized("gp3", "20G")), sized("gp3", "20G")}, "InvalidBlockDeviceMapping",
			"make spec.blockDeviceMappings[1].ebs.volumeSize 20Gi or more", false},
		{[]*awsv1.BlockDeviceMapping{sized("gp3", "20Gi"), beside(from(known, sized("gp3", "20Gi")))},
			"InvalidBlockDeviceMapping",
			"make spec.blockDeviceMappings[1].ebs.volumeSize 50Gi or more", false},
		{[]*awsv1.BlockDeviceMapping{beside(sized("gp3", "20Gi")), sized("st1", "200Gi")},
			"InvalidParameterCombination",
			"EC2 boots from no volume of type st1; if the image boots from the device of " +
				"spec.blockDeviceMappings[1], write gp3", true},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w.update(func(c *awsv1.EC2NodeClass) {
				c.Spec.BlockDeviceMappings = tc.disks
				if tc.custom { // what its images boot from is not known before EC2 is asked
					c.Spec.AMIFamily = new(awsv1.AMIFamilyCustom)
				}
			})
			class, _, _ := w.look()
			c := condition(class, awsv1.ConditionTypeValidationSucceeded)
			if tc.reason == "" {
				if c.Status != metav1.ConditionTrue {
					t.Errorf("ValidationSucceeded is %+v", c)
				}
				return
			}
			if c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !strings.Contains(c.Message,
				"; fix: "+tc.field) {
				t.Errorf("ValidationSucceeded is %+v, want %s and %q", c, tc.reason, tc.field)
			}
		})
	}
}
