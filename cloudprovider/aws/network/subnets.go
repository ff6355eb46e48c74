package network

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// Subnet is a subnet that instances can stand in.
type Subnet struct {
	ID, Zone, ZoneID, VPC string
	// FreeIPs is how many addresses were free when it was read.
	FreeIPs int
	// PublicIPs tells that instances get a public address unless they are told otherwise.
	PublicIPs bool
	ReadAt    time.Time
}

// Subnets lists the subnets that the class selects, by zone and id. None is no error.
func (f *Finder) Subnets(ctx context.Context, class *awsv1.EC2NodeClass) ([]Subnet, error) {
	return remembered(ctx, &f.subnets, class.SubnetSelectorTermsIn(f.cluster), f.askSubnets)
}

// ForgetSubnet makes the next question for any class that uses the subnet go to EC2: it is full or gone.
func (f *Finder) ForgetSubnet(id string) {
	f.subnets.forget(func(found []Subnet) bool {
		return slices.ContainsFunc(found, func(s Subnet) bool { return s.ID == id })
	})
}

func (f *Finder) askSubnets(ctx context.Context, terms []awsv1.SubnetSelectorTerm) ([]Subnet, error) {
	read := f.now()
	byID := map[string]Subnet{}
	for _, filters := range subnetQueries(terms) {
		list, err := f.describeSubnets(ctx, filters)
		if err != nil {
			return nil, fault.Explain("finding the subnets of spec.subnetSelectorTerms", err)
		}
		for _, s := range list {
			if s.State != "" && s.State != ec2types.SubnetStateAvailable {
				continue
			}
			byID[deref(s.SubnetId)] = Subnet{
				ID: deref(s.SubnetId), Zone: deref(s.AvailabilityZone), ZoneID: deref(s.AvailabilityZoneId),
				VPC:     deref(s.VpcId),
				FreeIPs: int(deref(s.AvailableIpAddressCount)), PublicIPs: deref(s.MapPublicIpOnLaunch), ReadAt: read,
			}
		}
	}
	out := make([]Subnet, 0, len(byID))
	for _, s := range byID {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Subnet) int { return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// subnetQueries turns terms, of which any may match, into as few questions as possible. Ids are asked for by filter: if
// they were named, one that is gone would fail the question for all.
func subnetQueries(terms []awsv1.SubnetSelectorTerm) [][]ec2types.Filter {
	var queries [][]ec2types.Filter
	var ids []string
	for _, t := range terms {
		if t.ID != "" {
			ids = append(ids, t.ID)
		} else {
			queries = append(queries, tagFilters(t.Tags))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, []ec2types.Filter{filter("subnet-id", ids...)})
	}
	return queries
}

func (f *Finder) describeSubnets(ctx context.Context, filters []ec2types.Filter) ([]ec2types.Subnet, error) {
	var out []ec2types.Subnet
	in := &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: new(int32(pageSize))}
	for {
		page, err := f.api.DescribeSubnets(ctx, in)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Subnets...)
		if deref(page.NextToken) == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}
