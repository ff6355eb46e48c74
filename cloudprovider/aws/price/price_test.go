package price_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func book(t *testing.T) (*price.Book, *clock) {
	t.Helper()
	c := &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b, err := price.NewBook("us-west-2", c.now)
	if err != nil {
		t.Fatal(err)
	}
	return b, c
}

// products answers in pages, by the product family that is asked for.
type products struct {
	pages map[string][][]string
	err   error
	calls []map[string]string
}

func (p *products) GetProducts(_ context.Context, in *pricing.GetProductsInput,
	_ ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	asked := map[string]string{}
	for _, f := range in.Filters {
		asked[aws.ToString(f.Field)] = aws.ToString(f.Value)
	}
	p.calls = append(p.calls, asked)
	if p.err != nil {
		return nil, p.err
	}
	pages := p.pages[asked["productFamily"]+", "+asked["tenancy"]]
	page := 0
	if in.NextToken != nil {
		page = len(*in.NextToken)
	}
	out := &pricing.GetProductsOutput{}
	if page < len(pages) {
		out.PriceList = pages[page]
	}
	if page+1 < len(pages) {
		out.NextToken = aws.String(strings.Repeat("x", page+1))
	}
	return out, nil
}

func item(name, currency, dollars string) string {
	return fmt.Sprintf(`{"product": {"attributes": {"instanceType": %q}}, "terms": {"OnDemand": {"A.B": `+
		`{"priceDimensions": {"A.B.C": {"unit": "Hrs", "pricePerUnit": {%q: %q}}}}}}}`, name, currency, dollars)
}

const (
	shared    = "Compute Instance, Shared"
	metal     = "Compute Instance (bare metal), Shared"
	metalOnly = "Compute Instance (bare metal), Dedicated"
)

func TestEmbeddedUntilRefreshed(t *testing.T) {
	b, c := book(t)
	if p, ok := b.OnDemand("m5.large", "us-west-2a"); !ok || p != 0.096 {
		t.Errorf("m5.large costs %v, %v", p, ok)
	}
	spot, ok := b.Spot("m5.large", "us-west-2a")
	other, _ := b.Spot("m5.large", "us-west-2c")
	if !ok || spot <= 0 || spot >= 0.096 || spot != other {
		t.Errorf("m5.large as spot costs %v and %v; want one price below on-demand for all zones", spot, other)
	}
	if _, ok := b.Spot("m5.huge", "us-west-2a"); ok {
		t.Error("a type that doesn't exist has a spot price")
	}
	table, _ := price.Embedded("us-west-2")
	for _, kind := range []price.Kind{price.OnDemand, price.Spot} {
		if b.Live(kind) || b.Age(kind) != c.Sub(table.Date()) {
			t.Errorf("%s prices: live %v, age %v; want the table's", kind, b.Live(kind), b.Age(kind))
		}
	}
	local, ok := b.OnDemand("t3.medium", "us-west-2-lax-1a")
	regional, _ := b.OnDemand("t3.medium", "us-west-2a")
	if !ok || local <= regional {
		t.Errorf("t3.medium costs %v in a Local Zone and %v in the region", local, regional)
	}
	if p, ok := b.OnDemand("m5.large", "us-west-2-wl1-las-wlz-1"); !ok || p != 0.096 {
		t.Errorf("m5.large in a zone without a table costs %v, %v; want the region's price", p, ok)
	}
}

