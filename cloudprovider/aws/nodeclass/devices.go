package nodeclass

import (
	"fmt"
	"regexp"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// findings are what was seen at a class: what can't work, and what may well not.
type findings struct{ problems, doubts []string }

func (f *findings) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

func (f *findings) doubt(format string, args ...any) {
	f.doubts = append(f.doubts, fmt.Sprintf(format, args...))
}

// What EC2 takes for names of devices, ids of snapshots and keys.
var (
	deviceName = regexp.MustCompile(`^(/dev/)?((sd|xvd|hd)[a-z]{1,2}[0-9]{0,2}|nvme[0-9]+n[0-9]+)$`)
	snapshotID = regexp.MustCompile(`^snap-([0-9a-f]{8}|[0-9a-f]{17})$`)
	kmsKeyID   = regexp.MustCompile(`^(([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|mrk-[0-9a-fA-F]{32}|alias/.+)|arn:[^:]+:kms:[^:]*:[^:]*:(key|alias)/.+)$`)
)

// span is what EC2 takes of a number; none if it takes none at all.
type span struct{ least, most int64 }

// volumeKind is what EC2 takes of a type of volumes.
type volumeKind struct {
	size, iops, throughput span
	needsIOPS              bool
}

// volumeKinds are by name, with sizes in GiB and throughput in MiB a second.
func volumeKinds() map[string]volumeKind {
	return map[string]volumeKind{
		"gp3":      {size: span{1, 65536}, iops: span{3000, 80000}, throughput: span{125, 2000}},
		"gp2":      {size: span{1, 16384}},
		"io1":      {size: span{4, 16384}, iops: span{100, 64000}, needsIOPS: true},
		"io2":      {size: span{4, 65536}, iops: span{100, 256000}, needsIOPS: true},
		"st1":      {size: span{125, 16384}},
		"sc1":      {size: span{125, 16384}},
		"standard": {size: span{1, 1024}},
	}
}

// growth is by how much AWS may have raised a limit since this was written: beyond that a number can't be meant. Up to
// there EC2 is asked, and the user warned.
const growth = 4

// checkDevices looks at spec.blockDeviceMappings.
func checkDevices(class *awsv1.EC2NodeClass) findings {
	var out findings
	seen, boot := map[string]int{}, family.Of(class).BootDevice()
	for i, d := range class.Spec.BlockDeviceMappings {
		field := deviceField(i)
		if d == nil {
			out.problem("%s is empty; remove it", field)
			continue
		}
		switch name := textOf(d.DeviceName); {
		case name == "":
			out.problem("%s.deviceName is missing; write the name to attach the volume under, such as /dev/xvda", field)
		case !deviceName.MatchString(name):
			out.problem("%s.deviceName is %q, under which EC2 attaches nothing; write a name such as /dev/xvda or "+
				"/dev/sdb", field, name)
		default:
			if other, twice := seen[name]; twice {
				out.problem("%s.deviceName is %s, as is that of spec.blockDeviceMappings[%d]; change one", field,
					name, other)
			}
			seen[name] = i
		}
		if d.EBS == nil {
			out.doubt("%s has no ebs, so it says nothing of a volume; add ebs, or remove the mapping", field)
			continue
		}
		out.checkVolume(field+".ebs", d.EBS)
		if kind := textOf(d.EBS.VolumeType); (kind == "st1" || kind == "sc1") && textOf(d.DeviceName) == boot &&
			boot != "" {
			out.problem("%s.ebs.volumeType is %s, and EC2 boots from no such volume; write gp3 for %s, from which "+
				"images of %s boot", field, kind, boot, class.AMIFamily())
		}
	}
	return out
}

func deviceField(i int) string { return fmt.Sprintf("spec.blockDeviceMappings[%d]", i) }

// checkVolume looks at one volume. What the type decides is looked at only if the class names the type: the image's
// may hold otherwise.
func (f *findings) checkVolume(field string, v *awsv1.BlockDevice) {
	if id := textOf(v.SnapshotID); id != "" && !snapshotID.MatchString(id) {
		f.problem("%s.snapshotID is %q, which is no id of a snapshot; write one such as snap-0123456789abcdef0", field,
			id)
	}
	f.checkKey(field, v)
	kind, known := volumeKinds()[textOf(v.VolumeType)]
	if !known {
		return
	}
	iops, throughput := given(v.IOPS), given(v.Throughput)
	if iops == nil && kind.needsIOPS {
		f.problem("%s.iops is missing; volumes of type %s need it: write %d to %d", field, *v.VolumeType,
			kind.iops.least, kind.iops.most)
	}
	f.within(field+".iops", *v.VolumeType, iops, kind.iops)
	f.within(field+".throughput", *v.VolumeType, throughput, kind.throughput)
	if v.VolumeSize != nil {
		size := gibOf(v)
		f.within(field+".volumeSize in GiB", *v.VolumeType, &size, kind.size)
	}
}

// checkKey looks at the key that a volume is encrypted with. AWS looks it up only when the volume is made, and then the
// instance ends without a word, so it is worth a look before.
func (f *findings) checkKey(field string, v *awsv1.BlockDevice) {
	key := textOf(v.KMSKeyID)
	switch {
	case key == "":
	case !kmsKeyID.MatchString(key):
		f.problem("%s.kmsKeyID is %q, which names no key; write the key's id or ARN, or alias/ and its alias",
			field, key)
	case v.Encrypted == nil:
		f.doubt("%s.kmsKeyID has an effect on encrypted volumes only, and whether this one is depends on the "+
			"account; add encrypted: true", field)
	case !*v.Encrypted:
		f.problem("%s.kmsKeyID is set but encrypted is false, which EC2 refuses; set encrypted to true, or remove "+
			"kmsKeyID", field)
	}
}

// regionOf reads the region in the name of a zone, that of a Local Zone such as us-west-2-lax-1a included.
var regionOf = regexp.MustCompile(`^[a-z]+(-[a-z]+)+-[0-9]+`)

// doubtKeys lists the keys of volumes that are of another region than the class's subnets: EC2 finds only keys of its
// own. It is no more than a doubt: only AWS knows, and only once the volume is made.
func doubtKeys(class *awsv1.EC2NodeClass) []string {
	var f findings
	if len(class.Status.Subnets) == 0 {
		return nil
	}
	here := regionOf.FindString(class.Status.Subnets[0].Zone)
	for i, d := range class.Spec.BlockDeviceMappings {
		if d == nil || d.EBS == nil {
			continue
		}
		parts := strings.SplitN(textOf(d.EBS.KMSKeyID), ":", 6)
		if len(parts) == 6 && here != "" && parts[3] != "" && parts[3] != here {
			f.doubt("%s.ebs.kmsKeyID is a key of %s, and volumes of this class are made in %s; instances end right "+
				"after their launch if EC2 does not find the key there: write one of %s", deviceField(i), parts[3],
				here, here)
		}
	}
	return f.doubts
}

// within looks at a number that the type of a volume has a span for.
func (f *findings) within(field, kind string, value *int64, of span) {
	switch {
	case value == nil:
	case of == span{}:
		f.problem("%s can't be set for volumes of type %s; remove it, or use another volumeType", field, kind)
	case *value < of.least || *value > growth*of.most:
		f.problem("%s is %d; for volumes of type %s write %d to %d", field, *value, kind, of.least, of.most)
	case *value > of.most:
		f.doubt("%s is %d and EC2 is known to take at most %d for volumes of type %s; "+
			"launches fail if that still holds", field, *value, of.most, kind)
	}
}

// gibOf is the size of a volume as a launch asks for it: in whole GiB; 0 if it has none.
func gibOf(v *awsv1.BlockDevice) int64 {
	if v.VolumeSize == nil {
		return 0
	}
	const gib = 1 << 30
	return (v.VolumeSize.Value() + gib - 1) / gib
}

// given is a number as a launch takes it: 0 is the same as none.
func given(n *int64) *int64 {
	if n != nil && *n == 0 {
		return nil
	}
	return n
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
