package network_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a simulated account and a Finder that looks at it over HTTP.
type world struct {
	*cloud.World
	t      *testing.T
	clock  *clock
	server *ec2sim.Server
	faults *faults.Injector
	finder *network.Finder
	vpc    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	w.faults = faults.New(faults.Options{Clock: w.clock})
	limits := simec2.NoLimits()
	server, err := ec2sim.New(ec2sim.Options{
		Config: cloud.Config{Clock: w.clock, Types: []ec2types.InstanceTypeInfo{{InstanceType: "m5.large"}}},
		Limits: &limits, Gates: []wire.Gate{w.faults},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.server, w.World = server, server.World
	http := httptest.NewServer(server)
	t.Cleanup(http.Close)
	w.vpc = w.AddVPC("10.0.0.0/16", nil)
	api := ec2.NewFromConfig(aws.Config{
		Region: w.Region(), BaseEndpoint: &http.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIATEST",
			"secret", ""),
		Retryer: func() aws.Retryer {
			// A connection that breaks on a busy machine is no part of the story.
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxBackoff = time.Millisecond
				o.Retryables = []retry.IsErrorRetryable{retry.RetryableConnectionError{}}
			})
		},
	})
	w.finder = network.New(network.Options{API: api, Now: w.clock.Now, VPC: func(context.Context) string {
		return w.vpc
	}})
	return w
}

// subnet makes one; every second word of tags is the value of the first.
func (w *world) subnet(zone, cidr string, tags ...string) string {
	w.t.Helper()
	id, err := w.AddSubnet(cloud.SubnetSpec{VPC: w.vpc, Zone: zone, CIDR: cidr, Tags: pairs(tags)})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) group(name string, tags ...string) string {
	w.t.Helper()
	id, err := w.AddSecurityGroup(w.vpc, name, pairs(tags))
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) calls(action string) int { return w.server.Calls()["ec2:"+action] }

func pairs(words []string) map[string]string {
	out := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		out[words[i]] = words[i+1]
	}
	return out
}

func withSubnets(terms ...awsv1.SubnetSelectorTerm) *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{SubnetSelectorTerms: terms}}
}

func withGroups(terms ...awsv1.SecurityGroupSelectorTerm) *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{SecurityGroupSelectorTerms: terms}}
}