// TestSpotWithoutEmbeddedPrice: spot is taken to cost as much as on-demand until the history was read.
func TestSpotWithoutEmbeddedPrice(t *testing.T) {
	b, err := price.NewBook("af-south-1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	onDemand, _ := b.OnDemand("c5.large", "af-south-1a")
	if spot, ok := b.Spot("c5.large", "af-south-1a"); !ok || spot != onDemand {
		t.Errorf("spot %v, %v; want the on-demand price %v", spot, ok, onDemand)
	}
}

func TestRefreshOnDemand(t *testing.T) {
	b, c := book(t)
	api := &products{pages: map[string][][]string{
		shared: {
			{item("m5.large", "USD", "0.1000000000"), item("m5.xlarge", "USD", "0.0000000000"), "not JSON",
				item("", "USD", "1")},
			{item("new9.large", "USD", "0.3"), item("new9.large", "USD", "0.2"), item("yuan.large", "CNY", "0.3")},
		},
		metal:     {{item("m5.metal", "USD", "5")}},
		metalOnly: {{item("m5.metal", "USD", "6"), item("z9.metal", "USD", "7")}},
	}}
	before := b.Revision()
	if err := b.RefreshOnDemand(context.Background(), api); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"m5.large": 0.1, "new9.large": 0.3, "m5.metal": 5, "z9.metal": 7,
		"m5.xlarge": 0.192} {
		if p, ok := b.OnDemand(name, "us-west-2a"); !ok || p != want {
			t.Errorf("%s costs %v, %v; want %v", name, p, ok, want)
		}
	}
	if _, ok := b.OnDemand("yuan.large", "us-west-2a"); ok {
		t.Error("a price in another currency is taken for dollars")
	}
	if b.Revision() == before || !b.Live(price.OnDemand) || b.Live(price.Spot) || b.Age(price.OnDemand) != 0 {
		t.Errorf("revision %d, live %v, age %v", b.Revision(), b.Live(price.OnDemand), b.Age(price.OnDemand))
	}
	asked := api.calls[0]
	for field, want := range map[string]string{"regionCode": "us-west-2", "operatingSystem": "Linux",
		"tenancy": "Shared", "capacitystatus": "Used", "preInstalledSw": "NA", "marketoption": "OnDemand"} {
		if asked[field] != want {
			t.Errorf("asked for %s=%q, want %q", field, asked[field], want)
		}
	}

	c.Time = c.Add(time.Hour)
	before = b.Revision()
	if err := b.RefreshOnDemand(context.Background(), api); err != nil || b.Revision() != before ||
		b.Age(price.OnDemand) != 0 {
		t.Errorf("the same prices again: %v, revision %d after %d", err, b.Revision(), before)
	}
}

func TestFailuresKeepWhatIsKnown(t *testing.T) {
	b, c := book(t)
	good := &products{pages: map[string][][]string{shared: {{item("m5.large", "USD", "0.1")}}}}
	if err := b.RefreshOnDemand(context.Background(), good); err != nil {
		t.Fatal(err)
	}
	c.Time = c.Add(2 * time.Hour)
	denied := errors.New("AccessDeniedException")
	before := b.Revision()
	if err := b.RefreshOnDemand(context.Background(), &products{err: denied}); !errors.Is(err, denied) ||
		!strings.Contains(err.Error(), "2h0m0s ago") {
		t.Errorf("error %v; want the cause, and how old the prices are", err)
	}
	if err := b.RefreshOnDemand(context.Background(), &products{}); err == nil {
		t.Error("an empty price list is no error")
	}
	if err := b.RefreshSpot(context.Background(), &history{err: denied}); !errors.Is(err, denied) {
		t.Errorf("error %v", err)
	}
	if err := b.RefreshSpot(context.Background(), &history{}); err == nil {
		t.Error("an empty history is no error")
	}
	if p, _ := b.OnDemand("m5.large", "us-west-2a"); p != 0.1 || b.Revision() != before ||
		b.Age(price.OnDemand) != 2*time.Hour || b.Live(price.Spot) {
		t.Errorf("after failures: price %v, revision %d, age %v", p, b.Revision(), b.Age(price.OnDemand))
	}
	if _, ok := b.Spot("m5.large", "us-west-2a"); !ok {
		t.Error("after failures there is no spot price")
	}
}

// history answers in pages of two.
type history struct {
	prices []ec2types.SpotPrice
	err    error
	calls  []*ec2.DescribeSpotPriceHistoryInput
}

