package aws

import (
	"context"
	"fmt"
	"regexp"
	"strings"
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
	// maxTerminated is how many instances are ended in one call.
	maxTerminated = 500
)

type (
	describer  = batch.Gatherer[struct{}, string, *ec2types.Instance]
	terminator = batch.Gatherer[string, string, struct{}]
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

// newDescriber returns what finds instances by id, many in a call; nil for one that EC2 does not know. They are asked
// for by a filter: an unknown id then is no error that would hide the others.
func newDescriber(api EC2API, counted *metrics.EC2) *describer {
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

// newTerminator returns what ends instances, many in a call. The key keeps those apart whose zone is in trouble.
func newTerminator(api EC2API, counted *metrics.EC2) *terminator {
	window := batch.Window{Idle: callIdle, Max: callMax, Items: maxTerminated}
	return batch.New(func(string) batch.Window {
		return window
	}, callLimit, func(ctx context.Context, _ string, ids []string) []batch.Answer[struct{}] {
		began := time.Now()
		defer func() { counted.Gathered("terminate_instances", len(ids), time.Since(began)) }()
		failures := map[string]error{}
		terminateAll(ctx, api, ids, failures)
		out := make([]batch.Answer[struct{}], len(ids))
		for i, id := range ids {
			out[i].Err = fault.Explain("terminating instance "+id, failures[id])
		}
		return out
	})
}

// terminateAll ends the instances and notes those that it can't. EC2 ends none of a zone if it can't end one: then
// those that it names are left out, or, if it names none, each half is tried alone, so that one bad apple costs few
// calls.
func terminateAll(ctx context.Context, api EC2API, ids []string, failures map[string]error) {
	for len(ids) > 0 {
		_, err := api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		if err == nil {
			return
		}
		bad, good := ids, []string(nil)
		if isAboutSome(err) {
			bad, good = partition(ids, func(id string) bool { return strings.Contains(err.Error(), id) })
		}
		if len(bad) == 0 {
			half := len(good) / 2
			terminateAll(ctx, api, good[:half], failures)
			ids = good[half:]
			if half == 0 {
				failures[good[0]] = err
				return
			}
			continue
		}
		for _, id := range bad {
			failures[id] = err
		}
		ids = good
	}
}

// isAboutSome tells whether the error is about some of the instances, so that others can be ended.
func isAboutSome(err error) bool {
	return fault.Code(err) != "" && !fault.Lost(err) && !didNothing(err)
}

func partition(ids []string, is func(string) bool) (those, others []string) {
	for _, id := range ids {
		if is(id) {
			those = append(those, id)
		} else {
			others = append(others, id)
		}
	}
	return those, others
}
