package ec2sim_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// TestLimits empties the buckets that AWS documents and waits for them to fill.
func TestLimits(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) { o.Limits = nil })
	until := func(call func() error) int {
		for n := range 200 {
			if err := call(); err != nil {
				b.wantCode(err, "RequestLimitExceeded")
				return n
			}
		}
		return 200
	}
	bare := func() error {
		_, err := b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{})
		return err
	}
	narrow := func() error {
		_, err := b.client.DescribeInstances(b.ctx,
			&sdk.DescribeInstancesInput{Filters: []ec2types.Filter{filter("instance-state-name", "running")}})
		return err
	}
	if n := until(bare); n != 50 {
		t.Errorf("%d calls for everything passed", n)
	}
	if n := until(narrow); n != 100 {
		t.Errorf("%d calls with a filter passed", n)
	}
	b.clock.step(time.Second)
	if n := until(bare); n != 10 {
		t.Errorf("after a second %d calls for everything passed", n)
	}
	if n := until(narrow); n != 20 {
		t.Errorf("after a second %d calls with a filter passed", n)
	}
	b.template()
	fleet := func() error {
		_, err := b.client.CreateFleet(b.ctx, b.fleet(onDemand, 1, b.override("m5.large", 0)))
		return err
	}
	if n := until(fleet); n != 50 {
		t.Errorf("%d fleets passed", n)
	}
	if got := b.server.EC2.Throttled()["CreateFleet"]; got != 1 {
		t.Errorf("%d fleets were counted as refused", got)
	}
}

// TestResourceLimits lets a thousand instances be ended in calls of a hundred, and then twenty each second.
func TestResourceLimits(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) { o.Limits = nil })
	b.template()
	out := b.mustFleet(b.fleet(onDemand, 1100, b.override("m5.large", 0)))
	ids := out.Instances[0].InstanceIds
	end := func(ids []string) error {
		_, err := b.client.TerminateInstances(b.ctx, &sdk.TerminateInstancesInput{InstanceIds: ids})
		return err
	}
	for n := range 10 {
		if err := end(ids[100*n : 100*n+100]); err != nil {
			t.Fatal(err)
		}
	}
	b.wantCode(end(ids[1000:1001]), "RequestLimitExceeded")
	b.clock.step(time.Second)
	b.wantCode(end(ids[1000:1021]), "RequestLimitExceeded")
	b.wantCode(end(ids[1000:1020]), "")
	b.server.EC2.SetLimits(ec2.NoLimits())
	b.wantCode(end(ids[1020:]), "")
}

// refuser is a gate that refuses one action and loses the answer of another.
type refuser struct{ denied, lost string }

func (r refuser) Pass(c *wire.Call) *wire.Error {
	if c.Action == r.denied {
		return wire.Denied(c)
	}
	return nil
}

func (r refuser) Lose(c *wire.Call) bool { return c.Action == r.lost }

// TestGates refuses a call in EC2's words, and loses an answer after the deed.
func TestGates(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) {
		o.Gates = []wire.Gate{refuser{denied: "CreateTags", lost: "CreateFleet"}}
	})
	b.template()
	_, err := b.client.CreateTags(b.ctx, &sdk.CreateTagsInput{Resources: []string{b.net.VPC},
		Tags: []ec2types.Tag{{Key: aws.String("a")}}, DryRun: aws.Bool(true)})
	b.wantCode(err, "UnauthorizedOperation")
	if _, err := b.client.CreateFleet(b.ctx, b.fleet(onDemand, 2, b.override("m5.large", 0))); err == nil ||
		!strings.Contains(err.Error(), "EOF") {
		t.Errorf("the answer was not lost: %v", err)
	}
	if n := len(b.world.Instances()); n != 2 {
		t.Errorf("%d instances came of the call whose answer was lost", n)
	}
	if calls := b.server.Calls(); calls["ec2:CreateFleet"] != 1 || calls["ec2:CreateTags"] != 1 ||
		calls["ec2:CreateLaunchTemplate"] != 1 {
		t.Errorf("the calls were counted as %v", calls)
	}
}

// echo is a service that says how it was called.
type echo string

func (e echo) Name() string                        { return string(e) }
func (e echo) Action(*http.Request, []byte) string { return "Echo" }
func (e echo) Fail(w http.ResponseWriter, _ *wire.Call, f *wire.Error) {
	http.Error(w, f.Code, f.StatusCode())
}
func (e echo) Actions() []string { return nil }

func (e echo) ServeAWS(w http.ResponseWriter, c *wire.Call) {
	text := c.Service + " " + c.Region + " " + c.AccessKey + " " + c.Action
	io.WriteString(w, text) //nolint:errcheck // a recorder takes everything
}

// TestRoutes finds the service of a request.
func TestRoutes(t *testing.T) {
	server, err := ec2sim.New(ec2sim.Options{Services: []wire.Service{echo("ssm"), echo("sts"), echo("sqs"),
		echo("eks")}})
	if err != nil {
		t.Fatal(err)
	}
	server.Handle("/_tenon/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "control") //nolint:errcheck // as above
	}))
	signed := func(service string) http.Header {
		return http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=AKID/20260901/eu-west-1/" + service +
			"/aws4_request, SignedHeaders=host, Signature=abc"}}
	}
	for name, c := range map[string]struct {
		path   string
		header http.Header
		form   url.Values
		want   string
	}{
		"a signature": {header: signed("eks"), path: "/clusters/lab", want: "eks eu-west-1 AKID Echo"},
		"a signed address": {path: "/?X-Amz-Credential=AKID%2F20260901%2Feu-west-1%2Fsts%2Faws4_request",
			want: "sts eu-west-1 AKID Echo"},
		"a JSON target":        {header: http.Header{"X-Amz-Target": {"AmazonSSM.GetParameter"}}, want: "ssm   Echo"},
		"before credentials":   {form: url.Values{"Action": {"AssumeRoleWithWebIdentity"}}, want: "sts   Echo"},
		"the control endpoint": {path: "/_tenon/faults", want: "control"},
		"an action of EC2": {header: signed("ec2"), form: url.Values{"Action": {"Dance"}},
			want: "<Code>InvalidAction</Code>"},
		"a service nobody gives": {header: signed("s3"), want: `no service "s3"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.path
			if path == "" {
				path = "/"
			}
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(c.form.Encode()))
			for key, values := range c.header {
				r.Header[key] = values
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %s, want %s", w.Body, c.want)
			}
		})
	}
	if _, err := ec2sim.New(ec2sim.Options{Services: []wire.Service{echo("ec2")}}); err == nil {
		t.Error("two services with one name were taken")
	}
}
