package ownership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// Options say of which cluster instances are found, and how.
type Options struct {
	EC2 API
	// Claims reads NodeClaims and must ask the API server. If it is nil only tags tell whose an instance is.
	Claims client.Reader
	// ClusterName is the cluster's name in tags; instances with another Identity than this are not seen, unless it is
	// empty.
	ClusterName, Identity string
	// Shifted tells whether AWS has moved traffic away from the zone of the id. Nil for no zone.
	Shifted func(zoneID string) bool
	Metrics *metrics.EC2
	Guard   *recovery.Guard
	Now     func() time.Time
}

// API are the calls of EC2 that find instances and name them.
type API interface {
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput,
		...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
}

// Instances finds the cluster's instances in EC2, and whose they are.
type Instances struct {
	o            Options
	register     *Register
	names        *nameTagger
	state        scanState
	predecessors *predecessorClaims
	gatherer     *batch.Gatherer[struct{}, struct{}, *Listing]
	describer    *describer
}

// NewInstances returns what finds instances and enters their owners into the register.
func NewInstances(register *Register, o Options) *Instances {
	f := &Instances{o: o, register: register, names: newNameTagger(o.EC2, o.Guard, register.noteNamed),
		predecessors: newPredecessorClaims(), describer: newDescriber(o.EC2, o.Metrics)}
	f.gatherer = f.newScanGatherer()
	return f
}

// SetLifetime has claims' names written on instances until the context ends, and not after.
func (f *Instances) SetLifetime(life context.Context) { f.names.setLifetime(life) }

// Name has the claim's name written on an instance soon.
func (f *Instances) Name(a *Assignment) { f.names.add(a.ID, a.Name) }

// newScanGatherer returns what gathers those who want to look.
func (f *Instances) newScanGatherer() *batch.Gatherer[struct{}, struct{}, *Listing] {
	window := batch.Window{Idle: scanIdle, Max: scanMax, Items: 1000}
	return batch.New(func(struct{}) batch.Window {
		return window
	}, scanLimit, func(ctx context.Context, _ struct{}, all []struct{}) []batch.Answer[*Listing] {
		v, err := f.scanAll(ctx)
		out := make([]batch.Answer[*Listing], len(all))
		for i := range out {
			out[i] = batch.Answer[*Listing]{Value: v, Err: err}
		}
		return out
	})
}

// Scan looks at all instances and finds out whose they are.
func (f *Instances) Scan(ctx context.Context) (*Listing, error) {
	return f.gatherer.Ask(ctx, struct{}{}, struct{}{})
}

// ScanBeforeLaunch takes a survey for somebody who is about to launch, and reports whether it shows all that there can
// be.
func (f *Instances) ScanBeforeLaunch(ctx context.Context) bool {
	_, err := f.Scan(ctx)
	return err == nil && f.state.isComplete()
}

func (f *Instances) scanAll(ctx context.Context) (*Listing, error) {
	v := &Listing{Began: f.o.Now(), byID: map[string]*ec2types.Instance{}}
	pages := ec2.NewDescribeInstancesPaginator(f.o.EC2, &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{
			{Name: new("tag:" + awsv1.ClusterTagPrefix + f.o.ClusterName), Values: []string{"owned"}},
			{Name: new("tag-key"), Values: []string{awsv1.NodePoolTagKey}},
			{Name: new("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped",
				"shutting-down"}},
		},
		MaxResults: new(int32(pageSize)),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fault.Explain("listing the cluster's instances", err)
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				if r.Instances[i].InstanceId != nil && !f.IsForeign(&r.Instances[i]) {
					v.Instances = append(v.Instances, slim(r.Instances[i]))
				}
			}
		}
	}
	shown := make(map[string]bool, len(v.Instances))
	for i := range v.Instances {
		id := *v.Instances[i].InstanceId
		v.byID[id], shown[id] = &v.Instances[i], true
	}
	if err := f.register.resolveOwners(ctx, v.Instances, f.o.Claims); err != nil {
		return nil, err
	}
	f.register.prune(shown, v.Began)
	f.nameAll(v)
	f.state.noteScan(v)
	return v, nil
}

// slim leaves out what nobody reads: thousands of instances are kept until the next look.
func slim(i ec2types.Instance) ec2types.Instance {
	i.BlockDeviceMappings, i.NetworkInterfaces, i.Licenses, i.ProductCodes = nil, nil, nil, nil
	return i
}

// nameAll has those instances named that lack the name of the claim that they were given to. Where AWS has moved
// traffic away from a zone that can wait.
func (f *Instances) nameAll(v *Listing) {
	for i := range v.Instances {
		a := f.register.AssignmentOf(*v.Instances[i].InstanceId)
		if a != nil && !a.Named && a.Name != "" && isAlive(&v.Instances[i]) && f.ShiftedZone(&v.Instances[i]) == "" {
			f.Name(a)
		}
	}
}

// IsComplete tells whether what a process before this one has launched is known by now.
func (f *Instances) IsComplete() bool { return f.state.isComplete() }

