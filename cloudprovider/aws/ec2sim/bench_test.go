package ec2sim_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a simulator behind HTTP, with the starter network, an image, a launch template, and the real SDK in front.
type bench struct {
	t      *testing.T
	ctx    context.Context
	clock  *clock
	server *ec2sim.Server
	world  *cloud.World
	client *sdk.Client
	net    cloud.Network
	image  string // x86_64
	arm    string
}

// plainBodies is an HTTP client that hides all of a request's body but Read and Close. The SDK's own body has a WriteTo
// that calls it an error to have been closed early, see latency in server.go; with retries off, a test would see that.
type plainBodies struct{}

func (plainBodies) Do(r *http.Request) (*http.Response, error) {
	r.Body = struct{ io.ReadCloser }{r.Body}
	return http.DefaultClient.Do(r)
}

const templateName = "karpenter.k8s.aws/1234567890"

func newBench(t *testing.T, change ...func(*ec2sim.Options)) *bench {
	t.Helper()
	b := &bench{t: t, ctx: t.Context(), clock: &clock{now: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)}}
	limits := ec2.NoLimits()
	o := ec2sim.Options{Limits: &limits, Config: cloud.Config{Clock: b.clock,
		Timing: cloud.Timing{Boot: 10 * time.Second, Shutdown: 20 * time.Second}}}
	for _, f := range change {
		f(&o)
	}
	server, err := ec2sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.server, b.world = server, server.World
	b.net, err = b.world.AddStarterNetwork("lab")
	if err != nil {
		t.Fatal(err)
	}
	b.image = b.world.AddImage(ec2types.Image{Name: aws.String("node-x86")})
	b.arm = b.world.AddImage(ec2types.Image{Name: aws.String("node-arm"),
		Architecture: ec2types.ArchitectureValuesArm64})
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	b.client = sdk.New(sdk.Options{Region: "us-west-2", BaseEndpoint: aws.String(listener.URL),
		Retryer: aws.NopRetryer{}, HTTPClient: plainBodies{},
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")})
	return b
}

// template makes the launch template of most tests.
func (b *bench) template(change ...func(*ec2types.RequestLaunchTemplateData)) {
	b.t.Helper()
	data := &ec2types.RequestLaunchTemplateData{
		ImageId: aws.String(b.image), SecurityGroupIds: []string{b.net.SecurityGroup},
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n"))),
		TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("from"),
				Value: aws.String("template")}}},
			{ResourceType: ec2types.ResourceTypeVolume, Tags: []ec2types.Tag{{Key: aws.String("disk"),
				Value: aws.String("yes")}}},
		},
	}
	for _, f := range change {
		f(data)
	}
	_, err := b.client.CreateLaunchTemplate(b.ctx,
		&sdk.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(templateName), LaunchTemplateData: data})
	if err != nil {
		b.t.Fatal(err)
	}
}

// override is an instance type in the private subnet of a zone (0 for a, 1 for b …).
func (b *bench) override(kind string, zone int) ec2types.FleetLaunchTemplateOverridesRequest {
	return ec2types.FleetLaunchTemplateOverridesRequest{
		InstanceType: ec2types.InstanceType(kind), SubnetId: aws.String(b.net.Private[zone]),
		AvailabilityZone: aws.String(b.world.Zones()[zone].Name),
	}
}

// fleet is a request for n instances.
func (b *bench) fleet(market ec2types.DefaultTargetCapacityType, n int,
	overrides ...ec2types.FleetLaunchTemplateOverridesRequest) *sdk.CreateFleetInput {
	in := &sdk.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(templateName),
				Version:            aws.String("$Latest"),
			},
			Overrides: overrides,
		}},
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(
			int32(n)), DefaultTargetCapacityType: market},
		TagSpecifications: []ec2types.TagSpecification{
			{ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("from"),
				Value: aws.String("fleet")}}},
		},
	}
	if market == ec2types.DefaultTargetCapacityTypeSpot {
		in.SpotOptions = &ec2types.SpotOptionsRequest{
			AllocationStrategy: ec2types.SpotAllocationStrategyPriceCapacityOptimized,
		}
	}
	return in
}

// mustFleet sends a fleet that must not fail as a call.
func (b *bench) mustFleet(in *sdk.CreateFleetInput) *sdk.CreateFleetOutput {
	b.t.Helper()
	out, err := b.client.CreateFleet(b.ctx, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// launch makes one instance and returns its id.
func (b *bench) launch(market ec2types.DefaultTargetCapacityType) string {
	b.t.Helper()
	out := b.mustFleet(b.fleet(market, 1, b.override("m5.large", 0)))
	if len(out.Instances) != 1 || len(out.Instances[0].InstanceIds) != 1 {
		b.t.Fatalf("got no instance: %s", fleetText(out))
	}
	return out.Instances[0].InstanceIds[0]
}

// describe gets one instance.
func (b *bench) describe(id string) ec2types.Instance {
	b.t.Helper()
	out, err := b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.Reservations[0].Instances[0]
}

// fleetText says in one line what a fleet got and did not get: 2×m5.large/a !InsufficientInstanceCapacity:m5.xlarge/b.
func fleetText(out *sdk.CreateFleetOutput) string {
	text := ""
	for _, i := range out.Instances {
		text += fmt.Sprintf("%d×%s/%s ", len(i.InstanceIds), i.InstanceType, zoneLetter(i.LaunchTemplateAndOverrides))
	}
	for _, e := range out.Errors {
		text += fmt.Sprintf("!%s:%s/%s ", *e.ErrorCode, e.LaunchTemplateAndOverrides.Overrides.InstanceType,
			zoneLetter(e.LaunchTemplateAndOverrides))
	}
	if text == "" {
		return ""
	}
	return text[:len(text)-1]
}

func zoneLetter(l *ec2types.LaunchTemplateAndOverridesResponse) string {
	zone := aws.ToString(l.Overrides.AvailabilityZone)
	if zone == "" {
		return "-"
	}
	return zone[len(zone)-1:]
}

// code is AWS's code of an error.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// wantCode fails the test unless an error has the code.
func (b *bench) wantCode(err error, want string) {
	b.t.Helper()
	if got := code(err); got != want {
		b.t.Errorf("got %q, want %s (%v)", got, want, err)
	}
}

func tagOf(tags []ec2types.Tag, key string) string {
	return cloud.TagMap(tags)[key]
}
