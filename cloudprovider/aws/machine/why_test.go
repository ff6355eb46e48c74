package machine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// A type that a class can't use says which field of the class is in its way.
func TestWhy(t *testing.T) {
	set := func(settings string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = kubelet(settings) }
	}
	for _, test := range []struct {
		name, kind string
		change     func(*awsv1.EC2NodeClass)
		want       string
	}{
		{"nothing", "m5.large", func(*awsv1.EC2NodeClass) {}, ""},
		{"no pods", "m5.large", set(`maxPods=0`), "can run no pod (spec.kubelet.maxPods is 0)"},
		{"all memory", "m5.large", set(`kubeReserved={"memory": "100Ti"}`), "have no memory left for pods " +
			"(spec.kubelet.kubeReserved.memory is 100Ti)"},
		{"most of the memory", "m5.large", set(`kubeReserved={"memory": "1Gi"}; systemReserved={"memory": "7Gi"}`),
			"spec.kubelet.systemReserved.memory is 7Gi"},
		{"all cores", "m5.large", set(`systemReserved={"cpu": "2"}`), "have no cpu left for pods " +
			"(spec.kubelet.systemReserved.cpu is 2)"},
		{"eviction", "m5.large", set(`evictionHard={"memory.available": "99%"}`),
			"(spec.kubelet.evictionHard.memory.available is 99%)"},
		{"a small machine", "t2.nano", set(
			`evictionHard={"memory.available": "1%"}; systemReserved={"memory": "300Mi"}`),
			"spec.kubelet.systemReserved.memory is 300Mi"},
		{"a machine that is too small anyway", "t2.nano", set(`evictionHard={"memory.available": "40%"}`),
			"have too little memory for a node"},
		{"a small disk", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"),
				EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("1Gi"))}}}
		}, "have no ephemeral-storage left for pods (the volumeSize in spec.blockDeviceMappings is 1Gi)"},
		{"a card that is not there", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.NetworkInterfaces = interfaces(awsv1.NetworkInterface{},
				awsv1.NetworkInterface{NetworkCardIndex: 99})
		}, "have no network card 99 (spec.networkInterfaces[1].networkCardIndex)"},
		{"a place that is not there", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.NetworkInterfaces = interfaces(awsv1.NetworkInterface{}, awsv1.NetworkInterface{DeviceIndex: 3})
		}, "have no place 3 on network card 0 (spec.networkInterfaces[1].deviceIndex)"},
		{"an adapter that is not there", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.NetworkInterfaces = interfaces(awsv1.NetworkInterface{}, awsv1.NetworkInterface{DeviceIndex: 1,
				InterfaceType: awsv1.InterfaceTypeEFAOnly})
		}, "can't have 1 Elastic Fabric Adapters (spec.networkInterfaces"},
		{"virtual machines", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: new("enabled")}
		}, "(spec.cpuOptions.nestedVirtualization)"},
		{"prefixes", "t2.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.IPPrefixCount = new(int32(1))
		}, "(spec.ipPrefixCount)"},
		{"tracking", "t2.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: new(int32(30))}
		}, "(spec.connectionTracking)"},
		{"another processor", "a1.large", func(*awsv1.EC2NodeClass) {}, "images of amiFamily AL2023"},
	} {
		class := classOf(awsv1.AMIFamilyAL2023)
		test.change(class)
		why, err := shapes().Why(infoOf(t, test.kind), class)
		if err != nil || !strings.Contains(why, test.want) || (test.want == "") != (why == "") {
			t.Errorf("%s: %s is ruled out by %q (%v), want %q", test.name, test.kind, why, err, test.want)
		}
		if usable := shape(t, shapes(), test.kind, class) != nil; usable != (why == "") {
			t.Errorf("%s: usable is %v and %q", test.name, usable, why)
		}
	}
}
