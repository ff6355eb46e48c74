package v1

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// stamped is a class whose hash Karpenter has published: the input has to be its very values, since the hash tells nothing
// about any other. They are data, and mean nothing.
func stamped() *EC2NodeClass {
	return &EC2NodeClass{Spec: EC2NodeClassSpec{
		Role:                     "role-1",
		Tags:                     map[string]string{"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
		Context:                  new("fake-context"),
		DetailedMonitoring:       new(false),
		AssociatePublicIPAddress: new(false),
		UserData:                 new("userdata-test-1"),
		MetadataOptions: &MetadataOptions{
			HTTPEndpoint: new("disabled"), HTTPProtocolIPv6: new("disabled"),
			HTTPPutResponseHopLimit: new(int64(1)), HTTPTokens: new("optional"),
		},
		BlockDeviceMappings: []*BlockDeviceMapping{
			{DeviceName: new("map-device-1"), EBS: &BlockDevice{
				DeleteOnTermination: new(false), Encrypted: new(false), IOPS: new(int64(0)), Throughput: new(int64(0)),
				KMSKeyID: new("fakeKMSKeyID"), SnapshotID: new("fakeSnapshot"), VolumeType: new("standard"),
				VolumeSize: resource.NewScaledQuantity(2, resource.Giga),
			}},
			{DeviceName: new("map-device-2")},
		},
	}}
}

// The numbers are those that Karpenter publishes for these inputs (version v6 of its hash): a cluster that it ran must not be
// rolled when Tenon takes over.
func TestHashIsTheContracts(t *testing.T) {
	cases := []struct {
		name   string
		change func(*EC2NodeClassSpec)
		want   string
	}{
		{"as it is", func(*EC2NodeClassSpec) {}, "11148166120438674859"},
		{"user data", func(s *EC2NodeClassSpec) { s.UserData = new("userdata-test-2") }, "11774429238106843388"},
		{"context", func(s *EC2NodeClassSpec) { s.Context = new("context-2") }, "2279761750428738028"},
		{"monitoring", func(s *EC2NodeClassSpec) { s.DetailedMonitoring = new(true) }, "1936848126751988570"},
		{"instance store", func(s *EC2NodeClassSpec) { s.InstanceStorePolicy = new(InstanceStorePolicyRAID0) }, "16697988646989909967"},
		{"public address", func(s *EC2NodeClassSpec) { s.AssociatePublicIPAddress = new(true) }, "16141801171825097963"},
		{"metadata endpoint", func(s *EC2NodeClassSpec) { s.MetadataOptions.HTTPEndpoint = new("enabled") }, "14969742554812447671"},
		{"metadata hops", func(s *EC2NodeClassSpec) { s.MetadataOptions.HTTPPutResponseHopLimit = new(int64(10)) }, "14046948658064232764"},
		{"volume size", func(s *EC2NodeClassSpec) {
			s.BlockDeviceMappings[0].EBS.VolumeSize = resource.NewScaledQuantity(10, resource.Giga)
		}, "10372902467896351912"},
		{"TCP timeout", func(s *EC2NodeClassSpec) {
			s.ConnectionTracking = &ConnectionTracking{TCPEstablishedTimeout: new(int32(300))}
		}, "1619669030802245540"},
		{"nested virtualization", func(s *EC2NodeClassSpec) {
			s.CPUOptions = &CPUOptions{NestedVirtualization: new("enabled")}
		}, "6157846767212910604"},
		{"an instance profile", func(s *EC2NodeClassSpec) {
			s.Role, s.InstanceProfile = "", new("test-instance-profile")
		}, "10323991363677716244"},
		{"disks in another order", func(s *EC2NodeClassSpec) {
			s.BlockDeviceMappings[0], s.BlockDeviceMappings[1] = s.BlockDeviceMappings[1], s.BlockDeviceMappings[0]
		}, "11148166120438674859"},
		{"selectors", func(s *EC2NodeClassSpec) {
			s.SubnetSelectorTerms = []SubnetSelectorTerm{{ID: "subnet-1"}}
			s.SecurityGroupSelectorTerms = []SecurityGroupSelectorTerm{{Name: "nodes"}}
			s.AMISelectorTerms = []AMISelectorTerm{{Name: "image"}}
			s.CapacityReservationSelectorTerms = []CapacityReservationSelectorTerm{{ID: "cr-1"}}
			s.IPPrefixCount = new(int32(4))
		}, "11148166120438674859"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			class := stamped()
			tc.change(&class.Spec)
			got, err := class.Hash("test-ca-bundle")
			if err != nil || got != tc.want {
				t.Errorf("hash is %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestHashSeesWhatIsNotInTheSpecsOwnHash(t *testing.T) {
	base, err := stamped().Hash("one")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := stamped().Hash("two")
	if other == base {
		t.Error("another certificate gives the same hash")
	}
	class := stamped()
	class.Spec.Kubelet = KubeletConfiguration{"maxPods": apiextensionsv1.JSON{Raw: []byte("20")}}
	if got, _ := class.Hash("one"); got == base {
		t.Error("a setting of the kubelet gives the same hash")
	}
	aliased, named := stamped(), stamped()
	aliased.Spec.AMISelectorTerms = []AMISelectorTerm{{Alias: "al2023@latest"}}
	named.Spec.AMISelectorTerms = aliased.Spec.AMISelectorTerms
	named.Spec.AMIFamily = new(AMIFamilyAL2023)
	a, _ := aliased.Hash("one")
	if n, _ := named.Hash("one"); n != a {
		t.Error("naming the alias's family gives another hash")
	}
	if a == base {
		t.Error("another family gives the same hash")
	}
}
