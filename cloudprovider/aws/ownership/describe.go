package ownership

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
)

const (
	callIdle  = 20 * time.Millisecond
	callMax   = 250 * time.Millisecond
	callLimit = 30 * time.Second
	// mostIDs is how many values EC2 takes in one filter.
	mostIDs = 200
)

type describer = batch.Gatherer[struct{}, string, *ec2types.Instance]

// newDescriber returns what finds instances by id, many in a call; nil for one that EC2 does not know. They are asked
// for by a filter: an unknown id then is no error that would hide the others.
func newDescriber(api ec2.DescribeInstancesAPIClient, counted *metrics.EC2) *describer {
	window := batch.Window{Idle: callIdle, Max: callMax, Items: mostIDs}
	return batch.New(func(struct{}) batch.Window {
		return window
	}, callLimit, func(ctx context.Context, _ struct{}, ids []string) []batch.Answer[*ec2types.Instance] {
		began := time.Now()
		defer func() { counted.Gathered("describe_instances", len(ids), time.Since(began)) }()
		found := map[string]*ec2types.Instance{}
		pages := ec2.NewDescribeInstancesPaginator(api, &ec2.DescribeInstancesInput{
			Filters:    []ec2types.Filter{{Name: new("instance-id"), Values: ids}},
			MaxResults: new(int32(pageSize)),
		})
		var failed error
		for pages.HasMorePages() && failed == nil {
			page, err := pages.NextPage(ctx)
			if err != nil {
				failed = fault.Explain("describing instances", err)
				break
			}
			for _, r := range page.Reservations {
				for i := range r.Instances {
					found[aws.ToString(r.Instances[i].InstanceId)] = &r.Instances[i]
				}
			}
		}
		out := make([]batch.Answer[*ec2types.Instance], len(ids))
		for i, id := range ids {
			out[i] = batch.Answer[*ec2types.Instance]{Value: found[id], Err: failed}
		}
		return out
	})
}
