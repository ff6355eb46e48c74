package pricing_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

// document is the part of a product that a buyer reads.
type document struct {
	Product struct {
		ProductFamily string
		Attributes    map[string]string
	}
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string
				PricePerUnit map[string]string
			}
		}
	}
}

func (d document) dollars(t *testing.T) float64 {
	t.Helper()
	for _, offer := range d.Terms.OnDemand {
		for _, dimension := range offer.PriceDimensions {
			price, err := strconv.ParseFloat(dimension.PricePerUnit["USD"], 64)
			if err != nil || dimension.Unit != "Hrs" {
				t.Fatalf("%v: %v", dimension, err)
			}
			return price
		}
	}
	t.Fatalf("%v has no price", d)
	return 0
}

func filters(pairs ...string) []types.Filter {
	var all []types.Filter
	for n := 0; n < len(pairs); n += 2 {
		all = append(all, types.Filter{Type: types.FilterTypeTermMatch, Field: aws.String(pairs[n]),
			Value: aws.String(pairs[n+1])})
	}
	return all
}

// ask gets all products of all pages, and how many pages it were.
func ask(t *testing.T, client *pricing.Client, f []types.Filter) ([]document, int) {
	t.Helper()
	var all []document
	pages := 0
	p := pricing.NewGetProductsPaginator(client, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"),
		Filters: f})
	for p.HasMorePages() {
		out, err := p.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, text := range out.PriceList {
			var d document
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
	}
	return all, pages
}

func TestProducts(t *testing.T) {
	a, config := simtest.Start(t, account.Options{})
	config.Region = "us-east-1"
	client := pricing.NewFromConfig(config)
	linux := []string{"regionCode", "us-west-2", "operatingSystem", "Linux", "preInstalledSw", "NA", "tenancy",
		"Shared", "capacitystatus", "Used", "marketoption", "OnDemand"}
	one, _ := ask(t, client, filters(append(linux, "instanceType", "m5.large")...))
	if len(one) != 1 {
		t.Fatalf("%d products are the m5.large of Linux, want 1: %v", len(one), one)
	}
	want, _ := a.World.OnDemandPrice("m5.large")
	if got := one[0].dollars(t); math.Abs(got-want) > 1e-9 || want != 0.096 {
		t.Errorf("an m5.large costs %v, the world says %v, us-west-2 takes 0.096", got, want)
	}
	a.Prices.Set("m5.large", 0.2)
	one, _ = ask(t, client, filters(append(linux, "instanceType", "m5.large")...))
	if got := one[0].dollars(t); got != 0.2 {
		t.Errorf("after the price was changed it is %v", got)
	}
	all, pages := ask(t, client, filters(linux...))
	if len(all) < 500 || pages != (len(all)+99)/100 {
		t.Errorf("%d products on %d pages", len(all), pages)
	}
	metal, _ := ask(t, client, filters(append(linux, "productFamily", "Compute Instance (bare metal)")...))
	if len(metal) == 0 || metal[0].Product.Attributes["instanceType"] == "m5.large" {
		t.Errorf("bare metal is %v", metal)
	}
	elsewhere, _ := ask(t, client, filters("regionCode", "eu-west-1"))
	if len(elsewhere) != 0 {
		t.Errorf("the price list of us-west-2 has %d products of eu-west-1", len(elsewhere))
	}
}

func TestProductsRefused(t *testing.T) {
	_, config := simtest.Start(t, account.Options{})
	for region, in := range map[string]*pricing.GetProductsInput{
		"us-west-2":  {ServiceCode: aws.String("AmazonEC2")}, // has no endpoint
		"us-east-1":  {ServiceCode: aws.String("AmazonS4")},
		"ap-south-1": {ServiceCode: aws.String("AmazonEC2"), NextToken: aws.String("made up")},
	} {
		config.Region = region
		_, err := pricing.NewFromConfig(config).GetProducts(context.Background(), in)
		if api := smithy.APIError(nil); !errors.As(err, &api) {
			t.Errorf("%s answers %v", region, err)
		}
	}
}
