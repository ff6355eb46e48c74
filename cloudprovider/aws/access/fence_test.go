package access_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/access"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// The lease is lost in the pause between two attempts: the second is not sent. What only reads goes on.
func TestFenceIsAskedBeforeEachAttempt(t *testing.T) {
	a, config := simtest.Start(t, account.Options{})
	leads := true
	config.APIOptions = append(config.APIOptions, access.Fence(func() bool { return leads }))
	config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) {
				leads = false
				return 0, nil
			})
		})
	}
	api := ec2.NewFromConfig(config)
	a.Faults.Add(faults.Fault{Service: "ec2", Action: "TerminateInstances", Code: "Unavailable", Status: 503, Times: 1})
	_, err := api.TerminateInstances(t.Context(),
		&ec2.TerminateInstancesInput{InstanceIds: []string{"i-00000000000000001"}})
	if !errors.Is(err, fault.ErrFenced) || fault.Lost(err) {
		t.Errorf("%v, want it fenced, and nothing in doubt", err)
	}
	if n := a.Calls("ec2:TerminateInstances"); n != 1 {
		t.Errorf("%d attempts were sent, want 1", n)
	}
	if _, err := api.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{}); err != nil {
		t.Errorf("a read is fenced: %v", err)
	}
}
