package faults_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	sim "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return "no answer"
	}
	return ""
}

func start(t *testing.T) (*account.Account, *simtest.Clock, aws.Config) {
	t.Helper()
	clock, limits := simtest.NewClock(), sim.NoLimits()
	a, config := simtest.Start(t, account.Options{Clock: clock, After: clock.After, Limits: &limits})
	return a, clock, config
}

// subnets is a call that succeeds if nothing is wrong.
func subnets(config aws.Config) string {
	_, err := ec2.NewFromConfig(config).DescribeSubnets(context.Background(), &ec2.DescribeSubnetsInput{})
	return code(err)
}

func vpcs(config aws.Config) string {
	_, err := ec2.NewFromConfig(config).DescribeVpcs(context.Background(), &ec2.DescribeVpcsInput{})
	return code(err)
}

func TestFail(t *testing.T) {
	a, _, config := start(t)
	a.Faults.Add(faults.Fault{Service: "ec2", Action: "Describe*nets", Code: "InternalError", Status: 500, Times: 2})
	got := []string{subnets(config), vpcs(config), subnets(config), subnets(config)}
	want := []string{"InternalError", "", "InternalError", ""}
	for n := range want {
		if got[n] != want[n] {
			t.Errorf("call %d gave %q, want %q", n+1, got[n], want[n])
		}
	}
	a.Faults.Add(faults.Fault{Action: "DescribeVpcs", Code: "InternalError", Every: 3})
	failed := 0
	for range 9 {
		if vpcs(config) != "" {
			failed++
		}
	}
	if failed != 3 {
		t.Errorf("%d of 9 calls failed, want each third", failed)
	}
	a.Faults.Clear()
	if got := vpcs(config) + vpcs(config) + vpcs(config); got != "" {
		t.Errorf("after all faults were cleared a call gave %q", got)
	}
}

func TestDenyAndThrottle(t *testing.T) {
	a, clock, config := start(t)
	parameter := func() string {
		_, err := ssm.NewFromConfig(config).GetParameter(context.Background(),
			&ssm.GetParameterInput{Name: aws.String("/none")})
		return code(err)
	}
	a.Faults.Deny("ec2:DescribeSubnets")
	a.Faults.Deny("ssm:*")
	if got := subnets(config) + " " + parameter() + " " + vpcs(config); got != "UnauthorizedOperation "+
		"AccessDeniedException " {
		t.Errorf("got %q", got)
	}
	a.Faults.Allow("ec2:DescribeSubnets")
	a.Faults.Allow("ssm:*")
	a.Faults.Throttle(faults.Limit{PerSecond: 1, Burst: 2})
	got := []string{subnets(config), vpcs(config), vpcs(config), parameter()}
	if got[0]+got[1] != "" || got[2] != "RequestLimitExceeded" || got[3] != "ThrottlingException" {
		t.Errorf("with room for two calls four gave %q", got)
	}
	clock.Advance(time.Second)
	if got := subnets(config); got != "" {
		t.Errorf("after a second a call gave %q", got)
	}
	if got := subnets(config); got != "RequestLimitExceeded" {
		t.Errorf("a second call in the same second gave %q", got)
	}
}

func TestDelay(t *testing.T) {
	a, clock, config := start(t)
	a.Faults.Add(faults.Fault{Action: "DescribeSubnets", Delay: time.Minute, Times: 1})
	done := make(chan string)
	go func() { done <- subnets(config) }()
	clock.AwaitWaiters(1)
	select {
	case got := <-done:
		t.Fatalf("the call did not wait, but gave %q", got)
	default:
	}
	clock.Advance(time.Minute)
	if got := <-done; got != "" {
		t.Errorf("after the delay the call gave %q", got)
	}
}

func TestALostAnswer(t *testing.T) {
	a, _, config := start(t)
	a.Faults.Add(faults.Fault{Action: "CreateTags", Lose: true, Times: 1})
	_, err := ec2.NewFromConfig(config).CreateTags(context.Background(), &ec2.CreateTagsInput{
		Resources: []string{a.Network.VPC}, Tags: []ec2types.Tag{{Key: aws.String("done"), Value: aws.String("yes")}},
	})
	if code(err) != "no answer" {
		t.Errorf("the caller heard %v", err)
	}
	for _, v := range a.World.VPCs() {
		for _, tag := range v.Tags {
			if aws.ToString(tag.Key) == "done" {
				return
			}
		}
	}
	t.Error("the call whose answer was lost was not done either")
}

func TestThrottledSpeaksEveryServicesWords(t *testing.T) {
	for service, want := range map[string]string{
		"ec2": "RequestLimitExceeded", "iam": "Throttling", "sts": "Throttling", "sqs": "RequestThrottled",
		"ssm": "ThrottlingException",
		"eks": "ThrottlingException", "pricing": "ThrottlingException",
	} {
		if got := faults.Throttled(&wire.Call{Service: service}); got.Code != want {
			t.Errorf("%s says %s, want %s", service, got.Code, want)
		}
	}
}
