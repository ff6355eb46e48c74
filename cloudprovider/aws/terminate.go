package aws

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
)

const (
	// Who wants instances ended at about the same time shares a call.
	terminateIdle  = 20 * time.Millisecond
	terminateMax   = 250 * time.Millisecond
	terminateLimit = 30 * time.Second
	// maxTerminated is how many instances are ended in one call.
	maxTerminated = 500
)

type terminator = batch.Gatherer[string, string, struct{}]

// newTerminator returns what ends instances, many in a call. The key keeps those apart whose zone is in trouble.
func newTerminator(api EC2API, counted *metrics.EC2) *terminator {
	window := batch.Window{Idle: terminateIdle, Max: terminateMax, Items: maxTerminated}
	return batch.New(func(string) batch.Window {
		return window
	}, terminateLimit, func(ctx context.Context, _ string, ids []string) []batch.Answer[struct{}] {
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
	return fault.Code(err) != "" && !fault.Lost(err) && !fault.DidNothing(err)
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
