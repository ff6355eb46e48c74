package ec2

import (
	"fmt"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// products are the names under which Linux instances are priced.
func products() []ec2types.RIProductDescription {
	return []ec2types.RIProductDescription{ec2types.RIProductDescriptionLinuxUnix,
		ec2types.RIProductDescriptionLinuxUnixAmazonVpc}
}

func (s *Service) describeSpotPrices(_ *request,
	in *sdk.DescribeSpotPriceHistoryInput) (*sdk.DescribeSpotPriceHistoryOutput, *wire.Error) {
	start, end := s.world.Now(), s.world.Now()
	if in.StartTime != nil {
		start = *in.StartTime
	}
	if in.EndTime != nil {
		end = *in.EndTime
	}
	// Both names of the Linux product would double an answer that nobody narrows down; EC2 sends the plain one for a
	// VPC.
	wanted := in.ProductDescriptions
	if len(wanted) == 0 {
		wanted = []string{string(ec2types.RIProductDescriptionLinuxUnix)}
	}
	var all []ec2types.SpotPrice
	for _, p := range s.world.SpotHistory(texts(in.InstanceTypes), start, end) {
		if in.AvailabilityZone != nil && *in.AvailabilityZone != p.Zone {
			continue
		}
		for _, product := range products() {
			if slices.Contains(wanted, string(product)) {
				all = append(all, ec2types.SpotPrice{
					InstanceType: ec2types.InstanceType(p.Type), AvailabilityZone: aws.String(p.Zone),
					SpotPrice:          aws.String(p.Text()),
					ProductDescription: product, Timestamp: aws.Time(p.From),
				})
			}
		}
	}
	none := func(*ec2types.SpotPrice) []ec2types.Tag { return nil }
	all, err := filtered(all, in.Filters, none, spotAttribute)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b ec2types.SpotPrice) int { return compare(spotKey(&a), spotKey(&b)) })
	all, next, err := page(all, pages{1, 1000, 1000}, in.MaxResults, in.NextToken, spotKey)
	return &sdk.DescribeSpotPriceHistoryOutput{SpotPriceHistory: all, NextToken: next}, err
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// spotKey orders prices by type, zone and product, the newest first.
func spotKey(p *ec2types.SpotPrice) string {
	return fmt.Sprintf("%s/%s/%s/%020d", p.InstanceType, aws.ToString(p.AvailabilityZone), p.ProductDescription,
		math.MaxInt64-aws.ToTime(p.Timestamp).UnixNano())
}

func spotAttribute(p *ec2types.SpotPrice, filter string) ([]string, bool) {
	switch filter {
	case "availability-zone":
		return str(p.AvailabilityZone), true
	case "instance-type":
		return []string{string(p.InstanceType)}, true
	case "product-description":
		return []string{string(p.ProductDescription)}, true
	case "spot-price":
		return str(p.SpotPrice), true
	case "timestamp":
		return timestamp(p.Timestamp), true
	}
	return nil, false
}
