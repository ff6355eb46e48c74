package cloud

import (
	"fmt"
	"maps"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// AddImage publishes an image. What the given one leaves open gets EC2's usual value: an id, this account as the owner,
// the time, x86_64, hvm, one 20 GiB root volume at /dev/xvda.
func (w *World) AddImage(image ec2types.Image) string {
	defer w.enter()()
	id := aws.ToString(image.ImageId)
	if id == "" {
		id = w.newID("ami")
	} else if w.tags[id] == nil {
		w.tags[id] = map[string]string{}
	}
	maps.Copy(w.tags[id], TagMap(image.Tags))
	image.Tags = nil
	image.ImageId = aws.String(id)
	w.fillImage(&image)
	w.images[id] = &image
	return id
}

func (w *World) fillImage(m *ec2types.Image) {
	orString := func(p **string, v string) {
		if *p == nil {
			*p = aws.String(v)
		}
	}
	orString(&m.OwnerId, w.cfg.Account)
	orString(&m.CreationDate, w.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	orString(&m.Name, *m.ImageId)
	orString(&m.RootDeviceName, "/dev/xvda")
	orString(&m.ImageLocation, *m.OwnerId+"/"+*m.Name)
	orString(&m.PlatformDetails, "Linux/UNIX")
	orString(&m.UsageOperation, "RunInstances")
	if m.Architecture == "" {
		m.Architecture = ec2types.ArchitectureValuesX8664
	}
	if m.State == "" {
		m.State = ec2types.ImageStateAvailable
	}
	if m.Public == nil {
		m.Public = aws.Bool(*m.OwnerId != w.cfg.Account)
	}
	if m.EnaSupport == nil {
		m.EnaSupport = aws.Bool(true)
	}
	m.VirtualizationType = ec2types.VirtualizationTypeHvm
	m.Hypervisor = ec2types.HypervisorTypeXen
	m.ImageType = ec2types.ImageTypeValuesMachine
	m.RootDeviceType = ec2types.DeviceTypeEbs
	if m.BlockDeviceMappings == nil {
		m.BlockDeviceMappings = []ec2types.BlockDeviceMapping{{
			DeviceName: m.RootDeviceName,
			Ebs: &ec2types.EbsBlockDevice{
				SnapshotId: aws.String(w.newID("snap")), VolumeSize: aws.Int32(20), VolumeType: ec2types.VolumeTypeGp3,
				DeleteOnTermination: aws.Bool(true), Encrypted: aws.Bool(false),
			},
		}}
	}
}

// RemoveImage deregisters an image.
func (w *World) RemoveImage(id string) *wire.Error {
	defer w.enter()()
	if w.images[id] == nil {
		return noSuchImage(id)
	}
	delete(w.images, id)
	delete(w.tags, id)
	return nil
}

// DeprecateImage sets the time from which an image is deprecated.
func (w *World) DeprecateImage(id string, at time.Time) *wire.Error {
	defer w.enter()()
	m := w.images[id]
	if m == nil {
		return noSuchImage(id)
	}
	m.DeprecationTime = aws.String(at.UTC().Format("2006-01-02T15:04:05.000Z"))
	return nil
}

// Images lists the images by id.
func (w *World) Images() []ec2types.Image {
	defer w.enter()()
	all := make([]ec2types.Image, 0, len(w.images))
	for id, m := range w.images {
		one := *m
		one.Tags = tagList(w.tags[id])
		all = append(all, one)
	}
	sort.Slice(all, func(a, b int) bool { return *all[a].ImageId < *all[b].ImageId })
	return all
}

func noSuchImage(id string) *wire.Error {
	return wire.Errorf("InvalidAMIID.NotFound", "The image id '%s' does not exist", fmt.Sprintf("[%s]", id))
}
