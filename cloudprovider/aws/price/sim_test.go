package price_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// refreshed is a book that has read its prices from a simulated account, with the real clients of the SDK.
func refreshed(t *testing.T) (*account.Account, *price.Book) {
	t.Helper()
	a, err := account.New(account.Options{Cluster: "prices", Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	config := a.Config(server.URL)
	b, err := price.NewBook("us-west-2", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	prices := pricing.NewFromConfig(config, func(o *pricing.Options) { o.Region = price.EndpointRegion("us-west-2") })
	if err := b.RefreshOnDemand(t.Context(), prices); err != nil {
		t.Fatal(err)
	}
	if err := b.RefreshSpot(t.Context(), ec2.NewFromConfig(config)); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestOverHTTP: every price that the simulated EC2 asks arrives.
func TestOverHTTP(t *testing.T) {
	a, b := refreshed(t)
	types, zones, err := catalog.Region("us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	list, err := catalog.Prices("us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, zone := range a.World.Zones() {
		open[zone.Name] = true
	}
	compared := 0
	for _, info := range types {
		name := string(info.InstanceType)
		for _, zone := range zones[name] {
			if !open[zone] {
				continue
			}
			want, sold := list.Spot(name, zone)
			if got, ok := b.Spot(name, zone); ok != sold || got != want {
				t.Errorf("%s in %s costs %v, %v as spot; want %v, %v", name, zone, got, ok, want, sold)
			}
			want, sold = list.OnDemand(name)
			if got, ok := b.OnDemand(name, zone); ok != sold || got != want {
				t.Errorf("%s in %s costs %v, %v; want %v, %v", name, zone, got, ok, want, sold)
			}
			compared++
		}
	}
	if compared < 1500 {
		t.Errorf("only %d offerings were compared", compared)
	}
}
