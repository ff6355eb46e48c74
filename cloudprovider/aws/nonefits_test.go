package aws_test

import (
	"strings"
	"testing"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// TestNoTypeFits: a class that can use no instance type is told which of its fields rules them out.
func TestNoTypeFits(t *testing.T) {
	w, p := start(t, setup{families: []string{"m5", "r6g"}})
	kubelet := func(name, value string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = awsv1.KubeletConfiguration{name: {Raw: []byte(value)}} }
	}
	for i, test := range []struct {
		change func(*awsv1.EC2NodeClass)
		want   []string
		never  string
	}{
		{kubelet("maxPods", "0"), []string{"can run no pod (spec.kubelet.maxPods is 0)"}, "amiSelectorTerms"},
		{kubelet("kubeReserved", `{"memory": "100Ti"}`), []string{"have no memory left for pods " +
			"(spec.kubelet.kubeReserved.memory is 100Ti)"}, "subnetSelectorTerms"},
		{func(c *awsv1.EC2NodeClass) {
			c.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{{InterfaceType: awsv1.InterfaceTypeInterface},
				{NetworkCardIndex: 99, InterfaceType: awsv1.InterfaceTypeInterface}}
		}, []string{"have no network card 99 (spec.networkInterfaces[1].networkCardIndex)"}, "amiSelectorTerms"},
		{func(c *awsv1.EC2NodeClass) {
			c.Status.AMIs = nil
		}, []string{"have no AMI that fits (spec.amiSelectorTerms)"}, "subnetSelectorTerms"},
		{func(c *awsv1.EC2NodeClass) {
			c.Status.AMIs = c.Status.AMIs[:1]
			for i := range c.Status.Subnets {
				c.Status.Subnets[i].Zone = "us-west-2-lax-1a"
			}
		}, []string{"are not sold in the zones of the subnets (spec.subnetSelectorTerms)", "have no AMI that fits " +
			"(spec.amiSelectorTerms)"}, "kubelet"},
	} {
		class := w.class()
		class.Generation = int64(i + 2)
		test.change(class)
		_, err := p.Rehearse(t.Context(), class)
		if err == nil {
			t.Errorf("%v: a launch is rehearsed", test.want)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), test.never) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want %q and nothing of %s", err, want, test.never)
			}
		}
	}
}
