package cloud

import (
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// deviceName is what EC2 takes for the name of a device of a machine with hardware virtualization, which all of ours
// are.
var deviceName = regexp.MustCompile(`^(/dev/sda1|/dev/sd[b-z]|(/dev/)?xvd([a-z]|[a-d][a-z]))$`)

// volumeKind is what EC2 allows for a volume type.
type volumeKind struct {
	smallest, largest    int32   // GiB
	fewestIOPS, mostIOPS int32   // zero: they can't be chosen
	needsIOPS            bool    // they must be
	freeIOPS             int32   // what each volume has, whatever its size
	iopsPerGiB           float64 // at most, beyond the free ones
	throughput           bool    // it can be chosen
}

// What EC2 documents for EbsBlockDevice, in MiB/s.
const (
	leastThroughput, mostThroughput = 125, 2000
	throughputPerIOPS               = 0.25
)

// largestVolume is what the largest volumes of any type have, in GiB: 64 TiB.
const largestVolume = 65536

// kindOfVolume is what EC2 documents for EbsBlockDevice.
func kindOfVolume(kind ec2types.VolumeType) (volumeKind, bool) {
	switch kind {
	case ec2types.VolumeTypeGp3:
		return volumeKind{smallest: 1, largest: largestVolume, fewestIOPS: 3000, mostIOPS: 80000, freeIOPS: 3000,
			iopsPerGiB: 500, throughput: true}, true
	case ec2types.VolumeTypeGp2:
		return volumeKind{smallest: 1, largest: 16384}, true
	case ec2types.VolumeTypeIo1:
		return volumeKind{smallest: 4, largest: 16384, fewestIOPS: 100, mostIOPS: 64000, needsIOPS: true,
			iopsPerGiB: 50}, true
	case ec2types.VolumeTypeIo2:
		return volumeKind{smallest: 4, largest: largestVolume, fewestIOPS: 100, mostIOPS: 256000, needsIOPS: true,
			iopsPerGiB: 1000}, true
	case ec2types.VolumeTypeSt1, ec2types.VolumeTypeSc1:
		return volumeKind{smallest: 125, largest: 16384}, true
	case ec2types.VolumeTypeStandard:
		return volumeKind{smallest: 1, largest: 1024}, true
	}
	return volumeKind{}, false
}

// AddSnapshot makes a snapshot of so many GiB known, so that volumes can start from it; a new id is made if none is
// given.
func (w *World) AddSnapshot(id string, gib int32) (string, *wire.Error) {
	defer w.enter()()
	if id == "" {
		id = w.newID("snap")
	}
	if !wellFormed(id, "snap") {
		return "", malformedSnapshot(id)
	}
	if gib < 1 || gib > largestVolume {
		return "", wire.Errorf("InvalidParameterValue", "A snapshot has at least 1 GiB and at most %d, not %d.",
			largestVolume, gib)
	}
	w.snapshots[id] = gib
	return id, nil
}

// CheckDeviceName refuses a device without a name, and one with a name that no machine has.
func CheckDeviceName(name string) *wire.Error {
	if name == "" {
		return wire.Errorf("InvalidBlockDeviceMapping", "Missing device name")
	}
	if !deviceName.MatchString(name) {
		return wire.Errorf("InvalidBlockDeviceMapping", "Invalid device name %s", name)
	}
	return nil
}

// resolveDevices holds the volumes of a launch against EC2's rules.
func (w *World) resolveDevices(p *place) *wire.Error {
	seen := map[string]bool{}
	for i := range p.request.BlockDeviceMappings {
		m := &p.request.BlockDeviceMappings[i]
		name := aws.ToString(m.DeviceName)
		of, ofImage := imageVolume(p.image, name)
		if err := CheckDeviceName(name); err != nil && !ofImage {
			return err
		}
		if seen[name] {
			return wire.Errorf("InvalidBlockDeviceMapping", "%s is being assigned to multiple times.", name)
		}
		seen[name] = true
		if m.Ebs == nil {
			continue
		}
		if err := w.checkVolume(name, m.Ebs, of); err != nil {
			return err
		}
		if kind := m.Ebs.VolumeType; name == aws.ToString(p.image.RootDeviceName) && (kind == ec2types.VolumeTypeSt1 ||
			kind == ec2types.VolumeTypeSc1) {
			return bootsNothing(kind)
		}
	}
	return nil
}

// bootsNothing refuses a volume that no machine can boot from. The words are about IOPS, which nobody has asked for,
// but so are EC2's.
func bootsNothing(kind ec2types.VolumeType) *wire.Error {
	return wire.Errorf("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", kind)
}

// imageVolume is what an image says of a device.
func imageVolume(image *ec2types.Image, name string) (*ec2types.EbsBlockDevice, bool) {
	for i := range image.BlockDeviceMappings {
		if m := &image.BlockDeviceMappings[i]; aws.ToString(m.DeviceName) == name {
			return m.Ebs, true
		}
	}
	return nil, false
}

// checkVolume is the error for a volume that EC2 would not make. What the request leaves open is what the image says of
// the device, if it has it.
func (w *World) checkVolume(name string, asked, of *ec2types.EbsBlockDevice) *wire.Error {
	if aws.ToString(asked.KmsKeyId) != "" && !aws.ToBool(asked.Encrypted) {
		return wire.Errorf("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to "+
			"be set.")
	}
	size, err := w.sizeOf(name, asked, of)
	if err != nil {
		return err
	}
	kind, iops := asked.VolumeType, asked.Iops
	if kind == "" && of != nil {
		kind = of.VolumeType
	}
	if kind == "" {
		kind = ec2types.VolumeTypeGp2
	}
	rule, known := kindOfVolume(kind)
	switch {
	case !known:
		return wire.Errorf("InvalidParameterValue", "Value (%s) for parameter volumeType is invalid.", kind)
	case size < rule.smallest || size > rule.largest:
		return wire.Errorf("InvalidParameterValue", "Volume of %dGiB is invalid for volume type %s; must be between "+
			"%dGiB and %dGiB.", size, kind, rule.smallest, rule.largest)
	case rule.needsIOPS && iops == nil:
		return wire.Errorf("MissingParameter", "The parameter iops must be specified for %s volumes.", kind)
	case iops != nil && rule.mostIOPS == 0:
		return wire.Errorf("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", kind)
	case iops != nil && (*iops < rule.fewestIOPS || *iops > rule.mostIOPS):
		return wire.Errorf("InvalidParameterValue", "Volume iops of %d is out of range for volume type %s; it is %d "+
			"to %d.", *iops, kind, rule.fewestIOPS, rule.mostIOPS)
	case iops != nil && *iops > rule.freeIOPS && float64(*iops) > rule.iopsPerGiB*float64(size):
		return wire.Errorf("InvalidParameterValue", "Iops to volume size ratio of %f is too high; maximum is %g",
			float64(*iops)/float64(size), rule.iopsPerGiB)
	}
	return checkThroughput(name, asked, rule)
}

func checkThroughput(name string, asked *ec2types.EbsBlockDevice, rule volumeKind) *wire.Error {
	if asked.Throughput == nil {
		return nil
	}
	iops := max(rule.freeIOPS, aws.ToInt32(asked.Iops))
	switch throughput := *asked.Throughput; {
	case !rule.throughput:
		return wire.Errorf("InvalidBlockDeviceMapping", "throughput cannot be specified with the volumeType of "+
			"device '%s'", name)
	case throughput < leastThroughput || throughput > mostThroughput:
		return wire.Errorf("InvalidParameterValue", "Throughput of %d MiBps is out of range; it is %d to %d.",
			throughput, leastThroughput, mostThroughput)
	case float64(throughput) > throughputPerIOPS*float64(iops):
		return wire.Errorf("InvalidParameterValue", "Throughput (MiBps) to iops ratio of %f is too high; maximum is "+
			"%f MiBps per iops", float64(throughput)/float64(iops), throughputPerIOPS)
	}
	return nil
}

// sizeOf is a volume's size in GiB: as the request says, and not less than what the volume starts from.
func (w *World) sizeOf(name string, asked, of *ec2types.EbsBlockDevice) (int32, *wire.Error) {
	from, least := aws.ToString(asked.SnapshotId), int32(0)
	switch {
	case from != "":
		gib, err := w.snapshot(from)
		if err != nil {
			return 0, err
		}
		least = gib
	case of != nil:
		from, least = aws.ToString(of.SnapshotId), aws.ToInt32(of.VolumeSize)
	}
	if asked.VolumeSize == nil && least == 0 {
		return 0, wire.Errorf("InvalidBlockDeviceMapping", "Either snapshot ID or volume size must be provided for: %s",
			name)
	}
	if asked.VolumeSize == nil {
		return least, nil
	}
	if *asked.VolumeSize < least {
		return 0, wire.Errorf("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot '%s', "+
			"expect size>= %dGB", *asked.VolumeSize, from, least)
	}
	return *asked.VolumeSize, nil
}

// snapshot is the size of a snapshot: one that somebody added, or one that an image starts from. The lock is held.
func (w *World) snapshot(id string) (int32, *wire.Error) {
	if !wellFormed(id, "snap") {
		return 0, malformedSnapshot(id)
	}
	if gib, known := w.snapshots[id]; known {
		return gib, nil
	}
	for _, image := range w.images {
		for _, m := range image.BlockDeviceMappings {
			if m.Ebs != nil && aws.ToString(m.Ebs.SnapshotId) == id {
				return aws.ToInt32(m.Ebs.VolumeSize), nil
			}
		}
	}
	return 0, wire.Errorf("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", id)
}

func malformedSnapshot(id string) *wire.Error {
	return wire.Errorf("InvalidSnapshotID.Malformed", "Invalid id: %q (expecting \"snap-...\")", id)
}