// Lead notes that this process launches instances from now on. What NodeClaims there are without an instance may have
// been launched by another; those that come later can't. It is called when the process becomes the leader (Start does);
// if nobody calls it, the first launch does, and then has to take claims of its own for another's.
func (f *Instances) Lead(ctx context.Context) error {
	f.state.begin(f.o.Now())
	_, err := f.predecessors.load(ctx, &f.o)
	return err
}

// mayBeHidden tells whether EC2 may not show the instance yet although a process before this one has launched it.
func (f *Instances) mayBeHidden(ctx context.Context, id string) bool {
	if f.state.isSettled(f.o.Now()) {
		return false
	}
	_, err := f.predecessors.load(ctx, &f.o)
	return err != nil || f.predecessors.instances[id]
}

// ErrMayBeHidden says that EC2 may not show yet what a process before this one has launched for the claim.
var ErrMayBeHidden = errors.New("EC2 may not show the claim's instance yet")

// FromPredecessor finds what a process before this one has launched for the claim. As long as EC2 may not show it yet,
// and the claim is old enough to have been launched by another, it is to be waited for.
func (f *Instances) FromPredecessor(ctx context.Context, claim *v1.NodeClaim) (*Assignment, error) {
	if f.state.begin(f.o.Now()) {
		return nil, nil
	}
	left, err := f.predecessors.load(ctx, &f.o)
	if err != nil {
		return nil, err
	}
	if _, err := f.Scan(ctx); err != nil {
		return nil, err
	}
	a := f.register.RecallInstance(claim)
	if a == nil && left[claim.UID] && !f.state.isComplete() {
		return nil, ErrMayBeHidden
	}
	return a, nil
}

// FindInstance asks EC2 for an instance. If EC2 does not show it yet although this process has just launched it, unseen
// is what is known of it; it is NotFound if it is gone for good.
func (f *Instances) FindInstance(ctx context.Context, id, providerID string) (i *ec2types.Instance, unseen *Assignment,
	err error) {
	i, err = f.describer.Ask(ctx, struct{}{}, id)
	if err != nil {
		return nil, nil, err
	}
	if i == nil {
		if a := f.register.AssignmentOf(id); a != nil && a.CreateAnswer != nil &&
			a.LaunchedAt.After(f.o.Now().Add(-visibleWithin)) {
			return nil, a, nil
		}
		if f.mayBeHidden(ctx, id) {
			return nil, nil, fmt.Errorf("looking for instance %s: EC2 does not show it, which may be because it is "+
				"new; it will be tried again", id)
		}
	}
	if i == nil || i.State == nil || i.State.Name == ec2types.InstanceStateNameTerminated {
		f.register.Forget(id, f.o.Now())
		return nil, nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	return i, nil, nil
}

// IsGone tells whether an instance that was launched a moment ago and is not listed has ended, or is merely not shown
// yet.
func (f *Instances) IsGone(ctx context.Context, a *Assignment) (bool, error) {
	_, _, err := f.FindInstance(ctx, a.ID, a.CreateAnswer.ProviderID)
	if cloudprovider.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// ShiftedZone is the zone of the instance if AWS has moved traffic away from it, else empty. Calls about such a zone
// may hang or fail, and must not take those about others with them.
func (f *Instances) ShiftedZone(i *ec2types.Instance) string {
	if i == nil || i.Placement == nil || f.o.Shifted == nil ||
		!f.o.Shifted(aws.ToString(i.Placement.AvailabilityZoneId)) {
		return ""
	}
	return ZoneOf(i)
}

// OwnerOf is whose the instance is. That may only show in the company of those that it was launched with.
func (f *Instances) OwnerOf(ctx context.Context, i *ec2types.Instance) (cloudprovider.Owner, error) {
	a := f.register.AssignmentOf(*i.InstanceId)
	if a == nil || a.UID == "" {
		if _, err := f.Scan(ctx); err != nil {
			return cloudprovider.Owner{}, err
		}
		a = f.register.AssignmentOf(*i.InstanceId)
	}
	if a == nil || a.UID == "" {
		return cloudprovider.Owner{ClaimName: ClaimName(i)}, nil
	}
	return a.CloudOwner(), nil
}

// IsForeign tells whether the instance is that of a cluster with the same name. One without an identity was launched by
// Karpenter, or by Tenon before it wrote one: it may be ours.
func (f *Instances) IsForeign(i *ec2types.Instance) bool {
	tag := TagOf(i, IdentityTagKey)
	return f.o.Identity != "" && tag != "" && tag != f.o.Identity
}

// FromRecentScan finds the instance in the last look at all instances if that is not old. Drift is no hurry, and
// thousands of claims ask.
func (f *Instances) FromRecentScan(ctx context.Context, id, providerID string) (*ec2types.Instance, error) {
	v := f.state.recent(f.o.Now())
	if v == nil {
		var err error
		if v, err = f.Scan(ctx); err != nil {
			return nil, err
		}
	}
	if i := v.byID[id]; i != nil {
		return i, nil
	}
	i, _, err := f.FindInstance(ctx, id, providerID)
	return i, err
}
