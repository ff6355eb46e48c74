package price

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// PricingAPI is what RefreshOnDemand asks; *pricing.Client is one.
type PricingAPI interface {
	GetProducts(context.Context, *pricing.GetProductsInput, ...func(*pricing.Options)) (*pricing.GetProductsOutput,
		error)
}

// EC2API is what RefreshSpot asks; *ec2.Client is one.
type EC2API interface {
	DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput,
		...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error)
}

// errNothing is an answer without a price: a source that has nothing to say is treated like one that doesn't answer,
// because the alternative is to believe that nothing is sold.
var errNothing = errors.New("the answer has no prices")

// RefreshOnDemand reads the region's on-demand prices for Linux from the Pricing API. It takes all or nothing: after an
// error the prices are what they were.
func (b *Book) RefreshOnDemand(ctx context.Context, api PricingAPI) error {
	prices := map[string]float64{}
	for _, product := range products() {
		found, err := b.readProducts(ctx, api, product)
		if err != nil {
			return refreshError(OnDemand, b.Age(OnDemand), err)
		}
		for name, price := range found {
			if _, known := prices[name]; !known {
				prices[name] = price
			}
		}
	}
	if len(prices) == 0 {
		return refreshError(OnDemand, b.Age(OnDemand), errNothing)
	}
	b.setOnDemand(prices)
	return nil
}

// product is a part of the price list.
type product struct{ family, tenancy string }

// products are the parts to read, the best first. Bare metal has a product family of its own. Its instances pay the
// price of the default tenancy; only where the list has none is it that of the dedicated one.
func products() []product {
	return []product{
		{"Compute Instance", "Shared"},
		{"Compute Instance (bare metal)", "Shared"},
		{"Compute Instance (bare metal)", "Dedicated"},
	}
}

func (b *Book) readProducts(ctx context.Context, api PricingAPI, p product) (map[string]float64, error) {
	found := map[string]float64{}
	input := &pricing.GetProductsInput{
		ServiceCode: aws.String("AmazonEC2"),
		Filters: filters(map[string]string{
			"regionCode":      b.region,
			"serviceCode":     "AmazonEC2",
			"productFamily":   p.family,
			"tenancy":         p.tenancy,
			"operatingSystem": "Linux",
			"preInstalledSw":  "NA",
			"capacitystatus":  "Used",
			"marketoption":    "OnDemand",
		}),
	}
	pages := pricing.NewGetProductsPaginator(api, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fault.Explain(fmt.Sprintf("asking the Pricing API for %q in %s", p.family, b.region), err)
		}
		for _, text := range page.PriceList {
			name, price, ok := readProduct(text, currency(b.region))
			if ok && price > found[name] {
				// Where the list has a type twice, the dearer entry is believed: thinking a node too dear costs less
				// than thinking it too cheap.
				found[name] = price
			}
		}
	}
	return found, nil
}

func filters(terms map[string]string) []pricingtypes.Filter {
	out := make([]pricingtypes.Filter, 0, len(terms))
	for _, field := range []string{"regionCode", "serviceCode", "productFamily", "tenancy", "operatingSystem",
		"preInstalledSw", "capacitystatus", "marketoption"} {
		out = append(out, pricingtypes.Filter{Field: aws.String(field), Type: pricingtypes.FilterTypeTermMatch,
			Value: aws.String(terms[field])})
	}
	return out
}

// currency is what a region's prices are in. China's are in yuan; they are compared only with each other.
func currency(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "CNY"
	}
	return "USD"
}

// entry is what we read of an item of a price list.
type entry struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// readProduct reads the price of one item; false for what is no price of an instance, such as an item that is free.
func readProduct(text, currency string) (instanceType string, price float64, ok bool) {
	var e entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return "", 0, false
	}
	for _, term := range e.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			value, err := strconv.ParseFloat(dimension.PricePerUnit[currency], 64)
			if err == nil && value > price {
				price = value
			}
		}
	}
	instanceType = e.Product.Attributes.InstanceType
	return instanceType, price, instanceType != "" && price > 0
}

// pageSize is the most that one call for the spot price history returns.
const pageSize = 1000

// RefreshSpot reads the present spot price of every type in every zone of the region. It takes all or nothing: after an
// error the prices are what they were.
func (b *Book) RefreshSpot(ctx context.Context, api EC2API) error {
	input := &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
		StartTime:           aws.Time(b.now()), // From now on: the price that holds now, and none that held before.
		MaxResults:          aws.Int32(pageSize),
	}
	newest := map[[2]string]ec2types.SpotPrice{}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(api, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return refreshError(Spot, b.Age(Spot), fault.Explain("asking for the spot price history", err))
		}
		for _, p := range page.SpotPriceHistory {
			key := [2]string{string(p.InstanceType), aws.ToString(p.AvailabilityZone)}
			if have, ok := newest[key]; !ok || aws.ToTime(p.Timestamp).After(aws.ToTime(have.Timestamp)) {
				newest[key] = p
			}
		}
	}
	prices := byZone(newest)
	if len(prices) == 0 {
		return refreshError(Spot, b.Age(Spot), errNothing)
	}
	b.setSpot(prices)
	return nil
}

func byZone(newest map[[2]string]ec2types.SpotPrice) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for key, p := range newest {
		value, err := strconv.ParseFloat(aws.ToString(p.SpotPrice), 64)
		if err != nil || value <= 0 {
			continue
		}
		if out[key[0]] == nil {
			out[key[0]] = map[string]float64{}
		}
		out[key[0]][key[1]] = value
	}
	return out
}

// RefreshEvery is how often prices should be read anew. On-demand prices change a few times a year; spot prices move
// within the hour, and a stale one leads consolidation to nodes that are no longer cheap.
func RefreshEvery(kind Kind) time.Duration {
	if kind == Spot {
		return 30 * time.Minute
	}
	return 12 * time.Hour
}
