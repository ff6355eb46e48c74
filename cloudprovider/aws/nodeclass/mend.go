package nodeclass

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// tooSmall is how EC2 says that a volume is smaller than what it starts from. It names the snapshot, which may be the
// image's, and not the device.
var tooSmall = regexp.MustCompile(
	`size (\d+) ?Gi?B is smaller than snapshot '?(snap-[0-9a-f]+)'?,? expect size ?>= ?(\d+) ?Gi?B`)

// noBoot is how EC2 says that it can't boot from a volume of the type, in words that are about something else.
var noBoot = regexp.MustCompile(`parameter iops is not supported for (st1|sc1) volumes`)

// fixDevice is what to write in spec.blockDeviceMappings so that a rehearsal which EC2 refused works: empty if the
// refusal is not about a volume that can be told from the others.
func fixDevice(class *awsv1.EC2NodeClass, refused *fault.Error) string {
	switch refused.Code {
	case "InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed":
		for i, d := range class.Spec.BlockDeviceMappings {
			if d != nil && d.EBS != nil && textOf(d.EBS.SnapshotID) != "" && strings.Contains(refused.Message,
				*d.EBS.SnapshotID) {
				return fmt.Sprintf("write in %s.ebs.snapshotID a snapshot of this region that is there and shared "+
					"with this account, or remove the field", deviceField(i))
			}
		}
	case "InvalidParameterCombination":
		said := noBoot.FindStringSubmatch(refused.Message)
		for i, d := range class.Spec.BlockDeviceMappings {
			if said != nil && d != nil && d.EBS != nil && textOf(d.EBS.VolumeType) == said[1] &&
				given(d.EBS.IOPS) == nil {
				return fmt.Sprintf("EC2 boots from no volume of type %s; if the image boots from the device of %s, "+
					"write gp3 in its ebs.volumeType", said[1], deviceField(i))
			}
		}
	case "InvalidBlockDeviceMapping":
		said := tooSmall.FindStringSubmatch(refused.Message)
		if said == nil {
			return ""
		}
		has, _ := strconv.ParseInt(said[1], 10, 64)
		if i := smallVolume(class, has, said[2]); i >= 0 {
			return fmt.Sprintf("make %s.ebs.volumeSize %sGi or more, the size of what the volume starts from",
				deviceField(i), said[3])
		}
	}
	return ""
}

// smallVolume is the place of the volume that EC2 means: the one that names the snapshot, else the one that the image
// boots from, else the first without a snapshot, of those with the size; -1 if there is none.
func smallVolume(class *awsv1.EC2NodeClass, gib int64, snapshot string) int {
	boot, best, rank := family.Of(class).BootDevice(), -1, 0
	for i, d := range class.Spec.BlockDeviceMappings {
		if d == nil || d.EBS == nil || gibOf(d.EBS) != gib {
			continue
		}
		fits := 0
		switch from := textOf(d.EBS.SnapshotID); {
		case from == snapshot:
			fits = 3
		case from != "":
		case textOf(d.DeviceName) == boot:
			fits = 2
		default:
			fits = 1
		}
		if fits > rank {
			best, rank = i, fits
		}
	}
	return best
}
