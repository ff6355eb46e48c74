// Package account is a whole simulated AWS account, ready to use: a network of three zones as Karpenter's
// getting-started guide makes it, roles, a queue that hears of interruptions, images of every family, a cluster's
// description, all services, and the control panel, behind one HTTP handler. The lab and the provider's tests use it.
package account

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/eks"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/events"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/iam"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/images"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/pricing"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sigv4"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sqs"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ssm"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sts"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/zonalshift"
)

// Options are what an account is made of. The zero value is a fine account.
type Options struct {
	Clock   wire.Clock // the machine's if nil
	Region  string     // us-west-2 if empty
	Account string     // 123456789012 if empty
	Cluster string     // lab if empty

	// Kubernetes, Endpoint, CABundle (base64) and ServiceCIDR describe the cluster. 1.33 if nothing is said, and values
	// that look right.
	Kubernetes, Endpoint, CABundle, ServiceCIDR string
	// ZonalShift lets zonal shifts touch the cluster.
	ZonalShift bool

	// Types is what can be bought: everything that EC2 sells in the region if nil.
	Types  []ec2types.InstanceTypeInfo
	Timing cloud.Timing
	Quotas cloud.Quotas
	Limits *ec2.Limits // AWS's if nil
	// Propagation is how long EC2 does not know a new instance profile.
	Propagation time.Duration
	// Keys are the known credentials: one pair if none is given.
	Keys []sigv4.Key
	// After tells when a time has passed, for long polls and delays; time.After if nil.
	After func(time.Duration) <-chan time.Time
	Seed  uint64
}

// Account is the account. It is an http.Handler: the endpoint of all its services.
type Account struct {
	Cluster string
	Network cloud.Network
	Key     sigv4.Key // what a program may sign with

	Server *ec2sim.Server
	World  *cloud.World
	SSM    *ssm.Service
	IAM    *iam.Service
	EKS    *eks.Service
	SQS    *sqs.Service
	Shifts *zonalshift.Service
	Prices *pricing.Book
	Images *images.Publisher
	Events *events.Bridge
	Faults *faults.Injector
	Keys   *sigv4.Ring
	Panel  *control.Panel
}

// imageAge is how old the first images are, so that later ones are newer whatever clocks say.
const imageAge = 30 * 24 * time.Hour

// retention is how long the queue keeps messages: five minutes, as in the getting-started guide. An older warning is
// useless.
const retention = 5 * time.Minute

// New makes an account.
func New(o Options) (*Account, error) {
	o = withDefaults(o)
	a := &Account{Cluster: o.Cluster, Key: o.Keys[0], Keys: sigv4.NewRing(o.Keys...)}
	if err := a.makeWorld(o); err != nil {
		return nil, err
	}
	a.SSM = ssm.New(o.Clock, o.Region)
	a.EKS = eks.New(o.Region, o.Account)
	a.SQS = sqs.New(sqs.Options{Clock: o.Clock, Region: o.Region, Account: o.Account, After: o.After})
	a.Faults = faults.New(faults.Options{Clock: o.Clock, After: o.After})
	a.Events = &events.Bridge{Queue: a.SQS, Name: o.Cluster, Region: o.Region, Account: o.Account}
	a.Images = &images.Publisher{Registry: a.World, Parameters: a.SSM, Kubernetes: o.Kubernetes}
	var zones []string
	for _, z := range a.World.Zones() {
		zones = append(zones, z.ID)
	}
	a.Shifts = zonalshift.New(o.Clock, zones)
	if err := a.makeServer(o); err != nil {
		return nil, err
	}
	return a, a.furnish(o)
}

func withDefaults(o Options) Options {
	for _, d := range []struct {
		field *string
		value string
	}{
		{&o.Region, "us-west-2"}, {&o.Account, "123456789012"}, {&o.Cluster, "lab"}, {&o.Kubernetes, "1.33"},
		{&o.Endpoint, "https://127.0.0.1:6443"}, {&o.CABundle, "c2ltdWxhdGVk"}, {&o.ServiceCIDR, "10.100.0.0/16"},
	} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if o.Clock == nil {
		o.Clock = wire.RealClock{}
	}
	if len(o.Keys) == 0 {
		o.Keys = []sigv4.Key{{ID: "AKIASIMULATED0000000", Secret: "simulated",
			ARN: fmt.Sprintf("arn:aws:iam::%s:user/simulated", o.Account)}}
	}
	return o
}

