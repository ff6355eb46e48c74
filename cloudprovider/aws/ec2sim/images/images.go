// Package images publishes machine images in the simulated cloud as Amazon does: under its accounts' names, for each
// architecture and variant, with public parameters that point to the newest.
package images

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The accounts that publish images.
const (
	eksOwner          = "602401143452"
	bottlerocketOwner = "092701018921"
	windowsOwner      = "801119661308"
)

// Registry takes images. The world of package cloud is one.
type Registry interface {
	AddImage(image ec2types.Image) string
	Now() time.Time
}

// Parameters takes public parameters. Package ssm has them.
type Parameters interface {
	Put(name, value string)
}

// Publisher publishes images for one Kubernetes version. Amazon stopped making AL2 images with Kubernetes 1.32; the
// simulator goes on, so that older manifests can be tried on a newer cluster.
type Publisher struct {
	Registry   Registry
	Parameters Parameters
	Kubernetes string // 1.33

	mu       sync.Mutex
	releases map[string]int // by family
}

// Release is what Publish made.
type Release struct {
	Family  string   `json:"family"`
	Version string   `json:"version"`
	Images  []string `json:"images"`
}

// Families are the families that can be published, by the names that aliases use.
func Families() []string {
	return []string{"al2", "al2023", "bottlerocket", "windows2019", "windows2022", "windows2025"}
}

// firstMinor is the minor version of the first Bottlerocket release here.
const firstMinor = 46

// Publish makes a new release of a family. It is created now, or, if age is given, that long ago; each release of a
// family has another version, the later the higher.
func (p *Publisher) Publish(family string, age time.Duration) (Release, error) {
	if !slices.Contains(Families(), family) {
		return Release{}, fmt.Errorf("publishing images of %q: the families are %v", family, Families())
	}
	p.mu.Lock()
	if p.releases == nil {
		p.releases = map[string]int{}
	}
	n := p.releases[family]
	p.releases[family]++
	p.mu.Unlock()
	created := p.Registry.Now().UTC().Add(-age)
	day := created.AddDate(0, 0, n) // two releases of one day need two names
	r := Release{Family: family, Version: "v" + day.Format("20060102")}
	var variants []variant
	switch family {
	case "al2":
		variants = p.al2(r.Version)
	case "al2023":
		variants = p.al2023(r.Version)
	case "bottlerocket":
		r.Version = fmt.Sprintf("1.%d.0", firstMinor+n)
		variants = p.bottlerocket(r.Version)
	default:
		r.Version = day.Format("2006.01.02")
		variants = []variant{p.windows(family, r.Version)}
	}
	for _, v := range variants {
		v.image.CreationDate = aws.String(created.Add(time.Duration(n) * time.Second).
			Format("2006-01-02T15:04:05.000Z"))
		id := p.Registry.AddImage(v.image)
		r.Images = append(r.Images, id)
		for _, name := range v.parameters {
			p.Parameters.Put(name, id)
		}
	}
	return r, nil
}

// variant is one image of a release with the parameters that name it.
type variant struct {
	image      ec2types.Image
	parameters []string
}

func linux(name, owner string, arch ec2types.ArchitectureValues) ec2types.Image {
	return ec2types.Image{
		Name: aws.String(name), OwnerId: aws.String(owner), ImageOwnerAlias: aws.String("amazon"), Architecture: arch,
		Description: aws.String(name),
	}
}

func (p *Publisher) al2(version string) []variant {
	var all []variant
	for _, v := range []struct {
		name, path string
		arch       ec2types.ArchitectureValues
	}{
		{"amazon-eks-node", "amazon-linux-2", ec2types.ArchitectureValuesX8664},
		{"amazon-eks-arm64-node", "amazon-linux-2-arm64", ec2types.ArchitectureValuesArm64},
		{"amazon-eks-gpu-node", "amazon-linux-2-gpu", ec2types.ArchitectureValuesX8664},
	} {
		name := fmt.Sprintf("%s-%s-%s", v.name, p.Kubernetes, version)
		path := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/", p.Kubernetes, v.path)
		all = append(all, variant{linux(name, eksOwner, v.arch), []string{path + "recommended/image_id", path + name +
			"/image_id"}})
	}
	return all
}

func (p *Publisher) al2023(version string) []variant {
	var all []variant
	for _, v := range []struct {
		arch  ec2types.ArchitectureValues
		kinds []string
	}{
		{ec2types.ArchitectureValuesX8664, []string{"standard", "nvidia", "neuron"}},
		{ec2types.ArchitectureValuesArm64, []string{"standard", "nvidia"}},
	} {
		for _, kind := range v.kinds {
			name := fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", v.arch, kind, p.Kubernetes, version)
			path := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", p.Kubernetes,
				v.arch, kind)
			all = append(all, variant{linux(name, eksOwner, v.arch), []string{path + "recommended/image_id", path +
				name + "/image_id"}})
		}
	}
	return all
}

func (p *Publisher) bottlerocket(version string) []variant {
	var all []variant
	for _, arch := range []ec2types.ArchitectureValues{ec2types.ArchitectureValuesX8664,
		ec2types.ArchitectureValuesArm64} {
		label := "x86_64"
		if arch == ec2types.ArchitectureValuesArm64 {
			label = "aarch64"
		}
		for _, kind := range []string{"", "-nvidia"} {
			line := "aws-k8s-" + p.Kubernetes + kind
			image := linux(fmt.Sprintf("bottlerocket-%s-%s-v%s", line, label, version), bottlerocketOwner, arch)
			image.BlockDeviceMappings = []ec2types.BlockDeviceMapping{disk("/dev/xvda", 2), disk("/dev/xvdb", 20)}
			path := fmt.Sprintf("/aws/service/bottlerocket/%s/%s/", line, arch)
			all = append(all, variant{image, []string{path + "latest/image_id", path + version + "/image_id"}})
		}
	}
	return all
}

func (p *Publisher) windows(family, version string) variant {
	line := fmt.Sprintf("Windows_Server-%s-English-Core-EKS_Optimized-%s", family[len("windows"):], p.Kubernetes)
	image := linux(line+"-"+version, windowsOwner, ec2types.ArchitectureValuesX8664)
	image.Platform = ec2types.PlatformValuesWindows
	image.PlatformDetails = aws.String("Windows")
	image.UsageOperation = aws.String("RunInstances:0002")
	image.RootDeviceName = aws.String("/dev/sda1")
	image.BlockDeviceMappings = []ec2types.BlockDeviceMapping{disk("/dev/sda1", 50)}
	return variant{image, []string{"/aws/service/ami-windows-latest/" + line + "/image_id"}}
}

func disk(device string, gib int32) ec2types.BlockDeviceMapping {
	return ec2types.BlockDeviceMapping{DeviceName: aws.String(device), Ebs: &ec2types.EbsBlockDevice{
		VolumeSize: aws.Int32(gib), VolumeType: ec2types.VolumeTypeGp3, DeleteOnTermination: aws.Bool(true),
		Encrypted: aws.Bool(false),
	}}
}
