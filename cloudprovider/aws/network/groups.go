package network

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// SecurityGroup is a security group for instances.
type SecurityGroup struct{ ID, Name, VPC string }

// SecurityGroups lists the security groups that the class selects, by id. None is no error.
func (f *Finder) SecurityGroups(ctx context.Context, class *awsv1.EC2NodeClass) ([]SecurityGroup, error) {
	return remembered(ctx, &f.groups, class.SecurityGroupSelectorTermsIn(f.cluster), f.askGroups)
}

func (f *Finder) askGroups(ctx context.Context, terms []awsv1.SecurityGroupSelectorTerm) ([]SecurityGroup, error) {
	byID := map[string]SecurityGroup{}
	for _, filters := range groupQueries(terms) {
		list, err := f.describeGroups(ctx, filters)
		if err != nil {
			return nil, fault.Explain("finding the security groups of spec.securityGroupSelectorTerms", err)
		}
		for _, g := range list {
			byID[deref(g.GroupId)] = SecurityGroup{ID: deref(g.GroupId), Name: deref(g.GroupName), VPC: deref(g.VpcId)}
		}
	}
	out := make([]SecurityGroup, 0, len(byID))
	for _, g := range byID {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

func groupQueries(terms []awsv1.SecurityGroupSelectorTerm) [][]ec2types.Filter {
	var queries [][]ec2types.Filter
	var ids, names []string
	for _, t := range terms {
		switch {
		case t.ID != "":
			ids = append(ids, t.ID)
		case t.Name != "":
			names = append(names, t.Name)
		default:
			queries = append(queries, tagFilters(t.Tags))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, []ec2types.Filter{filter("group-id", ids...)})
	}
	if len(names) > 0 {
		queries = append(queries, []ec2types.Filter{filter("group-name", names...)})
	}
	return queries
}

func (f *Finder) describeGroups(ctx context.Context, filters []ec2types.Filter) ([]ec2types.SecurityGroup, error) {
	var out []ec2types.SecurityGroup
	in := &ec2.DescribeSecurityGroupsInput{Filters: filters, MaxResults: new(int32(pageSize))}
	for {
		page, err := f.api.DescribeSecurityGroups(ctx, in)
		if err != nil {
			return nil, err
		}
		out = append(out, page.SecurityGroups...)
		if deref(page.NextToken) == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}
