package cloud_test

import (
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// TestZonesOf names zones as AWS does.
func TestZonesOf(t *testing.T) {
	for region, want := range map[string]cloud.Zone{
		"us-west-2":      {Name: "us-west-2b", ID: "usw2-az2"},
		"us-east-1":      {Name: "us-east-1b", ID: "use1-az2"},
		"eu-central-1":   {Name: "eu-central-1b", ID: "euc1-az2"},
		"ap-southeast-2": {Name: "ap-southeast-2b", ID: "apse2-az2"},
		"ap-northeast-1": {Name: "ap-northeast-1b", ID: "apne1-az2"},
		"us-gov-west-1":  {Name: "us-gov-west-1b", ID: "usgw1-az2"},
	} {
		if got := cloud.ZonesOf(region, 3)[1]; got != want {
			t.Errorf("%s: got %+v, want %+v", region, got, want)
		}
	}
}

// TestCapacityRules lets the last rule that matches count.
func TestCapacityRules(t *testing.T) {
	w := cloud.New(cloud.Config{})
	w.SetCapacity(cloud.CapacityRule{Type: "m5.*", Total: 3})
	w.SetCapacity(cloud.CapacityRule{Type: "m5.large", Zone: "us-west-2a", Market: cloud.Spot})
	for _, c := range []struct {
		kind, zone string
		market     cloud.Market
		want       int
	}{
		{"m5.large", "us-west-2a", cloud.Spot, 0},
		{"m5.large", "us-west-2a", cloud.OnDemand, 3},
		{"m5.large", "us-west-2b", cloud.Spot, 3},
		{"c5.large", "us-west-2a", cloud.Spot, cloud.Unlimited},
	} {
		if got := w.Free(c.kind, c.zone, c.market); got != c.want {
			t.Errorf("%s %s in %s: %d, want %d", c.market, c.kind, c.zone, got, c.want)
		}
	}
	w.ClearCapacity()
	if got := w.Free("m5.large", "us-west-2a", cloud.Spot); got != cloud.Unlimited {
		t.Errorf("without rules there is room for %d", got)
	}
}