// makeServer puts the services behind the gates.
func (a *Account) makeServer(o Options) error {
	tokens := sts.New(sts.Options{Clock: o.Clock, Account: o.Account, Keys: a.Keys, Role: func(arn string) bool {
		_, known := a.IAM.Role(arn)
		return known
	}})
	verifier := &sigv4.Verifier{Keys: a.Keys, Clock: o.Clock, Sent: wire.RealClock{},
		Open: func(service, action string) bool {
			return service == tokens.Name() && !sts.NeedsSignature(action)
		}}
	server, err := ec2sim.New(ec2sim.Options{
		World: a.World, Limits: o.Limits,
		Services: []wire.Service{a.SSM, a.IAM, a.EKS, a.SQS, tokens, pricing.New(a.World), a.Shifts},
		Gates:    []wire.Gate{verifier, a.Faults},
	})
	if err != nil {
		return err
	}
	a.Server = server
	a.Panel = &control.Panel{
		World: a.World, Prices: a.Prices, Images: a.Images, Faults: a.Faults, Keys: a.Keys, Shifts: a.Shifts,
		Messages: a.Events,
		Calls:    server.Calls, Actions: server.Actions,
	}
	server.Handle(control.Prefix, a.Panel.Handler())
	return nil
}

// furnish makes what a cluster needs before nodes can be launched.
func (a *Account) furnish(o Options) error {
	var err error
	if a.Network, err = a.World.AddStarterNetwork(o.Cluster); err != nil {
		return fmt.Errorf("making the network: %w", err)
	}
	for _, family := range images.Families() {
		if _, err := a.Images.Publish(family, imageAge); err != nil {
			return fmt.Errorf("publishing the first images: %w", err)
		}
	}
	a.IAM.PutRole(a.NodeRole())
	a.IAM.PutRole(o.Cluster + "-karpenter")
	a.SQS.Create(o.Cluster, retention)
	a.World.OnChange(a.Events.Tell)
	a.EKS.Put(eks.Cluster{
		Name: o.Cluster, Version: o.Kubernetes, Endpoint: o.Endpoint, CABundle: o.CABundle, ServiceCIDR: o.ServiceCIDR,
		VPC: a.Network.VPC, Subnets: a.Network.Private, SecurityGroup: a.Network.SecurityGroup,
		ZonalShift: o.ZonalShift,
		RoleARN:    fmt.Sprintf("arn:aws:iam::%s:role/%s-cluster", o.Account, o.Cluster), Created: o.Clock.Now(),
		Tags: map[string]string{},
	})
	if o.ZonalShift {
		a.Shifts.Manage(o.Cluster, a.EKS.ARN(o.Cluster))
	}
	return nil
}

// NodeRole is the role that nodes get, named as in the getting-started guide.
func (a *Account) NodeRole() string { return "KarpenterNodeRole-" + a.Cluster }

// ControllerRole is the ARN of the role that the controller may assume with a web identity.
func (a *Account) ControllerRole() string {
	return fmt.Sprintf("arn:aws:iam::%s:role/%s-karpenter", a.World.Account(), a.Cluster)
}

// ServeHTTP answers for all services.
func (a *Account) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.Server.ServeHTTP(w, r) }

// Calls is how often an action was called, such as ec2:CreateFleet.
func (a *Account) Calls(action string) int { return a.Server.Calls()[action] }

// Env is what Config says as environment variables, for another program.
func (a *Account) Env(url string) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + url, "AWS_REGION=" + a.World.Region(),
		"AWS_ACCESS_KEY_ID=" + a.Key.ID, "AWS_SECRET_ACCESS_KEY=" + a.Key.Secret, "AWS_EC2_METADATA_DISABLED=true",
	}
}

// tick is how often things that are due happen while nobody calls.
const tick = 100 * time.Millisecond

// Serve answers at a listener until the context ends, and lets time pass for the machines.
func (a *Account) Serve(ctx context.Context, at net.Listener) error {
	server := &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	go a.World.Run(ctx, tick)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the simulated account: %w", err)
	}
	return nil
}