func (h *history) DescribeSpotPriceHistory(_ context.Context, in *ec2.DescribeSpotPriceHistoryInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	h.calls = append(h.calls, in)
	if h.err != nil {
		return nil, h.err
	}
	start := len(aws.ToString(in.NextToken))
	end := min(start+2, len(h.prices))
	out := &ec2.DescribeSpotPriceHistoryOutput{SpotPriceHistory: h.prices[start:end], NextToken: aws.String("")}
	if end < len(h.prices) {
		out.NextToken = aws.String(strings.Repeat("x", end))
	}
	return out, nil
}

func spotPrice(name, zone, dollars string, at time.Time) ec2types.SpotPrice {
	return ec2types.SpotPrice{InstanceType: ec2types.InstanceType(name), AvailabilityZone: &zone, SpotPrice: &dollars,
		Timestamp: &at}
}

func TestRefreshSpot(t *testing.T) {
	b, c := book(t)
	old, recent := c.Add(-time.Hour), c.Add(-time.Minute)
	api := &history{prices: []ec2types.SpotPrice{
		spotPrice("m5.large", "us-west-2a", "0.040000", recent),
		spotPrice("m5.large", "us-west-2a", "0.090000", old),
		spotPrice("m5.large", "us-west-2b", "0.030000", old),
		spotPrice("c5.large", "us-west-2a", "0.000000", old),
		spotPrice("new9.large", "us-west-2a", "0.020000", old),
	}}
	before := b.Revision()
	if err := b.RefreshSpot(context.Background(), api); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name, zone string
		price      float64
	}{
		{"m5.large", "us-west-2a", 0.04}, {"m5.large", "us-west-2b", 0.03}, {"new9.large", "us-west-2a", 0.02},
	} {
		if p, ok := b.Spot(want.name, want.zone); !ok || math.Abs(p-want.price) > 1e-9 {
			t.Errorf("%s in %s costs %v, %v; want %v", want.name, want.zone, p, ok, want.price)
		}
	}
	for _, none := range [][2]string{{"m5.large", "us-west-2c"}, {"c5.large", "us-west-2a"},
		{"r5.large", "us-west-2a"}} {
		if p, ok := b.Spot(none[0], none[1]); ok {
			t.Errorf("%s in %s costs %v, but the history has no price", none[0], none[1], p)
		}
	}
	if len(api.calls) != 3 || !aws.ToTime(api.calls[0].StartTime).Equal(c.Time) ||
		len(api.calls[0].ProductDescriptions) != 2 {
		t.Errorf("%d calls, the first %+v; want three pages from now on", len(api.calls), api.calls[0])
	}
	if b.Revision() == before || b.Age(price.Spot) != 0 || !b.Live(price.Spot) {
		t.Errorf("revision %d, age %v, live %v", b.Revision(), b.Age(price.Spot), b.Live(price.Spot))
	}
	before = b.Revision()
	if err := b.RefreshSpot(context.Background(), api); err != nil || b.Revision() != before {
		t.Errorf("the same prices again: %v, revision %d after %d", err, b.Revision(), before)
	}
}

func TestEndpointRegion(t *testing.T) {
	for region, want := range map[string]string{
		"us-west-2": "us-east-1", "sa-east-1": "us-east-1", "us-gov-west-1": "us-east-1", "eu-west-1": "eu-central-1",
		"ap-southeast-2": "ap-south-1", "cn-north-1": "cn-northwest-1", "me-south-1": "ap-south-1",
		"af-south-1": "eu-central-1",
	} {
		if got := price.EndpointRegion(region); got != want {
			t.Errorf("the prices of %s are asked in %s, want %s", region, got, want)
		}
	}
	if price.RefreshEvery(price.Spot) >= price.RefreshEvery(price.OnDemand) {
		t.Error("spot prices are refreshed no more often than on-demand prices")
	}
}
