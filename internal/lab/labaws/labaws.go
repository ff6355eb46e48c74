// Package labaws gives a lab a cloud: a simulated AWS account on this machine, whose instances join the lab's API
// server as nodes that kwok plays. EC2NodeClasses then work without any account at AWS.
//
// It stands beside the floors, as the lab does: commands, the demo and tests use it, the autoscaler never does. It
// listens on 127.0.0.1 and touches the lab's API server and files in the lab's directory.
package labaws

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/join"
)

// Options say what the account is like. The zero value but for Kubeconfig is a fine one.
type Options struct {
	// Kubeconfig leads to the lab's API server. Start needs it.
	Kubeconfig string
	// Cluster is the cluster's name; lab if it is empty. The network is tagged karpenter.sh/discovery with it.
	Cluster string
	// Region is us-west-2 if it is empty.
	Region string
	// Families are those of the instance types that are sold, such as m5; everything that the region sells if there are
	// none.
	Families []string
	// Boot is how long a machine takes to run, Join how long from there until its node registers, Shutdown how long it
	// takes to end. Zero means at once.
	Boot, Join, Shutdown time.Duration
	// Warning is how long before its end a spot instance is warned; two minutes if zero, as at AWS.
	Warning time.Duration
	// Log hears of machines that do not join; nobody does if it is nil.
	Log func(format string, args ...any)
}

// Cloud is a running account.
type Cloud struct {
	*account.Account
	// URL is the endpoint of all services.
	URL string

	stop   context.CancelFunc
	joined sync.WaitGroup
	served chan error
}

// propagation is how long EC2 does not know a new instance profile, as in the real AWS, where it takes some seconds.
const propagation = 500 * time.Millisecond

// defaultRegion is where an account is if nothing is said.
const defaultRegion = "us-west-2"

// serviceCIDR is the range of service addresses in a lab.
const serviceCIDR = "10.96.0.0/12"

// Start makes the account and serves it until Close.
func Start(o Options) (*Cloud, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	api, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting the simulated machines to the lab: %w", err)
	}
	server, err := serverVersion(config)
	if err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the lab's certificates: %w", err)
	}
	described, err := o.account()
	if err != nil {
		return nil, err
	}
	described.Kubernetes, described.Endpoint = server.Major+"."+strings.TrimRight(server.Minor, "+"), config.Host
	described.CABundle, described.ServiceCIDR = base64.StdEncoding.EncodeToString(config.CAData), serviceCIDR
	made, at, err := open(described, 0)
	if err != nil {
		return nil, err
	}
	joiner := join.New(join.Options{World: made.World, API: api, Cluster: made.Cluster, Start: o.Join,
		Kubelet: server.GitVersion, Log: o.Log})
	made.Panel.Problems = joiner.Problems
	return begin(made, joiner, at), nil
}

// account is what the simulator has to know.
func (o Options) account() (account.Options, error) {
	out := account.Options{
		Cluster: o.Cluster, Region: o.Region, ZonalShift: true,
		Timing:      cloud.Timing{Boot: o.Boot, Shutdown: o.Shutdown, Warning: o.Warning}.Lagging(),
		Propagation: propagation,
		// A lab outlives its cloud: a machine must not get the id of one from an earlier day.
		Seed: rand.Uint64(),
	}
	if len(o.Families) == 0 {
		return out, nil
	}
	all, _, err := catalog.Region(cmp.Or(o.Region, defaultRegion))
	if err != nil {
		return account.Options{}, fmt.Errorf("reading what %s sells: %w", cmp.Or(o.Region, defaultRegion), err)
	}
	out.Types = slices.DeleteFunc(all, func(t ec2types.InstanceTypeInfo) bool {
		family, _, _ := strings.Cut(string(t.InstanceType), ".")
		return !slices.Contains(o.Families, family)
	})
	return out, nil
}

// open makes an account and finds the port that it will answer at; 0 for any.
func open(o account.Options, port int) (*account.Account, net.Listener, error) {
	made, err := account.New(o)
	if err != nil {
		return nil, nil, fmt.Errorf("making the simulated AWS account: %w", err)
	}
	made.IAM.PutProfile("KarpenterNodeInstanceProfile-"+made.Cluster, made.NodeRole()) // as older guides have it
	at, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, nil, fmt.Errorf("finding a port for the simulated AWS account: %w", err)
	}
	return made, at, nil
}

// begin serves the account. Without a joiner its machines join nothing.
func begin(made *account.Account, joiner *join.Joiner, at net.Listener) *Cloud {
	ctx, stop := context.WithCancel(context.Background())
	c := &Cloud{Account: made, URL: "http://" + at.Addr().String(), stop: stop, served: make(chan error, 1)}
	if joiner != nil {
		c.joined.Go(func() { _ = joiner.Run(ctx) }) // it ends with its context and has nothing to say then
	}
	go func() { c.served <- made.Serve(ctx, at) }()
	return c
}

// Close ends the account. Its machines are gone with it; their nodes stay until an account finds that it does not know
// them.
func (c *Cloud) Close() error {
	c.stop()
	c.joined.Wait()
	if err := <-c.served; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// imagesEvery is how often a lab's controller asks for images, and what @latest stands for, so that a new one is soon
// noticed: the shortest that it allows.
const imagesEvery = 10 * time.Second

// Environment are the variables that a controller needs to use the account as its AWS.
func (c *Cloud) Environment() []string {
	return append(c.Env(c.URL), "CLUSTER_NAME="+c.Cluster, "INTERRUPTION_QUEUE="+c.Cluster, "AMI_REFRESH_INTERVAL="+
		imagesEvery.String(), "AMI_LATEST_INTERVAL="+imagesEvery.String())
}

func serverVersion(config *rest.Config) (*version.Info, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the lab for its version: %w", err)
	}
	info, err := d.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking the lab for its version: %w", err)
	}
	return info, nil
}
