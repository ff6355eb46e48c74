package aws

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
)

// stubborn ends all instances but one, and none together with that one. It does not say which it is.
type stubborn struct {
	EC2API
	one   string
	calls int
	ended []string
}

func (s *stubborn) TerminateInstances(_ context.Context, in *ec2.TerminateInstancesInput,
	_ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
	s.calls++
	if slices.Contains(in.InstanceIds, s.one) {
		return nil, &smithy.GenericAPIError{Code: "OperationNotPermitted", Message: "One of the instances may not be " +
			"terminated."}
	}
	s.ended = append(s.ended, in.InstanceIds...)
	return &ec2.TerminateInstancesOutput{}, nil
}

// TestBadAppleIsFoundInFewCalls ends many instances, one of which can't be ended.
func TestBadAppleIsFoundInFewCalls(t *testing.T) {
	var ids []string
	for n := range maxTerminated {
		ids = append(ids, fmt.Sprintf("i-%017x", n))
	}
	api, failures := &stubborn{one: ids[321]}, map[string]error{}
	terminateAll(t.Context(), api, ids, failures)
	if len(failures) != 1 || failures[api.one] == nil || len(api.ended) != len(ids)-1 {
		t.Errorf("%d of %d were ended, these were not: %v", len(api.ended), len(ids), failures)
	}
	if api.calls > 20 {
		t.Errorf("it took %d calls", api.calls)
	}
}
