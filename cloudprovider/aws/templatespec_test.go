package aws

import (
	"fmt"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// A zero is what generated manifests write for nothing. EC2 would refuse it, so it is not sent.
func TestZeroIsNotSent(t *testing.T) {
	for _, kind := range []*string{nil, new("gp3")} {
		disk := &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("20Gi")), VolumeType: kind, IOPS: new(int64(0)),
			Throughput: new(int64(0))}
		list := []*awsv1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"), EBS: disk}}
		if e := devices(list)[0].Ebs; e.Iops != nil || e.Throughput != nil {
			t.Errorf("zeros are sent as %d and %d", e.Iops, e.Throughput)
		}
		disk.IOPS, disk.Throughput = new(int64(4000)), new(int64(200))
		if e := devices(list)[0].Ebs; e.Iops == nil || *e.Iops != 4000 || e.Throughput == nil || *e.Throughput != 200 {
			t.Errorf("numbers are sent as %v and %v", e.Iops, e.Throughput)
		}
	}
}

// What a class may have of tags leaves room for all that the controller adds: package nodeclass and the reference count
// on it.
func TestTagsThatAreAdded(t *testing.T) {
	p := &Provider{clusterName: "lab"}
	for _, tc := range []struct {
		own      int
		name     bool // the user's tags have a Name
		together int  // how many claims a call can be for
	}{{32, false, 110}, {33, false, 99}, {41, false, 11}, {42, false, 0}, {43, false, 0}, {44, false, 0},
		{45, true, 0}} {
		class := &awsv1.EC2NodeClass{}
		class.Spec.Tags = map[string]string{}
		for i := range tc.own {
			class.Spec.Tags[fmt.Sprint(i)] = "x"
		}
		later := 1 // Name, when the node has joined
		if tc.name {
			delete(class.Spec.Tags, "0")
			class.Spec.Tags[awsv1.NameTagKey], later = "x", 0
		}
		s := &launchSpec{}
		s.Tags = p.tags(class, "general")
		if got := s.claimRoom(); got != tc.together {
			t.Errorf("%d tags leave room for %d claims, want %d", tc.own, got, tc.together)
		}
		claim := &v1.NodeClaim{}
		claim.Name, claim.UID = "general-1", "uid-1"
		r := &fleetRequest{token: "t", spec: s, requests: []*launchRequest{{claim: claim}}}
		for _, spec := range append(r.tagSpecs("0f0e0d0c-0b0a-4908-8706-050403020100"),
			(&template{name: "a", tags: s.Tags}).input().TagSpecifications...) {
			n := len(spec.Tags)
			if spec.ResourceType == ec2types.ResourceTypeInstance {
				n += later
			}
			if n > mostTags {
				t.Errorf("with %d tags of the user a %s has %d", tc.own, spec.ResourceType, n)
			}
		}
	}
}
