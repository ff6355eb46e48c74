// Package pricing is the price list of the simulated cloud, one product for each instance type, operating system and
// tenancy, in the wordy form in which AWS publishes prices.
package pricing

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Market is where the instance types and their prices come from. The world of package cloud is one.
type Market interface {
	Region() string
	InstanceTypes() []ec2types.InstanceTypeInfo
	OnDemandPrice(kind string) (float64, bool)
}

// Service is the price list. It is a wire.Service.
type Service struct {
	protocol.JSON
	market Market
}

// New makes a price list.
func New(market Market) *Service {
	s := &Service{market: market}
	s.JSON = protocol.JSON{Service: "pricing", Version: "1.1", Ops: map[string]protocol.Op{
		"GetProducts": protocol.On(s.products),
	}}
	return s
}

type filter struct{ Type, Field, Value string }

type productsIn struct {
	ServiceCode   string
	Filters       []filter
	FormatVersion string
	MaxResults    int
	NextToken     string
}

type productsOut struct {
	FormatVersion string
	NextToken     string `json:",omitempty"`
	PriceList     []string
}

// maxProducts is the longest page.
const maxProducts = 100

func (s *Service) products(c *wire.Call, in productsIn) (*productsOut, *wire.Error) {
	if !slices.Contains([]string{"us-east-1", "eu-central-1", "ap-south-1", "cn-northwest-1"}, c.Region) {
		return nil, wire.Errorf("AccessDeniedException", "The price list has no endpoint in %s: ask us-east-1, "+
			"eu-central-1 or ap-south-1.", c.Region)
	}
	if in.ServiceCode != "AmazonEC2" {
		return nil, wire.Errorf("InvalidParameterException", "The service code '%s' was not found in the price list "+
			"of the simulator.", in.ServiceCode)
	}
	if in.FormatVersion != "" && in.FormatVersion != "aws_v1" {
		return nil, wire.Errorf("InvalidParameterException", "Format version %s is not supported.", in.FormatVersion)
	}
	if in.MaxResults == 0 {
		in.MaxResults = maxProducts
	}
	if in.MaxResults < 1 || in.MaxResults > maxProducts {
		return nil, wire.Errorf("InvalidParameterException", "MaxResults must be between 1 and %d.", maxProducts)
	}
	found, err := s.search(in.Filters)
	if err != nil {
		return nil, err
	}
	part, next, ok := protocol.Page(found, in.NextToken, in.MaxResults)
	if !ok {
		return nil, wire.Errorf("InvalidNextTokenException", "The pagination token is invalid. Try again without a "+
			"pagination token.")
	}
	out := &productsOut{FormatVersion: "aws_v1", NextToken: next, PriceList: []string{}}
	for _, p := range part {
		text, err := json.Marshal(p.document())
		if err != nil {
			return nil, wire.Errorf("InternalErrorException", "%v", err)
		}
		out.PriceList = append(out.PriceList, string(text))
	}
	return out, nil
}

// product is one line of the list.
type product struct {
	attributes map[string]string
	family     string
	dollars    float64
	currency   string
}

// search lists the products that pass all filters.
func (s *Service) search(filters []filter) ([]product, *wire.Error) {
	for _, f := range filters {
		if !slices.Contains([]string{"TERM_MATCH", "EQUALS", "CONTAINS", "ANY_OF", "NONE_OF"}, f.Type) {
			return nil, wire.Errorf("InvalidParameterException", "Filter type %s is not supported.", f.Type)
		}
	}
	var found []product
	for _, info := range s.market.InstanceTypes() {
		dollars, ok := s.market.OnDemandPrice(string(info.InstanceType))
		if !ok {
			continue
		}
		for _, p := range s.variants(info, dollars) {
			if p.passes(filters) {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

// Windows costs this much more for each virtual CPU; an instance on hardware of one's own so many times the usual
// price.
const (
	windowsPerCPU  = 0.046
	dedicatedTimes = 1.06
)

// variants are the products of one type: two operating systems, two tenancies, and the reserved capacity that nobody
// uses, which costs the same and must not be counted twice.
func (s *Service) variants(info ec2types.InstanceTypeInfo, dollars float64) []product {
	cpus := 0.0
	if info.VCpuInfo != nil {
		cpus = float64(aws.ToInt32(info.VCpuInfo.DefaultVCpus))
	}
	var all []product
	for _, os := range []string{"Linux", "Windows"} {
		for _, tenancy := range []string{"Shared", "Dedicated"} {
			price := dollars
			if os == "Windows" {
				price += windowsPerCPU * cpus
			}
			if tenancy == "Dedicated" {
				price *= dedicatedTimes
			}
			for _, status := range []string{"Used", "UnusedCapacityReservation"} {
				all = append(all, s.product(info, os, tenancy, status, price))
			}
		}
	}
	return all
}

func (s *Service) product(info ec2types.InstanceTypeInfo, os, tenancy, status string, dollars float64) product {
	family, currency := "Compute Instance", "USD"
	if aws.ToBool(info.BareMetal) {
		family = "Compute Instance (bare metal)"
	}
	region := s.market.Region()
	if strings.HasPrefix(region, "cn-") {
		currency = "CNY"
	}
	return product{
		family: family, dollars: dollars, currency: currency,
		attributes: map[string]string{
			"servicecode": "AmazonEC2", "regionCode": region, "locationType": "AWS Region",
			"instanceType":    string(info.InstanceType),
			"operatingSystem": os, "preInstalledSw": "NA", "licenseModel": "No License required", "tenancy": tenancy,
			"capacitystatus": status, "marketoption": "OnDemand", "operation": "RunInstances",
		},
	}
}

// passes says whether a product passes all filters. Field names are taken in any case, as AWS does.
func (p product) passes(filters []filter) bool {
	for _, f := range filters {
		value := p.field(f.Field)
		ok := false
		switch f.Type {
		case "CONTAINS":
			ok = strings.Contains(value, f.Value)
		case "ANY_OF":
			ok = slices.Contains(strings.Split(f.Value, ","), value)
		case "NONE_OF":
			ok = !slices.Contains(strings.Split(f.Value, ","), value)
		default:
			ok = value == f.Value
		}
		if !ok {
			return false
		}
	}
	return true
}

func (p product) field(name string) string {
	switch strings.ToLower(name) {
	case "productfamily":
		return p.family
	case "servicecode":
		return p.attributes["servicecode"]
	}
	for key, value := range p.attributes {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// document is the product as it is printed.
func (p product) document() map[string]any {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, p.attributes) // maps print with sorted keys
	sku := fmt.Sprintf("%016X", h.Sum64())
	offer, rate := sku+".JRTCKXETXF", sku+".JRTCKXETXF.6YS6EN2CT7"
	return map[string]any{
		"product":     map[string]any{"productFamily": p.family, "attributes": p.attributes, "sku": sku},
		"serviceCode": "AmazonEC2",
		"terms": map[string]any{"OnDemand": map[string]any{offer: map[string]any{
			"offerTermCode": "JRTCKXETXF", "sku": sku, "termAttributes": map[string]string{},
			"priceDimensions": map[string]any{rate: map[string]any{
				"unit": "Hrs", "rateCode": rate, "beginRange": "0", "endRange": "Inf", "appliesTo": []string{},
				"pricePerUnit": map[string]string{p.currency: fmt.Sprintf("%.10f", p.dollars)},
			}},
		}}},
	}
}
