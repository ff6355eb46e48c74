package launch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ratelimit"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
)

// Options say with what instances are launched. All but Images, Refused, Metrics and Guard are required.
type Options struct {
	EC2     API
	Network Network
	// Images is told of images that EC2 does not know.
	Images Images
	// Cluster tells how nodes join.
	Cluster func(context.Context) (family.Cluster, error)
	// ClusterName and Identity tell the cluster from others in tags.
	ClusterName, Identity string
	// Refused tells of offerings whether something is held against them now; they are left out unless there is nothing
	// else.
	Refused   func() func(cloudprovider.OfferingRef) bool
	Catalog   *offer.Catalog
	Templates *template.Store
	Register  *ownership.Register
	Instances *ownership.Instances
	Metrics   *metrics.EC2
	Guard     *recovery.Guard
	Now       func() time.Time
	// Wait lets time pass before something is tried again, unless the context ends first.
	Wait func(ctx context.Context, d time.Duration)
}

// API are the calls of EC2 that launch instances, and those that are made as dry runs in place of them.
type API interface {
	CreateFleet(context.Context, *ec2.CreateFleetInput, ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error)
	CreateLaunchTemplate(context.Context, *ec2.CreateLaunchTemplateInput,
		...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	RunInstances(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
}

// Network tells where instances can stand.
type Network interface {
	Subnets(ctx context.Context, class *awsv1.EC2NodeClass) ([]network.Subnet, error)
	PlacementGroup(ctx context.Context, class *awsv1.EC2NodeClass) (*network.PlacementGroup, error)
	// ForgetSubnet and ForgetReservation drop what is remembered, because EC2 has said that it is no longer so.
	ForgetSubnet(id string)
	ForgetReservation(id string)
}

// Launcher launches instances for claims.
type Launcher struct {
	o       Options
	subnets *subnetChooser
	pace    launchPace
	limiter *ratelimit.Fleet
	// coming counts claims whose launch is about to be asked for.
	coming   atomic.Int64
	launches *batch.Gatherer[string, *Request, *cloudprovider.Instance]
}

// New returns a launcher that has launched nothing.
func New(o Options) *Launcher {
	if o.Refused == nil {
		o.Refused = func() func(cloudprovider.OfferingRef) bool { return nothingRefused }
	}
	p := &Launcher{o: o, subnets: newSubnetChooser(o.Network, o.Now), pace: launchPace{now: o.Now},
		limiter: ratelimit.NewFleet(time.Now)}
	p.launches = batch.New(p.pace.window, launchLimit, p.launchTogether).Through(p.admitLaunch).While(p.worthWaiting)
	return p
}

// Expect notes that a launch is about to be asked for, until done is called: others wait for it.
func (p *Launcher) Expect() (done func()) {
	p.coming.Add(1)
	return func() { p.coming.Add(-1) }
}

// Launch launches an instance for the claim, together with others that ask for the same.
func (p *Launcher) Launch(ctx context.Context, q *Request) (*cloudprovider.Instance, error) {
	return p.launches.Ask(ctx, q.spec.Key, q)
}

// worthWaiting tells whether a launch for so many had better wait for others to join it.
func (p *Launcher) worthWaiting(size int) bool {
	return p.coming.Load() > 0 || size < enoughTogether && p.pace.underWay() >= manyLaunching
}

// admitLimit is how long launches wait for their turn before they are told to come again. It leaves a launch, which has
// a minute, time for the call itself; 180 launches of which each is of another kind get theirs within it.
const admitLimit = 40 * time.Second

// admitLaunch waits until EC2 may be asked for the launches that are being gathered.
func (p *Launcher) admitLaunch(ctx context.Context, _ string, size func() int) error {
	ctx, cancel := context.WithTimeout(ctx, admitLimit)
	defer cancel()
	if err := p.limiter.Admit(ctx, size); errors.Is(err, batch.ErrNobody) {
		return err
	} else if err != nil {
		return &cloudprovider.ThrottledError{Queued: true, Cause: fmt.Errorf("launching instances: too many launches "+
			"of different kinds wait for their turn: %w", err)}
	}
	return nil
}

// Images finds what instances boot. *image.Finder does.
type Images interface {
	// Forget drops what is remembered of the class's images, because EC2 has said that it is no longer so.
	Forget(ctx context.Context, class *awsv1.EC2NodeClass)
}
