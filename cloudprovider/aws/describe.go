package aws

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	callIdle  = 20 * time.Millisecond
	callMax   = 250 * time.Millisecond
	callLimit = 30 * time.Second
	// mostEnded is how many instances are ended in one call.
	mostEnded = 500
)

type (
	describer = batch.Gatherer[struct{}, string, *ec2types.Instance]
	ender     = batch.Gatherer[struct{}, string, struct{}]
)

var idPattern = regexp.MustCompile(`^aws:///[^/]*/(i-[0-9a-f]+)$`)

// providerID is what the node of the instance will carry.
func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }

// instanceID reads a provider id.
func instanceID(providerID string) (string, error) {
	m := idPattern.FindStringSubmatch(providerID)
	if m == nil {
		return "", fmt.Errorf("reading the provider id %q: want aws:///<zone>/i-…", providerID)
	}
	return m[1], nil
}

// newDescriber returns what finds instances by id, many in a call; nil for one that EC2 does not know. They are asked for
// by a filter: an unknown id then is no error that would hide the others.
func newDescriber(api EC2API) *describer {
	window := batch.Window{Idle: callIdle, Max: callMax, Items: mostNames}
	return batch.New(func(struct{}) batch.Window { return window }, callLimit, func(ctx context.Context, _ struct{}, ids []string) []batch.Answer[*ec2types.Instance] {
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
					found[text(r.Instances[i].InstanceId)] = &r.Instances[i]
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

// newEnder returns what ends instances, many in a call.
func newEnder(api EC2API) *ender {
	window := batch.Window{Idle: callIdle, Max: callMax, Items: mostEnded}
	return batch.New(func(struct{}) batch.Window { return window }, callLimit, func(ctx context.Context, _ struct{}, ids []string) []batch.Answer[struct{}] {
		out := make([]batch.Answer[struct{}], len(ids))
		_, err := api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		if err == nil {
			return out
		}
		for i, id := range ids {
			// EC2 ends none of them if it can't end one: then each is asked for alone.
			if alone := err; len(ids) > 1 && fault.Code(err) != "" && !fault.IsThrottled(err) && !fault.IsUnauthorized(err) {
				_, alone = api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
				out[i].Err = fault.Explain("terminating instance "+id, alone)
				continue
			}
			out[i].Err = fault.Explain("terminating instance "+id, err)
		}
		return out
	})
}
