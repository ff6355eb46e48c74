package v1

import (
	"encoding/json"
	"testing"
)

// sample is a class that says something about nearly everything.
const sample = `{
	"amiFamily": "AL2023",
	"amiSelectorTerms": [{"alias": "al2023@v20260101"}],
	"subnetSelectorTerms": [{"tags": {"tier": "private"}}],
	"securityGroupSelectorTerms": [{"name": "nodes"}],
	"role": "tenon-nodes",
	"tags": {"team": "harbour", "stage": "test"},
	"context": "line-7",
	"detailedMonitoring": false,
	"associatePublicIPAddress": false,
	"userData": "#!/bin/sh\nsysctl -w vm.max_map_count=262144\n",
	"metadataOptions": {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 2,
	 "httpTokens": "required"},
	"blockDeviceMappings": [
		{"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {"volumeSize": "40Gi", "volumeType": "gp3", "iops": 4000,
		 "throughput": 200, "encrypted": true, "deleteOnTermination": true, "kmsKeyID": "alias/nodes"}},
		{"deviceName": "/dev/xvdb", "ebs": {"snapshotID": "snap-0123456789abcdef0"}}
	]
}`

// changed is the sample with some fields replaced.
func changed(t *testing.T, change string) *EC2NodeClass {
	t.Helper()
	spec := map[string]any{}
	for _, text := range []string{sample, change} {
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	class := &EC2NodeClass{}
	if err := json.Unmarshal(text, &class.Spec); err != nil {
		t.Fatal(err)
	}
	return class
}

// A cluster that Karpenter ran must not be rolled when Tenon takes over. The numbers are not ours: they came out when
// the types of Karpenter's own module (github.com/aws/karpenter-provider-aws, v1.14.1) were filled with these specs and
// hashed as version v6 of the hash does it.
func TestHashIsTheContracts(t *testing.T) {
	for _, tc := range []struct{ name, change, want string }{
		{"as it is", `{}`, "11696600754692833682"},
		{"user data", `{"userData": "#!/bin/sh\n"}`, "7260655390273863626"},
		{"context", `{"context": "line-8"}`, "3459277107083631471"},
		{"monitoring", `{"detailedMonitoring": true}`, "4858693530977527016"},
		{"instance store", `{"instanceStorePolicy": "RAID0"}`, "11522453162940802446"},
		{"public address", `{"associatePublicIPAddress": true}`, "13994479261504737802"},
		{"tags", `{"tags": {"team": "quay", "stage": "test"}}`, "17403689561991813235"},
		{"metadata", `{"metadataOptions": {"httpTokens": "optional"}}`, "2924719024117985934"},
		{"one disk", `{"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "41Gi"}}]}`,
			"1150603833637679452"},
		{"a size in other words",
			`{"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "41984Mi"}}]}`,
			"1150603833637679452"},
		{"connection tracking", `{"connectionTracking": {"tcpEstablishedTimeout": 600, "udpTimeout": 45}}`,
			"11970666613196056604"},
		{"nested virtualization", `{"cpuOptions": {"nestedVirtualization": "enabled"}}`, "3873457042725722219"},
		{"network interfaces", `{"networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": ` +
			`"interface"}, {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}]}`,
			"11737985236995937832"},
		{"placement group", `{"placementGroupSelector": {"name": "near"}}`, "13952937542765880486"},
		{"an instance profile", `{"role": null, "instanceProfile": "nodes"}`, "13301501593593175743"},
		{"another family", `{"amiFamily": "Bottlerocket", "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}`,
			"16286107538799901822"},
		{"address prefixes", `{"ipPrefixCount": 4}`, "11696600754692833682"},
		{"selectors", `{"subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}], "securityGroupSelectorTerms": ` +
			`[{"id": "sg-0123456789abcdef0"}], "capacityReservationSelectorTerms": [{"id": "cr-0123456789abcdef0"}]}`,
			"11696600754692833682"},
		{"kubelet settings", `{"kubelet": {"maxPods": 20, "kubeReserved": {"cpu": "100m"}}}`, "5153262375107207036"},
		{"disks in another order", `{"blockDeviceMappings": [{"deviceName": "/dev/xvdb", "ebs": {"snapshotID": ` +
			`"snap-0123456789abcdef0"}}, {"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {"volumeSize": ` +
			`"40Gi", "volumeType": "gp3", "iops": 4000, "throughput": 200, "encrypted": true, "deleteOnTermination": ` +
			`true, "kmsKeyID": "alias/nodes"}}]}`, "11696600754692833682"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := changed(t, tc.change).Hash("Y2VydA==")
			if err != nil || got != tc.want {
				t.Errorf("hash is %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestHashSeesWhatIsNotInTheSpecsOwnHash(t *testing.T) {
	hash := func(change, bundle string) string {
		t.Helper()
		got, err := changed(t, change).Hash(bundle)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := hash(`{}`, "one")
	if hash(`{}`, "two") == base {
		t.Error("another certificate gives the same hash")
	}
	if hash(`{"amiFamily": null, "amiSelectorTerms": [{"alias": "al2023@latest"}]}`, "one") != base {
		t.Error("leaving the alias's family out gives another hash")
	}
	if hash(`{"amiFamily": null, "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}`, "one") == base {
		t.Error("another family gives the same hash")
	}
}
