package family

import (
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// defaultSize is the size of the disk with pods' files, unless a class or the family says otherwise.
const defaultSize = "20Gi"

// Devices are the disks that instances of the class are launched with: the class's own, else the family's. An empty
// list means that the image's are left as they are.
func (f Family) Devices(class *awsv1.EC2NodeClass) []*awsv1.BlockDeviceMapping {
	var out []*awsv1.BlockDeviceMapping
	for _, own := range class.Spec.BlockDeviceMappings {
		out = append(out, own.DeepCopy())
	}
	if len(out) > 0 {
		return out
	}
	for _, d := range f.disks {
		out = append(out, &awsv1.BlockDeviceMapping{
			DeviceName: new(d.device),
			EBS: &awsv1.BlockDevice{
				DeleteOnTermination: new(true),
				Encrypted:           new(true),
				VolumeSize:          new(resource.MustParse(d.size)),
				VolumeType:          new("gp3"),
			},
		})
	}
	return out
}

// BootDevice is the device that the family's images boot from; empty if nothing is known of the image's disks.
func (f Family) BootDevice() string {
	if len(f.disks) == 0 {
		return ""
	}
	return f.disks[0].device
}

// EphemeralStorage is the size of the disk that holds pods' files, images and logs, if they are not on disks of the
// instance itself: the one that the class marks, else the one that the family puts them on. If the class says nothing
// of that one, or not its size because it starts from a snapshot, the family's default is expected.
func (f Family) EphemeralStorage(class *awsv1.EC2NodeClass) resource.Quantity {
	devices := f.Devices(class)
	for _, is := range []func(*awsv1.BlockDeviceMapping) bool{
		func(d *awsv1.BlockDeviceMapping) bool { return d.RootVolume },
		func(d *awsv1.BlockDeviceMapping) bool { return d.DeviceName != nil && *d.DeviceName == f.data },
	} {
		for _, d := range devices {
			if is(d) && sized(d) {
				return d.EBS.VolumeSize.DeepCopy()
			}
		}
	}
	for _, d := range f.disks {
		if d.device == f.data {
			return resource.MustParse(d.size)
		}
	}
	// Nothing is known of a Custom image's disks. By custom the last one is for data.
	if last := len(devices) - 1; last >= 0 && sized(devices[last]) {
		return devices[last].EBS.VolumeSize.DeepCopy()
	}
	return resource.MustParse(defaultSize)
}

func sized(d *awsv1.BlockDeviceMapping) bool { return d.EBS != nil && d.EBS.VolumeSize != nil }
