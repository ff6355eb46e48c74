package images_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/images"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

// shelf keeps parameters.
type shelf map[string]string

func (s shelf) Put(name, value string) { s[name] = value }

func TestPublish(t *testing.T) {
	world := cloud.New(cloud.Config{})
	names := shelf{}
	p := &images.Publisher{Registry: world, Parameters: names, Kubernetes: "1.33"}
	for _, family := range images.Families() {
		if _, err := p.Publish(family, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	first := map[string]string{}
	for _, name := range []string{
		"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id",
		"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/nvidia/recommended/image_id",
		"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/neuron/recommended/image_id",
		"/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id",
		"/aws/service/eks/optimized-ami/1.33/amazon-linux-2-arm64/recommended/image_id",
		"/aws/service/eks/optimized-ami/1.33/amazon-linux-2-gpu/recommended/image_id",
		"/aws/service/bottlerocket/aws-k8s-1.33/arm64/latest/image_id",
		"/aws/service/bottlerocket/aws-k8s-1.33-nvidia/x86_64/1.46.0/image_id",
		"/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.33/image_id",
	} {
		if names[name] == "" {
			t.Errorf("there is no parameter %s", name)
		}
		first[name] = names[name]
	}
	release, err := p.Publish("al2023", 0)
	if err != nil || len(release.Images) != 5 {
		t.Fatalf("got %+v, %v", release, err)
	}
	newest := "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"
	if names[newest] == first[newest] || names[newest] != release.Images[0] {
		t.Errorf("after a new release the parameter is %s, was %s, the release is %v", names[newest], first[newest],
			release.Images)
	}
	pinned := "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/" +
		"amazon-eks-node-al2023-x86_64-standard-1.33-" + release.Version + "/image_id"
	if names[pinned] != release.Images[0] {
		t.Errorf("the version's own parameter %s is %q", pinned, names[pinned])
	}
	unchanged := "/aws/service/bottlerocket/aws-k8s-1.33/arm64/latest/image_id"
	if names[unchanged] != first[unchanged] {
		t.Error("a release of one family changed another one's parameter")
	}
	if _, err := p.Publish("al3000", 0); err == nil {
		t.Error("a family that is none can be published")
	}
}

func TestNewerImagesAreNewer(t *testing.T) {
	clock := simtest.NewClock()
	a, _ := simtest.Start(t, account.Options{Clock: clock})
	var last string
	for n := range 3 {
		release, err := a.Images.Publish("bottlerocket", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range a.World.Images() {
			if aws.ToString(m.ImageId) != release.Images[0] {
				continue
			}
			if created := aws.ToString(m.CreationDate); created <= last {
				t.Errorf("release %d (%s) was created at %s, the one before at %s", n, release.Version, created, last)
			} else {
				last = created
			}
		}
	}
}
