// Package network finds what an EC2NodeClass selects of an account's network: subnets, security groups, capacity
// reservations and the placement group.
//
// It only reads, through four calls of EC2, and remembers answers for a short time: subnets for as long as the setting
// subnet-refresh-interval says, the rest for a minute. While EC2 is too busy to answer, an answer that is not too old
// is given again; any other failure is told. When nothing is found, Why... says what is there instead, so that the
// condition that a user reads names the fix.
package network

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// API is what is asked of EC2.
type API interface {
	DescribeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribeCapacityReservations(ctx context.Context, in *ec2.DescribeCapacityReservationsInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error)
	DescribePlacementGroups(ctx context.Context, in *ec2.DescribePlacementGroupsInput,
		opts ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error)
}

// DefaultRefresh is how long answers are remembered, unless Options say otherwise.
const DefaultRefresh = time.Minute

// Options are what a Finder works with.
type Options struct {
	API API
	// Cluster is the name of the cluster, which terms may stand for with a variable.
	Cluster string
	// SubnetRefresh is how long found subnets are remembered; 0 means DefaultRefresh.
	SubnetRefresh time.Duration
	// VPC is the id of the cluster's VPC, if it is known: when nothing is found, Why... looks for alternatives there.
	// Nil, and an empty id, mean the whole region.
	VPC func(ctx context.Context) string
	// Now tells the time.
	Now func() time.Time
}

// Finder finds parts of a network. It is safe for concurrent use.
type Finder struct {
	api     API
	cluster string
	vpc     func(ctx context.Context) string
	now     func() time.Time

	subnets      memory[[]Subnet]
	groups       memory[[]SecurityGroup]
	reservations memory[[]Reservation]
	placements   memory[*PlacementGroup]
}

// New returns a Finder that has looked at nothing yet.
func New(o Options) *Finder {
	if o.SubnetRefresh <= 0 {
		o.SubnetRefresh = DefaultRefresh
	}
	if o.VPC == nil {
		o.VPC = func(context.Context) string { return "" }
	}
	return &Finder{
		api: o.API, cluster: o.Cluster, vpc: o.VPC, now: o.Now,
		subnets:      memory[[]Subnet]{fresh: o.SubnetRefresh, now: o.Now, empty: none[Subnet]},
		groups:       memory[[]SecurityGroup]{fresh: DefaultRefresh, now: o.Now, empty: none[SecurityGroup]},
		reservations: memory[[]Reservation]{fresh: DefaultRefresh, now: o.Now, empty: none[Reservation]},
		placements: memory[*PlacementGroup]{fresh: DefaultRefresh, now: o.Now, empty: func(g *PlacementGroup) bool {
			return g == nil
		}},
	}
}

func none[T any](list []T) bool { return len(list) == 0 }

// pageSize is how many things one answer may hold at most; EC2 allows this many for every call that is used here.
const pageSize = 1000

// remembered is what the terms select: the memory's answer, or that of who is asked.
func remembered[T, Terms any](ctx context.Context, m *memory[[]T], terms Terms,
	ask func(context.Context, Terms) ([]T, error)) ([]T, error) {
	key, err := keyOf(terms)
	if err != nil {
		return nil, err
	}
	found, err := m.get(ctx, key, func(ctx context.Context) ([]T, error) { return ask(ctx, terms) })
	return slices.Clone(found), err
}

// keyOf is what an answer to these terms is remembered under.
func keyOf(terms any) (string, error) {
	text, err := json.Marshal(terms)
	if err != nil {
		return "", fmt.Errorf("writing selector terms: %w", err)
	}
	return string(text), nil
}

// tagFilters are EC2's filters for tags, of which all must match. A * stands for any value; a * or ? within a value is
// EC2's own wildcard.
func tagFilters(tags map[string]string) []ec2types.Filter {
	var filters []ec2types.Filter
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if tags[key] == "*" {
			filters = append(filters, filter("tag-key", key))
		} else {
			filters = append(filters, filter("tag:"+key, tags[key]))
		}
	}
	return filters
}

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: &name, Values: values}
}

func tagMap(tags []ec2types.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[deref(t.Key)] = deref(t.Value)
	}
	return out
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
